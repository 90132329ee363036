"""Probes: torch -> Observation. Each file is one seam of torch or one view of what passes through; the Session ties them together."""
