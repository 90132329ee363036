"""``traindx studio``: the tree, the labs and the reader's own runs in a browser."""
from __future__ import annotations

import argparse
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from traindx.core.text import Language, Text, language_from
from traindx.errors import UsageError, reason

ABOUT = Text("the diagnosis tree, the labs and your runs in a browser", "在浏览器里看诊断树、动手实验和你的运行记录")
DETAILS = Text("Serves one page on this machine only (127.0.0.1), at an address with a token in it. Nothing is fetched from elsewhere, and the "
               "only thing that it ever writes on request is a run's notes.md. --export writes a chapter that needs no server.",
               "只在本机（127.0.0.1）提供一个页面，地址里带有令牌。页面不从别处取任何东西；它只在你要求时写一个文件：运行记录里的 "
               "notes.md。--export 写出一个不需要服务器的文件。")
OPT_DIR = Text("folder of the runs (default: runs)", "运行记录所在的文件夹（默认 runs）")
OPT_PORT = Text("port to listen on (default: {port}; the next free one where it is taken; 0: any)",
                "监听的端口（默认 {port}；占用了就用下一个空闲的；0：任意）")
OPT_NO_BROWSER = Text("do not open a browser", "不打开浏览器")
OPT_EXPORT = Text("write everything into one HTML file that needs no server, and end", "把全部内容写进一个不需要服务器的 HTML 文件，然后结束")
OPT_RUN = Text("with --export: a run to take along", "和 --export 一起用：把一次运行也放进去")
WROTE = Text("Wrote {file}: {size} MB, opens from disk and from any static host", "已写入 {file}：{size} MB，直接打开或放到任意静态网站都可以")
TOO_LARGE = Text("traindx: the file is larger than {most} MB", "traindx：文件超过了 {most} MB")
RUN_ALONE = Text("--run {run}: only with --export; a served studio shows every run",
                 "--run {run} 只能和 --export 一起用；studio 本来就会显示每次运行")
NO_FOLDER = Text("there is no folder {folder}", "没有文件夹 {folder}")
CANNOT_WRITE = Text("--export: cannot write {file}: {problem}", "--export：写不了 {file}：{problem}")
MISSING = Text("traindx studio needs packages that are not installed: {names}. Install them with: pip install 'traindx[studio]'",
               "traindx studio 需要的包还没有装：{names}。请运行：pip install 'traindx[studio]'")
NOT_READABLE = Text("--runs-dir {folder}: cannot be read ({problem}); a folder that you may list is needed",
                    "--runs-dir {folder}：读不了（{problem}）；请换一个可以列出内容的文件夹")
NOT_A_PORT = Text("--port: {value!r} is not a port; a whole number from 0 to 65535 is needed",
                  "--port：{value!r} 不是端口号，应当是 0 到 65535 的整数")
NO_PORT = Text("No port from {first} to {last} is free; choose another with --port, or --port 0 for any.",
               "{first} 到 {last} 的端口都占用了；请用 --port 另选一个，或者用 --port 0 让系统选。")
TAKEN = Text("traindx: port {wanted} is taken, using {port}", "traindx：端口 {wanted} 已占用，改用 {port}")
READY = Text("traindx studio: {url}\n(only from this machine; Ctrl-C ends it)", "traindx studio：{url}\n（只有本机能访问；按 Ctrl-C 结束）")
NO_RUNS = Text("traindx: there are no runs in {folder} yet; the page shows those that come",
               "traindx：{folder} 里还没有运行记录；有了就会出现在页面上")
NEEDED = ("plotly", "starlette", "uvicorn", "websockets")
PORT = 8470


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    parser.add_argument("--runs-dir", metavar="DIR", help=OPT_DIR.say(language))
    parser.add_argument("--port", metavar="N", help=OPT_PORT.fill(port=PORT).say(language))
    parser.add_argument("--no-browser", action="store_true", help=OPT_NO_BROWSER.say(language))
    parser.add_argument("--export", metavar="FILE", help=OPT_EXPORT.say(language))
    parser.add_argument("--run", metavar="RUN", dest="record", help=OPT_RUN.say(language))
    add_language_option(parser, language)


