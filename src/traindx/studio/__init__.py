"""The studio: the diagnosis tree, the labs and the reader's own runs in a browser, on this machine only."""
