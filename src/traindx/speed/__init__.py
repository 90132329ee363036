"""``traindx speed``: questions to the timed child, statistics, verdicts. No torch here."""
