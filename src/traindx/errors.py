"""What the user asked for cannot be done: said in one message, and the command ends with status 2."""
from __future__ import annotations

from traindx.core.text import Text


class UsageError(Exception):
    """Bad usage or input. ``text`` says what was asked, what came, what is known and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text
