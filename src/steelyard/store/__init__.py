"""Runs on disk, the only room that knows the medium.

Comes in: records and facts. Goes out: run folders (run.json, cases.jsonl, attempts*.jsonl, looks.jsonl, batches.jsonl) and their Parquet copies.
A run folder that came from elsewhere is read through `untrusted`.
"""
