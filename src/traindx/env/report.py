"""The report of ``traindx env``: on a terminal, and as JSON (CONTRACTS "env")."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from traindx import messages
from traindx.core.amounts import binary_size
from traindx.core.codec import encode
from traindx.core.text import EMPTY, Language, Text, same
from traindx.env import words
from traindx.env.facts import Device, Facts
from traindx.env.judging import Problem, built_for, is_sound, label
from traindx.reporters.layout import pad, printable, width, wrap
from traindx.reporters.style import PLAIN, Style

SCHEMA = 1
COLOUR = {"broken": "error", "warning": "warning", "note": "note"}


def document(facts: Facts, found: list[Problem], language: Language) -> dict[str, Any]:
    """As CONTRACTS says; every fact that was judged is in it."""
    lock = encode(dataclasses.asdict(facts.lock)) if facts.lock else None
    return {"schema": SCHEMA, "ok": is_sound(found), "python": facts.python, "torch": encode(dataclasses.asdict(facts.torch)),
            "devices": [_device(device) for device in facts.devices], "drivers": [encode(dataclasses.asdict(d)) for d in facts.drivers],
            "platform": {"system": facts.system, "release": facts.release, "machine": facts.machine, "cores": facts.cores,
                         "memory_bytes": facts.memory_bytes}, "variables": facts.variables, "lock": lock,
            "problems": [{"what": problem.what.say(language), "fix": problem.fix.say(language), "level": problem.level, "id": problem.id}
                         for problem in found]}


def _device(device: Device) -> dict[str, Any]:
    fields: dict[str, Any] = dataclasses.asdict(device)
    return fields


def render(facts: Facts, found: list[Problem], language: Language, style: Style = PLAIN, columns: int = 80) -> str:
    return "\n".join(_lines(facts, found, language, style, columns)) + "\n"


def _lines(facts: Facts, found: list[Problem], language: Language, style: Style, columns: int) -> Iterator[str]:
    head = f"── {messages.NAME} env ── "
    yield style.strong(head + "─" * (columns - width(head)))
    rows = [(words.PYTHON, same(f"{facts.python}  {facts.executable}")), (words.PLATFORM, _platform(facts)), *_torch(facts)]
    rows += [(words.LOCK, _lock(facts))]
    margin = max(width(text.say(language)) for text, _ in rows) + 2
    for heading, value in rows:
        yield from wrap(printable(value.say(language)), columns, pad(heading.say(language), margin))
    yield style.strong(words.DEVICES.say(language))
    for device in facts.devices:
        yield from _device_lines(device, language, style, columns)
    for problem in found:
        yield ""
        yield from _problem(problem, language, style, columns)
    yield ""
    yield _verdict(found, language, style)


def _platform(facts: Facts) -> Text:
    size = messages.LIST_COMMA + same(binary_size(facts.memory_bytes)) if facts.memory_bytes else EMPTY
    threads = words.THREADS_OF.fill(cores=facts.cores, threads=facts.torch.threads or "?")
    return same(f"{facts.system} {facts.release} {facts.machine}") + size + messages.LIST_COMMA + threads


def _torch(facts: Facts) -> Iterator[tuple[Text, Text]]:
    torch = facts.torch
    build = built_for(facts) or ("MPS" if torch.mps_built else "CPU")
    cudnn = f", cuDNN {torch.cudnn}" if torch.cudnn else ""
    blas = f", BLAS {torch.blas}" if torch.blas else ""
    yield words.TORCH, same(f"{torch.version or '-'} ({build}{cudnn}{blas})") if torch.version else words.NONE
    for driver in facts.drivers:
        yield words.DRIVER, same(f"{driver.vendor} {driver.version or driver.error or '?'}")


def _lock(facts: Facts) -> Text:
    lock = facts.lock
    if lock is None:
        return words.NONE
    return words.LOCK_LINE.fill(file=lock.file, checked=lock.checked, drift=len(lock.drift), missing=len(lock.missing), unpinned=lock.unpinned)


def _device_lines(device: Device, language: Language, style: Style, columns: int) -> Iterator[str]:
    memory = f", {binary_size(device.memory_bytes)}" if device.memory_bytes else ""
    capability = f", {device.capability}" if device.capability else ""
    proof = device.proof
    works = proof is not None and proof.softmax_sums and proof.step
    said = words.NOT_TRIED if proof is None else words.WORKS if works else words.FAILS
    lead = printable(f"  {label(device)}{memory}{capability}{messages.COLON.say(language)}")
    lines = wrap(said.say(language), columns, lead, "    ")
    yield from (lines if works else [style.level(line, "error") for line in lines])


def _problem(problem: Problem, language: Language, style: Style, columns: int) -> Iterator[str]:
    level = words.LEVELS[problem.level].say(language)
    first, *rest = wrap(printable(problem.what.say(language)), columns, f"{level}  ", "  ")
    yield style.level(level, COLOUR[problem.level]) + first[len(level):]
    yield from rest
    yield from wrap(printable(problem.fix.say(language)), columns, f"  {(words.FIX + messages.COLON).say(language)}", "    ")


def _verdict(found: list[Problem], language: Language, style: Style) -> str:
    broken = sum(problem.level == "broken" for problem in found)
    if broken:
        return style.level(words.BROKEN.fill(count=broken).say(language), "error")
    return style.paint((words.SOUND_BUT if found else words.SOUND).say(language), 1, 32)
