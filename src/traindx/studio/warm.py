"""Imported once by the process that workers are forked from: what takes seconds to load is loaded before anybody asks."""
from __future__ import annotations

from traindx.core.rules import all_rules
from traindx.labs import all_labs

LABS, RULES = all_labs(), all_rules()
