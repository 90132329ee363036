"""Makes the pictures of studio.md in a headless Chromium: python docs/studio_pictures.py RUNS_DIR RUN"""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).with_name("studio")
MADE = ".panel figure .main-svg"
PICTURES = {  # name: address, what must be seen, width, height, colour scheme
    "tree": ("/tree/flat/optim/optim/lr-too-high?lang=en", MADE, 1180, 760, "light"),
    "lab": ("/labs/lr_sweep?lang=en", ".figures .main-svg", 1180, 820, "light"),
    "lab-zh-dark": ("/labs/float_formats?lang=zh", ".figures .main-svg", 1180, 760, "dark"),
    "run": ("/runs/{run}?lang=en", ".figures .main-svg", 1180, 1000, "light"),
    "lit": ("/tree/flat/loss/loss/double-softmax?lang=en&run={run}", "[data-mine] figure .main-svg", 1180, 820, "light"),
    "narrow": ("/labs/bowl?lang=zh", ".figures .main-svg", 375, 760, "light")}


def main() -> None:
    runs_dir, run = sys.argv[1:3]
    process = subprocess.Popen([sys.executable, "-m", "traindx", "studio", "--no-browser", "--port", "0", "--runs-dir", runs_dir],
                               stdout=subprocess.PIPE, text=True)
    url = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
    FOLDER.mkdir(exist_ok=True)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, (address, seen, width, height, scheme) in PICTURES.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.set_default_timeout(120_000)
                page.goto(url, wait_until="commit")
                page.wait_for_selector(".tree")
                page.evaluate("address => { location.hash = address; }", address.format(run=run))
                page.wait_for_selector(seen)
                page.wait_for_timeout(500)
                page.screenshot(path=FOLDER / f"{name}.png")
                page.close()
    finally:
        process.terminate()


if __name__ == "__main__":
    main()
