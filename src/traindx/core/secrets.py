"""What looks like a password or an access token is masked before anything is written down."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MASK = "***"
_WORDS = frozenset(("token", "secret", "password", "passwd", "apikey", "auth", "credential", "credentials"))
_PREFIX = r"(?:hf_|gh[pousr]_|github_pat_|sk-|xox[abp]-|AKIA|glpat-|wandb_|ya29\.|eyJ)"
_VALUE = re.compile(rf"^{_PREFIX}[\w.\-]{{8,}}$|^[0-9a-f]{{40}}$|://[^/@\s]+:[^/@\s]+@")
_IN_TEXT = re.compile(rf"(?<![\w.\-]){_PREFIX}(?=[\w.\-]*\d)[\w.\-]{{16,}}")
_IN_URL = re.compile(r"(://[^/@\s:]+:)[^/@\s]+@")
_ASSIGNED = re.compile(r"""([\w.\-]+)(["']?\]?\s*[:=]\s*)(["'])([^"'\n]{6,})\3""")


def names_secret(option: str) -> bool:
    """``--hub-token`` does, ``--tokenizer`` and ``--max-tokens`` do not."""
    words = re.split(r"[-_.]+", option.lower())
    is_key = "key" in words and not {"api", "access", "private"}.isdisjoint(words)
    return is_key or not _WORDS.isdisjoint(words)


def is_secret(value: str) -> bool:
    """Whether a value has the form of a token, or is a URL with a password in it."""
    return bool(_VALUE.search(value))


def masked(argv: Sequence[str]) -> list[str]:
    """Arguments without secrets: ``--token X``, ``--api-key=X``, or a value in a token's form."""
    out: list[str] = []
    hide_next = False
    for word in argv:
        option, equals, value = word.partition("=")
        if (hide_next and not word.startswith("-")) or is_secret(word):
            out.append(MASK)
        elif equals and (names_secret(option) or is_secret(value)):
            out.append(f"{option}={MASK}")
        else:
            out.append(word)
        hide_next = word.startswith("-") and not equals and names_secret(word)
    return out


def masked_text(text: str) -> str:
    """Free text, code included: tokens by their form, and string literals that are given to a name like ``api_key``."""
    text = _IN_URL.sub(rf"\1{MASK}@", _IN_TEXT.sub(MASK, text))
    return _ASSIGNED.sub(lambda m: f"{m[1]}{m[2]}{m[3]}{MASK}{m[3]}" if names_secret(m[1]) else m[0], text)


def masked_values(value: Any, name: str = "") -> Any:
    """A configuration (dicts and lists of plain values) without secrets."""
    if isinstance(value, dict):
        return {key: masked_values(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked_values(item, name) for item in value]
    if name and names_secret(name) and value not in (None, "", False, True):
        return MASK
    if isinstance(value, str):
        return MASK if is_secret(value) else masked_text(value)
    return value
