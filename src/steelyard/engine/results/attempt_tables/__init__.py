"""The attempts of stored runs without their texts, in memory or in files."""
