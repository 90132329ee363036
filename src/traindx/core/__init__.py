"""The words of traindx: what was observed, what is said about it. Standard library only."""
