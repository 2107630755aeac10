"""Runs as web pages and as a read-only HTTP API."""
