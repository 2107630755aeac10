"""Runs on disk, the only room that knows the medium.

Input: records and facts. Output: run folders (run.json, cases.jsonl, attempts*.jsonl, looks.jsonl, batches.jsonl) and their Parquet copies.
A run folder that came from another place is read through `UntrustedRun`.
"""
