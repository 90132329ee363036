"""Who may speak to the studio: not another host name, not another origin, not without the token; and no path leads to a file."""
from __future__ import annotations

import http.client
import json
import re
import stat

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from studio.serving import finished
from traindx.studio.guard import Guard, kept_token


def get(studio, path="/", **headers):
    """The answer to a request with exactly these headers: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=60)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def bearer(studio):
    return {"Authorization": f"Bearer {studio.token}"}


def test_with_its_token_the_page_is_served_under_a_strict_policy(studio):
    status, headers, body = get(studio, **bearer(studio))
    assert status == 200 and b"traindx studio" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
    assert headers["cross-origin-resource-policy"] == "same-origin" and headers["x-content-type-options"] == "nosniff"


def test_the_printed_address_moves_the_token_into_a_cookie(studio):
    status, headers, _ = get(studio, f"/?token={studio.token}")
    assert status == 303 and headers["location"] == "/"
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert get(studio, Cookie=cookie.split(";")[0])[0] == 200


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/plotly.min.js", "/pages/a/b", "/?token=wrong"])
def test_without_the_token_nothing_is_served(studio, path):
    assert get(studio, path)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.nip.io:{port}"])
def test_another_host_name_that_leads_here_is_refused(studio, host):
    assert get(studio, Host=host.format(port=studio.port), **bearer(studio))[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_another_origin_is_refused(studio, origin):
    assert get(studio, Origin=origin.format(port=studio.port), **bearer(studio))[0] == 403


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static/index.html",
                                  "/pages/../../etc/passwd", "/pages/..%2f..%2fetc/passwd", "/pages/2026-01-01-0900-softmax/run.json"])
def test_no_path_leads_to_a_file(studio, path):
    assert get(studio, path, **bearer(studio))[0] == 404


def socket(studio, headers, origin=None, query=""):
    return connect(f"ws://127.0.0.1:{studio.port}/socket{query}", additional_headers=headers, origin=origin)


@pytest.mark.parametrize("headers, origin", [({}, None), ({"Authorization": "Bearer wrong"}, None), ("ours", "http://evil.example"), ("ours", "null")])
def test_the_websocket_is_refused_alike(studio, headers, origin):
    with pytest.raises(InvalidStatus) as refused, socket(studio, bearer(studio) if headers == "ours" else headers, origin):
        pass
    assert refused.value.response.status_code == 403


def test_the_websocket_under_another_host_is_refused(studio):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert get(studio, "/socket", Host=f"evil.example:{studio.port}", **upgrade, **bearer(studio))[0] == 403
    assert get(studio, "/socket", **upgrade, **bearer(studio))[0] == 101


def asked(studio, *messages):
    with socket(studio, bearer(studio), f"http://127.0.0.1:{studio.port}") as line:
        for message in messages:
            line.send(json.dumps(message))
        return [json.loads(line.recv(timeout=120)) for _ in messages]


def test_bad_questions_are_answered_with_what_is_wrong(studio):
    answers = asked(studio, {"id": 1, "ask": "no such"}, {"id": 2, "ask": "lab", "name": "nope", "state": {}}, {"id": 3, "ask": "rule", "name": "../x"},
                    {"id": 4, "ask": "leaf", "name": "x/y", "seed": []})
    said = {answer["id"]: answer["error"]["$"] for answer in answers}
    assert "no such" in said[1][0] and "bowl" in said[2][0] and "../x" in said[3][1] and "x/y" in said[4][0]


def test_what_is_no_message_ends_the_conversation_only(studio):
    for words in ("no json", "[]", '"x"', "[" * 5000):
        with socket(studio, bearer(studio)) as line:
            line.send(words)
            with pytest.raises(ConnectionClosed):
                line.recv(timeout=60)
    assert asked(studio, {"id": 1, "ask": "catalogue"})[0]["answer"]["labs"]


def test_wild_states_become_positions(studio):
    (answer,) = asked(studio, {"id": 1, "ask": "lab", "name": "bowl", "state": {"rate": "NaN", "curvature": 100, "x": {}}})
    assert answer["answer"]["state"]["curvature"] == 4.0


def test_the_token_is_kept_for_its_owner_only(tmp_path):
    file = tmp_path / "state" / "token"
    token = kept_token(file)
    assert len(token) >= 32 and kept_token(file) == token and stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("short")
    assert len(kept_token(file)) >= 32
    assert len(kept_token(file / "below a file")) >= 32  # a place that cannot be written


@pytest.mark.parametrize("junk", [b"\xff" * 50, "é".encode() * 50, b"two words " * 9, b"a\n" * 50])
def test_a_token_file_that_holds_no_token_is_written_anew(tmp_path, junk):
    file = tmp_path / "token"
    file.write_bytes(junk)
    token = kept_token(file)
    assert re.fullmatch(r"[A-Za-z0-9_-]{32,}", token) and file.read_text() == token


def test_the_way_to_the_page_stays_here():
    """Two slashes would lead to another host; line ends and other letters are escaped."""
    sent = []

    async def send(message):
        sent.append(message)
    for path in ("/", "//elsewhere.example/", "/\r\nx:y", "/中"):
        finished(Guard(None, "t" * 40, 80)._welcome({"path": path}, send))
    places = [dict(message["headers"])[b"location"] for message in sent if "headers" in message]
    assert places == [b"/", b"/elsewhere.example/", b"/%0D%0Ax%3Ay", b"/%E4%B8%AD"]


def test_a_cookie_that_is_none_is_no_token():
    guard = Guard(None, "t" * 40, 80)
    for cookie in ("", "=;;=", "traindx_80=", "traindx_80=é", "\x00"):
        assert guard._refusal({"host": "127.0.0.1:80", "cookie": cookie}, "") is not None
