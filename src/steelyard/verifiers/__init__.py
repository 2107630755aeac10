"""Finding out whether an answer is right."""
