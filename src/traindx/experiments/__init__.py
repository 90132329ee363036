"""Experiments: which trials are run, what is expected of them, and what they then say. Nothing here imports torch."""
