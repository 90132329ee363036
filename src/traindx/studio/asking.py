"""What the page asks over its websocket, and what it is answered. Of several questions about one lab only the latest counts."""
from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.websockets import WebSocketDisconnect

from traindx.core.text import Text
from traindx.errors import UsageError
from traindx.studio import describing, jobs
from traindx.studio.jobs import encoded
from traindx.studio.workers import Job, Worker

if TYPE_CHECKING:
    from traindx.toys import Toys

NOT_KNOWN = Text("The page asked {ask!r}, which this studio does not know.", "页面请求了 {ask!r}，这个 studio 不认识。")
MOST_TASKS = 32  # questions of one page that are being answered
LIMIT = 60.0  # seconds
LONG_LIMIT = 600.0  # the first answer waits until torch is loaded, which takes minutes on a busy machine; a large record is read once
SEEDS = 1000
LOOK = 1.0  # seconds between two looks at a run that is written
MOST_RUNS = 12  # over each other


class Studio:
    """What all pages share: the workers and the folder of runs."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.quick, self.slow = Worker(), Worker()
        self._catalogue: asyncio.Task[bytes] | None = None
        self.light: set[str] = set()
        self._trained: Toys | None = None
        self._opening = threading.Lock()

    async def open(self) -> None:
        self._asked()

    def _asked(self) -> asyncio.Task[bytes]:
        """The catalogue, which is made once; one that failed is asked for anew."""
        if self._catalogue is None:
            self._catalogue = asyncio.ensure_future(self.quick.ask(Job("catalogue", limit=LONG_LIMIT, light=True)))
            self._catalogue.add_done_callback(self._learn)
        return self._catalogue

    def _learn(self, done: asyncio.Task[bytes]) -> None:
        found = {} if done.cancelled() or done.exception() else json.loads(done.result())
        if "answer" in found:
            self.light = {lab["name"] for lab in found["answer"]["labs"] if lab["light"]}
        else:
            self._catalogue = None

    def close(self) -> None:
        for worker in (self.quick, self.slow):
            worker.stop()
        if self._trained is not None:
            self._trained.close()

    async def catalogue(self) -> bytes:
        return await asyncio.shield(self._asked())

    async def lab(self, name: str, state: Mapping[str, Any]) -> bytes:
        await self.catalogue()
        light = name in self.light
        worker = self.quick if light else self.slow
        return await worker.ask(Job("lab", (name, dict(state)), LIMIT, light))

    async def leaf(self, rule: str, seed: int) -> bytes:
        """Trains a rule's two programs, in processes of their own; stopped when nobody waits any more."""
        from traindx.core.rules import all_rules
        if rule not in all_rules():
            raise UsageError(jobs.NO_RULE.fill(name=rule))
        dropped = threading.Event()
        try:
            drawing = await asyncio.to_thread(lambda: describing.leaf(self._toys(), rule, seed, dropped.is_set))
        except asyncio.CancelledError:
            dropped.set()
            raise
        return encoded({"answer": drawing})

    def _toys(self) -> Toys:
        with self._opening:
            if self._trained is None:
                from traindx.toys import Toys
                self._trained = Toys()
            return self._trained

    async def record(self, name: str, *arguments: Any) -> bytes:
        """A question about runs, by a job of records.py."""
        return await self.slow.ask(Job(name, (str(self.runs_dir), *arguments), LONG_LIMIT, light=True))

    async def page_of(self, run: str, name: str) -> str | None:
        from traindx.studio.records import page_of
        return await asyncio.to_thread(page_of, self.runs_dir, run, name)

    async def follow(self, name: str, tell: Callable[[Any], Awaitable[None]]) -> None:
        """Tells a run's curves as they are read, and as they grow, until the run is over."""
        from traindx.studio.records import Live
        live = await asyncio.to_thread(Live, self.runs_dir, name)
        while True:
            news = await asyncio.to_thread(live.news)
            if news is not None:
                await tell(news)
            if live.over:
                return
            await asyncio.sleep(LOOK if live.up_to_date else 0.02)


class Conversation:
    """One page's websocket. ``{"id", "ask", ...}`` is answered by ``{"id", "answer"}`` or ``{"id", "error"}``."""

    def __init__(self, studio: Studio, receive: Callable[[], Awaitable[str]], send: Callable[[str], Awaitable[None]]) -> None:
        self.studio, self._receive, self._send = studio, receive, send
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asks: dict[str, Callable[[Mapping[str, Any]], Awaitable[bytes]]] = {
            "catalogue": lambda asked: studio.catalogue(),
            "lab": lambda asked: studio.lab(str(asked.get("name")), _mapping(asked.get("state"))),
            "leaf": lambda asked: studio.leaf(str(asked.get("name")), _count(asked.get("seed"))),
            "runs": lambda asked: studio.record("runs"),
            "run": lambda asked: studio.record("run", str(asked.get("name"))),
            "checklist": lambda asked: studio.record("checklist", str(asked.get("name"))),
            "compare": lambda asked: studio.record("compare", _names(asked.get("names"))),
            "note": lambda asked: studio.record("note", str(asked.get("name")), _mapping(asked.get("lines"))),
            "watch": self._watch,
            "rule": lambda asked: studio.quick.ask(Job("rule", (str(asked.get("name")),), LIMIT, light=True)),
        }

    async def hold(self) -> None:
        """Until the page closes it, or says what is no message of ours."""
        try:
            while True:
                message = json.loads(await self._receive())
                if not isinstance(message, dict) or len(self._tasks) >= MOST_TASKS:
                    return
                self._take(message)
        except (WebSocketDisconnect, ValueError, RuntimeError, RecursionError, KeyError):
            return  # closed, or not JSON
        finally:
            for task in self._tasks.values():
                task.cancel()

    def _take(self, message: Mapping[str, Any]) -> None:
        ask = message.get("ask")
        key = f"lab {message.get('name')}" if ask == "lab" else str(ask) if ask in ("leaf", "watch") else f"# {message.get('id')}"
        if (before := self._tasks.get(key)) is not None:
            before.cancel()
        task = asyncio.ensure_future(self._answer(message))
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._tasks.pop(key) if self._tasks.get(key) is done else None)

    async def _watch(self, asked: Mapping[str, Any]) -> bytes:
        """News are pushed while the question is open; it is answered when nothing more will come. Only one run is watched."""
        name = str(asked.get("name"))

        async def tell(news: Any) -> None:
            await self._send(encoded({"push": name, **news}).decode())
        await self.studio.follow(name, tell)
        return encoded({"answer": None})

    async def _answer(self, message: Mapping[str, Any]) -> None:
        ask = self._asks.get(str(message.get("ask")))
        try:
            if ask is None:
                raise UsageError(NOT_KNOWN.fill(ask=message.get("ask")))
            found = await ask(message)
        except UsageError as problem:
            found = encoded({"error": describing.pair(problem.text)})
        except Exception as problem:
            found = encoded({"error": f"{type(problem).__name__}: {problem}"})
        with suppress(WebSocketDisconnect, RuntimeError):  # the page is gone
            await self._send(f'{{"id":{json.dumps(message.get("id"))},{found.decode()[1:]}')


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value % SEEDS if isinstance(value, int) else 0


def _names(value: Any) -> list[str]:
    return [str(name) for name in value][:MOST_RUNS] if isinstance(value, list) else []
