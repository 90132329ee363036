"""The page on this machine only, with its marks saved into a file as they are made."""
from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MOST = 4 << 20  # bytes of marks


class Review(ThreadingHTTPServer):
    """Serves one page at an address that nobody guesses; ``url`` is it."""

    daemon_threads = True

    def __init__(self, html: str, marks: Path, port: int = 0, opened: Callable[[], None] = lambda: None) -> None:
        self.opened = opened  # called when somebody looks at the page
        super().__init__(("127.0.0.1", port), _Handler)
        self.path = f"/{secrets.token_urlsafe(16)}/"
        self.html = html.replace("</body>", f'<script>window.traindxSave = "{self.path}marks";</script></body>', 1)
        self.marks = marks

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"


class _Handler(BaseHTTPRequestHandler):
    server: Review

    def _is_ours(self) -> bool:
        """Only from this machine's own address: a page elsewhere cannot make a browser speak to us under another name."""
        return self.headers.get("Host", "").split(":")[0] in ("127.0.0.1", "localhost")

    def do_GET(self) -> None:
        if not self._is_ours() or self.path != self.server.path:
            self.send_error(404)
            return
        data = self.server.html.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.server.opened()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if not self._is_ours() or self.path != f"{self.server.path}marks" or length > MOST:
            self.send_error(404)
            return
        try:
            marks = json.loads(self.rfile.read(length))
            partial = self.server.marks.with_suffix(".partial")
            partial.write_text(json.dumps(marks, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            os.replace(partial, self.server.marks)
        except (ValueError, OSError):
            self.send_error(500)
            return
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody asked for a log."""
