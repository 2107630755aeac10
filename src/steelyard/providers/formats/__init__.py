"""The wire formats: each module writes the requests of one format and reads its responses.

Input: an attempt. Output: a request over `providers/wire.py`, and the Answer that its response is.
What a finish reason or an error means is decided in `providers/faults.py`, for all formats alike.
"""
