"""What interventions, and the tracer of a trial, have in common: the stage on which a program runs."""
