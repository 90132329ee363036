"""Who may speak to the studio: a browser on this machine that holds the token, from the studio's own page."""
from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

DAY = 86400.0  # seconds after which a kept token is replaced
TOKEN = re.compile(r"[\w-]{32,}", re.ASCII)
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")  # Plotly sets styles on what it draws
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
           "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"}


def token_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "traindx" / "studio-token"


def kept_token(file: Path | None = None) -> str:
    """The token of the last days, so that a page finds its studio again after a restart; only its owner may read the file."""
    file = file or token_file()
    try:
        kept = file.read_text().strip()
        if time.time() - file.stat().st_mtime < DAY and TOKEN.fullmatch(kept):
            return kept
    except (OSError, ValueError):
        pass  # none yet, or what is no token
    token = secrets.token_urlsafe(32)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(token)
    except OSError:
        pass  # a home that may not be written: this token lives as long as the process
    return token


class Guard:
    """ASGI middleware: Host, Origin and token are checked before anything else sees a request, on http and websocket alike."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self.token, self.port = app, token, port
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"traindx_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        refused = self._refusal(headers, asked)
        if refused is not None:
            await _refuse(scope, receive, send, refused)
        elif asked and scope["type"] == "http":
            await self._welcome(scope, send)
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, headers: dict[str, str], asked: str) -> str | None:
        """Why a request is turned away; None for ours."""
        if headers.get("host") not in self.hosts:  # another name that leads here: DNS rebinding
            return "This host is not served here."
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return "Requests from another origin are refused."
        if not any(hmac.compare_digest(given.encode(), self.token.encode()) for given in self._tokens(headers, asked)):
            return "The token is missing or wrong: open the address that `traindx studio` printed."
        return None

    def _tokens(self, headers: dict[str, str], asked: str) -> list[str]:
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            jar = SimpleCookie()
        cookie = jar[self.cookie].value if self.cookie in jar else ""
        return [asked, cookie, headers.get("authorization", "").removeprefix("Bearer ")]

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """From the printed address to the page: the token moves from the URL, which may be shown, into a cookie."""
        cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        place = "/" + quote(scope["path"].lstrip("/"))  # two slashes would lead to another host
        await send({"type": "http.response.start", "status": 303, "headers": [
            (b"location", place.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]})
        await send({"type": "http.response.body", "body": b""})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items() if name.lower().encode() not in present]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)
    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # before it was accepted: the browser sees 403
        return
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
