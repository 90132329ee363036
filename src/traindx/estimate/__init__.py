"""The memory that a training takes: closed formulas (plain arithmetic) and, in ``traced``, the program itself on tensors without data."""
