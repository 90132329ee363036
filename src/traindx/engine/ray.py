"""Trials on a Ray cluster: the project and this package are shipped, each trial is a task of one core.

On a worker a trial runs as it does here, by a :class:`LocalEngine` that stays warm: same sandbox, same budgets, same results.
"""
from __future__ import annotations

import base64
import importlib
import json
import os
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx.core.codec import encode
from traindx.core.text import Text
from traindx.core.trials import Program, Trace, Trial, ending, to_json, trial_from
from traindx.engine.local import PERFORMER, LocalEngine, OnDone, OnMessage, finished, ignore
from traindx.engine.places import beneath, places_of
from traindx.errors import UsageError

TRIES = 3  # of a trial whose worker is lost
LOST = Text("{problem}, {tries} time{tries:|s}: {words}", "{problem}，共 {tries} 次：{words}")
LEFT_AT_HOME = (".git", ".hg", "__pycache__", "node_modules", ".venv", "venv", "runs", "wandb", "mlruns", "lightning_logs")
CANCEL_SECONDS = 5.0
KNOCK_SECONDS = 10.0

NO_RAY = Text("running on Ray needs the package ray, which is not installed: pip install 'traindx[ray]'",
              "在 Ray 上运行需要 ray 这个包，这里没有装：pip install 'traindx[ray]'")
NO_CLUSTER = Text("no Ray cluster at {address}: {problem}. A cluster that asks for a token needs RAY_AUTH_TOKEN in the environment.",
                  "{address} 处没有可用的 Ray 集群：{problem}。集群若要求令牌，环境变量里需要有 RAY_AUTH_TOKEN。")
ELSEWHERE = Text("on Ray the working directory must lie in the project that is shipped ({root}), but is {cwd}. Start the program from there.",
                 "在 Ray 上，工作目录必须位于要发送的项目里（{root}），现在是 {cwd}。请从项目里启动程序。")
ONE_PROJECT = Text("one Ray engine serves one project: {root}, not {other}", "一个 Ray 引擎只服务一个项目：{root}，不能是 {other}")


@dataclass
class RayEngine:
    """``address``: ``ray://host:port``, ``auto`` or ``host:port`` of a running cluster; None: the one that the environment
    names, else a new one on this machine. ``folder``: where recordings are kept. Messages of a trial come when it is
    done, not step by step. Raises UsageError where there is no Ray, no cluster, or nothing that could be shipped.
    """

    address: str | None = None
    folder: Path | None = None
    sandbox: str | None = None
    isolate: bool = False
    performer: str = PERFORMER
    root: str | None = None  # of the project, once it has been shipped
    ours: bool = False  # the connection, to be closed by us
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.ray: Any = importlib.import_module("ray")
        except ImportError:
            raise UsageError(NO_RAY) from None

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self.ours:
            self.ray.shutdown()
            self.ours = False
        from traindx.engine.sandbox import remove_tree
        while self.made:
            remove_tree(self.made.pop())

    def run(self, trials: Sequence[Trial], on_done: OnDone | None = None, on_message: OnMessage | None = None) -> list[Trace]:
        """As :meth:`Engine.run`."""
        if not trials:
            return []
        self._connect(trials[0].program)
        sweep = _Sweep(self, list(trials), on_done or ignore, on_message or ignore)
        return finished(sweep, len(trials))

    def _connect(self, program: Program) -> None:
        root = root_of(program)
        if self.root is None:
            shipped = {"working_dir": root, "py_modules": [str(Path(__file__).parents[1])], "excludes": list(LEFT_AT_HOME),
                       "env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
            try:
                _knock(self.address)
                self.ray.init(address=self.address, runtime_env=shipped, log_to_driver=False, logging_level="error")
            except (ConnectionError, RuntimeError, ValueError, OSError) as problem:
                raise UsageError(NO_CLUSTER.fill(address=self.address or "ray", problem=str(problem).strip().split("\n")[0])) from None
            self.root, self.ours = root, True
        elif root != self.root:
            raise UsageError(ONE_PROJECT.fill(root=self.root, other=root))

    def submit(self, trial: Trial) -> Any:
        """The reference to a task's result."""
        if root_of(trial.program) != self.root:
            raise UsageError(ONE_PROJECT.fill(root=self.root, other=root_of(trial.program)))
        options = {"sandbox": self.sandbox, "isolate": self.isolate, "performer": self.performer}
        task = self.ray.remote(num_cpus=1, max_retries=0)(work)
        return task.remote(to_json(trial), self.root, options)

    def folder_for(self, index: int) -> Path:
        """A new one for what a trial has recorded."""
        if self.folder is None:
            self.made.append(tempfile.mkdtemp(prefix="traindx-"))
            return Path(self.made[-1])
        self.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"trial{index}-", dir=self.folder))


