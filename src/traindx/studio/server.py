"""The studio's server: one page, its few files, and a websocket on which the page asks. Loopback only."""
from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from traindx.core.text import Language
from traindx.studio.asking import Conversation, Studio
from traindx.studio.guard import POLICY, Guard

HOST = "127.0.0.1"
PORTS = 20  # how many after the wanted one are tried
MOST = 2**16  # bytes of one message from the page
STATIC = Path(__file__).with_name("static")
# in an order in which each needs only those before it
SCRIPTS = ("dom.js", "words.js", "address.js", "socket.js", "figures.js", "labs.js", "tree.js", "rules.js", "runs.js", "app.js")
FILES = {**dict.fromkeys(SCRIPTS, "text/javascript"), "style.css": "text/css"}


def plotly_file() -> Path:
    """plotly.min.js as the installed package brings it."""
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"


@cache
def _plotly() -> bytes:
    return plotly_file().read_bytes()


def index_page(language: Language) -> str:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    return page.replace("@@LANGUAGE@@", "zh-CN" if language == "zh" else "en")


def application(studio: Studio, language: Language) -> Starlette:
    """The page under ``/``; nothing that the client names is a path on disk."""
    async def index(request: Request) -> Response:
        return HTMLResponse(index_page(language))

    async def script(request: Request) -> Response:
        name = request.path_params["name"]
        return Response((STATIC / name).read_bytes(), media_type=FILES[name]) if name in FILES else Response(status_code=404)

    async def plotly(request: Request) -> Response:
        return Response(_plotly(), media_type="text/javascript", headers={"Cache-Control": "private, max-age=86400"})

    async def page(request: Request) -> Response:
        found = await studio.page_of(request.path_params["run"], request.path_params["name"])
        if found is None:
            return Response(status_code=404)
        policy = POLICY.replace("script-src 'self'", "script-src 'unsafe-inline'").replace("connect-src 'self'", "connect-src 'none'")
        return HTMLResponse(found, headers={"Content-Security-Policy": f"{policy}; sandbox allow-scripts"})

    async def speak(websocket: WebSocket) -> None:
        await websocket.accept()
        await Conversation(studio, websocket.receive_text, websocket.send_text).hold()

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await studio.open()
        yield
        studio.close()

    return Starlette(lifespan=life, routes=[
        Route("/", index), Route("/static/{name}", script), Route("/plotly.min.js", plotly), Route("/pages/{run}/{name}", page),
        WebSocketRoute("/socket", speak)])


def listen(port: int) -> socket.socket:
    """A socket on the wanted port or the next free one; 0 lets the system choose. Raises OSError where none is free."""
    for wanted in range(port, port + (PORTS if port else 1)):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, wanted))
            made.listen(64)  # two that are bound with SO_REUSEADDR are told apart only here
            return made
        except OSError as problem:
            made.close()
            refusal = problem
    raise refusal


def serve(listening: socket.socket, studio: Studio, token: str, language: Language, ready: Callable[[], None]) -> None:
    """Serves until Ctrl-C. ``ready`` is called when the page can be opened."""
    app = Guard(application(studio, language), token, listening.getsockname()[1])
    settings = uvicorn.Config(app, log_level="critical", ws_max_size=MOST, server_header=False, timeout_graceful_shutdown=1, lifespan="on")
    server = uvicorn.Server(settings)
    ready()
    server.run(sockets=[listening])
