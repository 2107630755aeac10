"""Recorded repairs of Terraform modules: `steelyard repairs`.

In come evaluation_config.json, CSV files of fixes and problems, and clones. What is not judged yet becomes cases and recorded
replies of an ordinary run in `<output_dir>/run`. Out come that run and the CSV files of docs/outcomes.md.
"""
