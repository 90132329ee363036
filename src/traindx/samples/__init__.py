"""What ``traindx data`` says of the samples that were collected. NumPy, no torch."""
