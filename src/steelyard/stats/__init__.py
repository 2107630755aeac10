"""Statistics that take plain numbers, give plain numbers and cite their sources."""
