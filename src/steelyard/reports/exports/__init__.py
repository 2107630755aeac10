"""Reports that other programs read: rows for spreadsheets, and the files of other evaluation tools."""

from __future__ import annotations
