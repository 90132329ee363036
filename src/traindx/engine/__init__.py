"""Where trials run: in children of a warm server on this machine, or on a Ray cluster. Neither needs a change of the program."""
