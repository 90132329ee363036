"""Processes that compute for the page, off the event loop, and can be killed in the middle of it."""
from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from traindx.core.text import Text
from traindx.studio import describing, jobs

SLOW = Text("This took longer than {seconds} s and was stopped.", "超过 {seconds} 秒还没算完，已经停下。")
DIED = Text("The computing process died (out of memory?). Ask again.", "计算进程意外退出（内存不够？）。请再试一次。")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """``limit``: seconds after which its process is killed. A ``light`` one that nobody wants any more is left to finish."""

    name: str
    arguments: tuple[Any, ...] = ()
    limit: float = 60.0
    light: bool = False


def serve(connection: Connection) -> None:
    """The life of a worker: answers jobs until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    while True:
        try:
            name, arguments = connection.recv()
            connection.send_bytes(jobs.answer(name, arguments))
        except (EOFError, OSError):
            return


def context() -> Any:
    """Where the system can fork, from a process that has torch loaded: a killed worker is back within milliseconds."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["traindx.studio.warm"])
    return found


class Worker:
    """One process, one job at a time, the others wait in turn."""

    def __init__(self) -> None:
        self._context = context()
        self._lock = asyncio.Lock()
        self._process: Any = None
        self._connection: Any = None

    async def ask(self, job: Job) -> bytes:
        """The answer as JSON. Cancelling a job that waits drops it; one that is being computed is killed unless it is light."""
        async with self._lock:
            running = asyncio.ensure_future(self._compute(job))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                if not job.light:
                    self.stop()
                await asyncio.wait([running])
                raise

    async def _compute(self, job: Job) -> bytes:
        loop = asyncio.get_running_loop()
        if self._process is None or not self._process.is_alive():
            await loop.run_in_executor(None, self._start)
        timer = loop.call_later(job.limit, self.stop)
        began = loop.time()
        try:
            return await loop.run_in_executor(None, self._exchange, job)
        except (EOFError, OSError):
            self._process = None
            slow = loop.time() - began >= job.limit
            text = SLOW.fill(seconds=f"{job.limit:g}") if slow else DIED
            return jobs.encoded({"error": describing.pair(text)})
        finally:
            timer.cancel()

    def _exchange(self, job: Job) -> bytes:
        self._connection.send((job.name, job.arguments))
        answer: bytes = self._connection.recv_bytes()
        return answer

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
