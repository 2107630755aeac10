"""Places where untrusted code can run."""
