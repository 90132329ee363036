"""Is this machine, and its lock file, sound? Facts are gathered first; everything said is computed from them afterwards."""
