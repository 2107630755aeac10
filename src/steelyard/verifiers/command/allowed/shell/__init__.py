"""The list for shells: `script` reads an answer, and `numbers` what it takes for arithmetic."""