def run(options: argparse.Namespace) -> int:
    from traindx.config import settings_from
    settings = settings_from({"runs_dir": options.runs_dir, "lang": options.lang}, Path.cwd())
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(MISSING.fill(names=", ".join(missing)))
    language = language_from(settings.lang)
    _check_folder(Path(settings.runs_dir))
    if options.export is not None:
        return _export(Path(options.export), Path(settings.runs_dir), options.record, language)
    if options.record:
        raise UsageError(RUN_ALONE.fill(run=options.record))
    return _serve(Path(settings.runs_dir), _port(options.port), options.no_browser, language)


def _check_folder(runs_dir: Path) -> None:
    """Raises UsageError for one that is there and cannot be listed; one that is not there yet may come."""
    try:
        os.scandir(runs_dir).close()
    except FileNotFoundError:
        pass
    except OSError as problem:
        raise UsageError(NOT_READABLE.fill(folder=runs_dir, problem=reason(problem))) from None


def _port(words: str | None) -> int:
    if words is None:
        return PORT
    if not (words.isascii() and words.isdigit() and len(words) < 6 and int(words) < 65536):
        raise UsageError(NOT_A_PORT.fill(value=words))
    return int(words)


def _export(file: Path, runs_dir: Path, record: str | None, language: Language) -> int:
    from traindx.cli.run import check_report_file
    from traindx.reporters.progress import line
    from traindx.studio.exporting import MOST_BYTES, chapter
    if not file.parent.is_dir():
        raise UsageError(CANNOT_WRITE.fill(file=file, problem=NO_FOLDER.fill(folder=file.parent)))
    check_report_file("--export", str(file))  # before minutes of computing
    page = chapter(language, runs_dir, record, line(language)).encode("utf-8", "replace")
    try:
        file.write_bytes(page)
    except OSError as problem:
        raise UsageError(CANNOT_WRITE.fill(file=file, problem=reason(problem))) from None
    if len(page) > MOST_BYTES:
        _say(TOO_LARGE.fill(most=MOST_BYTES >> 20), language)
    print(WROTE.fill(file=file, size=f"{len(page) / 1e6:.1f}").say(language))
    return 0


def _serve(runs_dir: Path, wanted: int, quiet: bool, language: Language) -> int:
    from traindx.runs.reading import runs_in
    from traindx.studio import server
    from traindx.studio.asking import Studio
    from traindx.studio.guard import kept_token
    try:
        listening = server.listen(wanted)
    except (OSError, OverflowError):
        raise UsageError(NO_PORT.fill(first=wanted, last=wanted + server.PORTS - 1)) from None
    port = listening.getsockname()[1]
    token = kept_token()
    url = f"http://{server.HOST}:{port}/?token={token}"

    def ready() -> None:
        if wanted not in (0, port):
            _say(TAKEN.fill(wanted=wanted, port=port), language)
        if not runs_in(runs_dir):
            _say(NO_RUNS.fill(folder=runs_dir), language)
        print(READY.fill(url=url).say(language), flush=True)
        if not quiet:
            _open(url)
    _end_in_order()
    try:
        server.serve(listening, Studio(runs_dir), token, language, ready)
    except KeyboardInterrupt:
        pass
    return 0


def _end_in_order() -> None:
    """SIGTERM and a terminal that closes end us as Ctrl-C does: the workers' temporary folder goes with us."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # not in the main thread
                signal.signal(number, lambda number, frame: sys.exit(128 + number))


def _say(text: Text, language: Language) -> None:
    print(text.say(language), file=sys.stderr, flush=True)


def _open(url: str) -> None:
    """In a thread: some browsers' launchers wait."""
    import threading
    import webbrowser
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