def _knock(address: str | None) -> None:
    """Raises OSError at once where nobody listens; Ray itself would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()


def root_of(program: Program) -> str:
    """The folder that is shipped: the project of the script, in which the working directory must lie."""
    places = places_of(program)
    if not places.projects or not beneath(places.cwd, places.projects[0]):
        raise UsageError(ELSEWHERE.fill(root=places.projects[0] if places.projects else "/", cwd=places.cwd))
    return places.projects[0]


@dataclass
class _Sweep:
    """One call of ``run``: what is on its way, by reference."""

    engine: RayEngine
    trials: list[Trial]
    on_done: OnDone
    on_message: OnMessage
    running: dict[Any, int] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    done: dict[int, Trace] = field(default_factory=dict)

    def go(self) -> None:
        for index in range(len(self.trials)):
            self._submit(index)
        while self.running:
            ready, _ = self.engine.ray.wait(list(self.running), num_returns=1, timeout=1.0)
            for reference in ready:
                self._collect(reference, self.running.pop(reference))

    def _submit(self, index: int) -> None:
        self.tries[index] = self.tries.get(index, 0) + 1
        self.running[self.engine.submit(self.trials[index])] = index

    def _collect(self, reference: Any, index: int) -> None:
        errors = self.engine.ray.exceptions
        try:
            result = self.engine.ray.get(reference)
        except (errors.RaySystemError, errors.ObjectLostError, errors.WorkerCrashedError, errors.NodeDiedError,
                errors.LocalRayletDiedError, errors.OutOfMemoryError) as problem:
            if self.tries[index] < TRIES:
                self._submit(index)
                return
            trace = Trace()
            trace.take({"end": ending("lost", LOST.fill(problem=type(problem).__name__, tries=TRIES, words=_first_line(problem)))})
        except errors.RayError as problem:
            trace = Trace(ended="refused", error=f"{type(problem).__name__}: {_first_line(problem)}")
        else:
            trace = self._trace(index, result)
        self.done[index] = trace
        self.on_done(index, trace)

    def _trace(self, index: int, result: dict[str, Any]) -> Trace:
        trace = Trace()
        for line in result["messages"]:
            message = json.loads(line)
            trace.take(message)
            self.on_message(index, message)
        if result["files"]:
            folder = self.engine.folder_for(index)
            for name, content in result["files"].items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(content))
            trace.recording = str(folder)
        return trace

    def stop(self) -> None:
        """Gently, so that servers stay warm; then by force."""
        ray = self.engine.ray
        for force in (False, True):
            for reference in self.running:
                with suppress(Exception):
                    ray.cancel(reference, force=force)
            if self.running:
                _, left = ray.wait(list(self.running), num_returns=len(self.running), timeout=CANCEL_SECONDS)
                self.running = {reference: self.running[reference] for reference in left}


def _first_line(problem: BaseException) -> str:
    lines = [line for line in str(problem).strip().splitlines() if line.strip()]
    return lines[-1 if type(problem).__name__ == "RayTaskError" else 0].strip()[:500] if lines else ""


# -- on a worker ------------------------------------------------------------------------------------------------------

_warm: dict[str, LocalEngine] = {}


def work(trial: Any, root: str, options: dict[str, Any]) -> dict[str, Any]:
    """One trial, in the copy of the project that Ray has laid out in the working directory: the messages as JSON, with
    paths of ``root`` again, and the files of the recording."""
    here = os.getcwd()
    os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "").replace(root, here)
    key = json.dumps(options, sort_keys=True)
    if key not in _warm:
        _warm[key] = LocalEngine(jobs=1, **options)
    messages: list[dict[str, Any]] = []
    trace = _warm[key].run([moved(trial_from(trial), root, here)], on_message=lambda _, message: messages.append(message))[0]
    if not any("end" in message for message in messages):
        messages.append({"end": {"ended": trace.ended, "error": trace.error, "said": encode(trace.said)}})
    lines = [json.dumps(encode(message)).replace(here, root) for message in messages]
    return {"messages": lines, "files": dict(_files_in(trace.recording, here, root)) if trace.recording else {}}


def moved(trial: Trial, root: str, here: str) -> Trial:
    """The trial with the paths of another copy of its project."""
    program = trial.program
    cwd = os.path.realpath(program.cwd)
    script = program.script and os.path.relpath(os.path.realpath(os.path.join(cwd, program.script)), cwd)
    args = tuple(word.replace(root, here) if root in word else word for word in program.args)
    return replace(trial, program=replace(program, script=script, cwd=here + cwd[len(root):], args=args))


def _files_in(folder: str, here: str, root: str) -> list[tuple[str, str]]:
    """(name, content as base64); what is read by people or rules names the user's paths."""
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix in (".json", ".jsonl"):
                content = content.replace(here.encode(), root.encode())
            found.append((str(path.relative_to(folder)), base64.b64encode(content).decode()))
    return found
