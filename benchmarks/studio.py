"""How long from a slider's move to the curve that is redrawn, in headless Chromium, for the light labs. Writes studio.md.

    python benchmarks/studio.py [MOVES]
"""
from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from traindx.labs import Slider, all_labs

MOVES = int(sys.argv[1]) if len(sys.argv) > 1 else 20
TIMED = """([name, at]) => new Promise((resolve) => {
  const input = document.getElementById('knob-' + name), began = performance.now();
  const drawn = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  document.querySelector('.figures').addEventListener('drawn', drawn, {once: true});
  input.value = at;
  input.dispatchEvent(new Event('input'));
})"""


def serve() -> tuple[subprocess.Popen, str]:
    process = subprocess.Popen([sys.executable, "-m", "traindx", "studio", "--no-browser", "--port", "0", "--runs-dir", tempfile.mkdtemp()],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, next(word for line in process.stdout for word in line.split() if word.startswith("http://"))


def measure(page, lab) -> list[float]:
    """Milliseconds of MOVES moves to positions that were not asked before, as far as there are such."""
    knob = max((knob for knob in lab.knobs if isinstance(knob, Slider)), key=lambda knob: len(knob.values))
    page.evaluate("address => { location.hash = address; }", f"/labs/{lab.name}")
    page.wait_for_selector(f"h1:has-text('{lab.number}')")
    page.wait_for_selector(".verdict.fine, .verdict.warning, .verdict.error")
    page.wait_for_function("window.Plotly !== undefined")
    page.wait_for_timeout(500)
    others = [at for at, value in enumerate(knob.values) if value != knob.default]
    every = max(1, len(others) // MOVES)
    return [page.evaluate(TIMED, [knob.name, at]) for at in others[::every][:MOVES]]


def main() -> None:
    process, url = serve()
    rows, load = [], os.getloadavg()[0]
    try:
        with sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]).new_page()
            page.set_default_timeout(120_000)
            page.goto(url, wait_until="commit")
            page.wait_for_selector(".tree")
            for lab in all_labs().values():
                if lab.light and any(isinstance(knob, Slider) for knob in lab.knobs):
                    rows.append((lab.name, sorted(measure(page, lab))))
                    print(rows[-1][0], [round(value) for value in rows[-1][1]], flush=True)
    finally:
        process.terminate()
    Path(__file__).with_suffix(".md").write_text(report(rows, load, os.getloadavg()[0]))


def report(rows, before: float, after: float) -> str:
    lines = "".join(f"| {name} | {len(values)} | {statistics.median(values):.0f} | {p90(values):.0f} |\n" for name, values in rows)
    every = sorted(value for _, values in rows for value in values)
    return ("# Slider to redrawn curve\n\nMilliseconds from a slider's move to the frame after its curves were drawn: websocket, computing in a "
            "worker, all figures and tables of the lab; headless Chromium and the studio on one machine.\n\n"
            f"Made by `benchmarks/studio.py`, {os.cpu_count()} cores, load average {before:.1f} at the start and {after:.1f} at the end "
            "(1.0 a core is a fully used machine: what is above is waiting).\n\n| lab | moves | median | p90 |\n|---|---|---|---|\n"
            f"{lines}| all | {len(every)} | {statistics.median(every):.0f} | {p90(every):.0f} |\n")


def p90(values: list[float]) -> float:
    return values[min(len(values) - 1, int(0.9 * len(values)))]


if __name__ == "__main__":
    main()
