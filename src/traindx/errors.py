"""What the user asked for cannot be done: said in one message, and the command ends with status 2."""
from __future__ import annotations

from traindx.core.text import Text


class UsageError(Exception):
    """Bad usage or input. ``text`` says what was asked, what came, what is known and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


def reason(problem: OSError) -> Text:
    """Why the system refused, in its own words, which are English everywhere."""
    words = problem.strerror or str(problem) or type(problem).__name__
    return Text(words, f"系统提示「{words}」")
