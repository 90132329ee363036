"""Signals: pure views of a Recording, each with its normal band where there is one."""
