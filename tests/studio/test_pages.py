"""The page in a real browser: every lab moved, every leaf opened, both languages, by keyboard alone, and nothing asked of any other machine."""
from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright: pip install 'traindx[test]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

from studio.serving import MARKUP, serve
from traindx.labs import all_labs
from traindx.tree import all_leaves

PATIENCE = 120_000  # milliseconds: other tests run beside
REAL, NEWER, MARKED, BROKEN = "2026-01-01-0900-softmax", "2026-01-02-0900-newer", "2026-01-03-0900-markup", "2026-01-04-0900-broken"
TRAINED = ("optim/lr-too-high", "mode/eval-missing", "numeric/fp16-overflow")  # a curve; evidence only; NaN at once
DONE = ".verdict.fine, .verdict.warning, .verdict.error"
ENGLISH = re.compile(r"[A-Za-z][a-z]+(?:[ ,;:]+[A-Za-z][a-z]+){3,}")  # four words one after the other
WORDS = ("What you see", "Break it", "Another seed", "Reset", "Findings", "Curves", "Conclusion", "Save", "Loading", "One moment")


@pytest.fixture(scope="session")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page whose console and requests are written down."""

    def __init__(self, browser, **settings):
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, address, wait="h1"):
        self.page.evaluate("address => { location.hash = address; }", address)
        self.page.wait_for_function("title => document.title !== title", arg="")
        self.page.wait_for_selector(wait)


@pytest.fixture(scope="module")
def watched(chromium, studio):
    made = Watched(chromium, viewport={"width": 1280, "height": 900})
    made.page.goto(studio.url, wait_until="commit")
    made.page.wait_for_selector(".tree")
    yield made
    made.context.close()


@pytest.fixture
def page(watched, studio):
    """The one page of this file; after each test: no error on its console, no request to any other machine."""
    watched.errors.clear()
    yield watched.page
    assert watched.errors == []
    assert [url for url in watched.requests if not url.startswith((studio.base, "data:", "blob:"))] == []


def lab_shown(page, name):
    """Until the lab's outcome stands there, drawn."""
    page.wait_for_selector(f"h1:has-text({json.dumps(str(all_labs()[name].number))})")
    page.wait_for_selector(DONE)
    return page.inner_text(".verdict")


ILL_LAID = """() => {
    const faults = [];
    for (const box of document.querySelectorAll('.tables .scroll')) {
        if (box.scrollWidth > box.clientWidth + 1) faults.push('a table is cut off');
        if (!box.querySelector('tbody tr')) faults.push('a table without rows');
    }
    for (const canvas of document.querySelectorAll('.canvas')) {
        const labels = [...canvas.querySelectorAll('.annotation')].map((label) => [label.textContent, label.querySelector('.bg').getBoundingClientRect()]);
        for (const line of canvas.querySelectorAll('.js-line')) {
            const matrix = line.getScreenCTM(), length = line.getTotalLength();
            for (let at = 0; at <= length; at += 2) {
                const point = line.getPointAtLength(at).matrixTransform(matrix);
                const under = labels.find(([, box]) => point.x > box.left + 3 && point.x < box.right - 3 && point.y > box.top + 4 && point.y < box.bottom - 4);
                if (under) { faults.push(`a curve runs through "${under[0]}"`); break; }
            }
        }
        for (const [text, box] of labels) for (const [other, next] of labels) {
            if (text < other && box.left < next.right - 2 && next.left < box.right - 2 && box.top < next.bottom - 4 && next.top < box.bottom - 4) faults.push(`"${text}" covers "${other}"`);
        }
    }
    return faults;
}"""


@pytest.mark.parametrize("name", list(all_labs()))
def test_a_lab_is_moved(watched, page, name):
    lab = all_labs()[name]
    watched.go(f"/labs/{name}?lang=en", "form.knobs")
    lab_shown(page, name)
    assert page.locator("figure[data-kind=chart] .main-svg").count() >= page.locator("figure[data-kind=chart]").count()
    assert page.evaluate(ILL_LAID) == []
    for knob in lab.knobs:  # each to another position, and what is drawn is that position
        at = knob.values.index(knob.default)
        wanted = knob.values[at + 1 if at + 1 < len(knob.values) else at - 1]
        with_next = page.evaluate("""([name, kind, at, value]) => new Promise((resolve) => {
            document.querySelector('.figures').addEventListener('drawn', (event) => resolve(event.detail), {once: true});
            if (kind === 'slider') { const input = document.getElementById('knob-' + name); input.value = at; input.dispatchEvent(new Event('input')); }
            else if (kind === 'choice') document.querySelector(`input[name="knob-${name}"][value="${value}"]`).click();
            else [...document.querySelectorAll('.knobs input[type=checkbox]')].find((box) => box.closest('label').textContent === value).click();
        })""", [knob.name, {"Slider": "slider", "Choice": "choice", "Switch": "switch"}[type(knob).__name__], knob.values.index(wanted),
                knob.label.en if type(knob).__name__ == "Switch" else str(wanted)])
        assert with_next[knob.name] == wanted
    page.wait_for_function("name => location.hash.includes(name)", arg=f"{lab.knobs[0].name}=")  # the state is in the address


@pytest.mark.parametrize("name", list(all_labs()))
def test_a_lab_in_chinese_holds_no_english(watched, page, name):
    watched.go(f"/labs/{name}?lang=zh", "form.knobs")
    lab_shown(page, name)
    assert page.evaluate("document.documentElement.lang") == "zh-CN" and page.evaluate(ILL_LAID) == []
    assert_chinese(page.inner_text("main") + page.inner_text("#head"))


def assert_chinese(text):
    assert [word for word in WORDS if word in text] == []
    assert ENGLISH.findall(re.sub(r"《.*?》|https?://\S+|traindx .*|.*\(.*\).*=.*", "", text)) == []


def test_forty_fast_keys_end_at_the_right_value(watched, page):
    watched.go("/labs/bowl?lang=en", "form.knobs")
    lab_shown(page, "bowl")
    knob = all_labs()["bowl"].knobs[0]
    slider = page.locator("#knob-rate")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    assert slider.input_value() == "40"
    page.wait_for_function("text => document.querySelector('.verdict').textContent.includes(text)", arg=f"1 − {knob.say(knob.values[40]).en} ×")


def test_a_mark_is_dragged_on_the_figure(watched, page):
    watched.go("/labs/lr_sweep?lang=en", "form.knobs")
    lab_shown(page, "lr_sweep")
    handle = page.locator(".handle").first
    before, box = page.locator("#knob-rate").input_value(), handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y, steps=4)
    page.mouse.up()
    moved = page.locator("#knob-rate").input_value()
    assert int(moved) > int(before)
    handle.focus()
    page.keyboard.press("ArrowLeft")
    assert int(page.locator("#knob-rate").input_value()) == int(moved) - 1
    watched.go("/labs/bowl", "form.knobs")


def test_the_tree_by_keyboard_alone(watched, page):
    watched.go("/rules?lang=en", "#find-rule")
    watched.go("/tree?lang=en", ".tree")
    page.locator("[role=treeitem][tabindex='0']").focus()
    focused = "document.activeElement.dataset.path"
    first = page.evaluate(focused)
    page.keyboard.press("ArrowDown")
    second = page.evaluate(focused)
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == first != second
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith(first + " ")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "ranks"
    page.keyboard.press("Home")
    page.keyboard.type("the loss g")
    assert page.evaluate(focused) == "explodes"
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('explodes')")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_every_leaf_opens(watched, page):
    """Each leaf by its address, with what one sees and where to go on; the curve comes when it is trained."""
    watched.go("/tree?lang=en", ".tree")
    paths = page.evaluate("[...document.querySelectorAll('[role=treeitem]')].map((item) => item.dataset.path).filter((path) => path.split(' ').length === 3)")
    by_rule = {path.split()[2]: path.split() for path in paths}
    assert set(by_rule) == {leaf.rule for leaf in all_leaves()}
    for rule, parts in by_rule.items():
        address = "/".join(parts)
        page.evaluate("address => { location.hash = address; }", f"/tree/{address}")
        page.wait_for_function("rule => document.querySelector('.panel code')?.textContent === rule", arg=rule)
        assert page.locator(f"[data-path='{' '.join(parts)}'][aria-selected=true]").count() == 1
        assert page.locator(f".panel .links a[href*='{rule}']").count()
    watched.go("/labs", ".cards")


@pytest.mark.parametrize("rule", TRAINED)
def test_a_leaf_trains_its_curves(watched, page, rule):
    watched.go("/labs?lang=en", ".cards")
    path = next(f"{symptom}/{family}" for symptom, family in places(page, rule))
    watched.go(f"/tree/{path}/{rule}?lang=en", ".panel .seeded")
    assert page.locator(".panel figure .main-svg").count()
    if rule == "numeric/fp16-overflow":
        assert "diverged at" in page.inner_text(".panel .legend").lower()
    assert page.inner_text(".panel .verdict")
    if rule == TRAINED[0]:
        page.click("text=Another seed")
        page.wait_for_selector(".panel .seeded:has-text('seed 1')")
        assert "seed=1" in page.evaluate("location.hash")


def places(page, rule):
    from traindx.tree import SYMPTOMS, questions_of
    return [(symptom.name, question.family) for symptom in SYMPTOMS for question in questions_of(symptom)
            for leaf in question.leaves if leaf.rule == rule]


def test_rules_are_found_and_read(watched, page):
    watched.go("/rules?lang=zh", "#find-rule")
    assert_chinese(page.inner_text("main h1") + page.inner_text("main .lead"))
    page.fill("#find-rule", "softmax")
    assert 1 <= page.locator(".rules li:visible").count() < 12

    watched.go("/rules/loss/double-softmax?lang=en", "details")
    page.click("summary >> nth=0")
    assert "criterion(model" in page.inner_text("pre .guilty >> nth=0")


# -- runs -----------------------------------------------------------------------------------------------------------------

def test_runs_are_listed_sifted_and_compared(watched, page):
    watched.go("/runs?lang=en", "table.runs")
    assert page.locator("table.runs tbody tr").count() == 4
    page.fill("#find-run", "softmax")
    assert page.locator("table.runs tbody tr:visible").count() == 1
    page.wait_for_function("() => location.hash.includes('q=softmax')")
    page.fill("#find-run", "")
    for name in (REAL, NEWER):
        page.check(f"input[aria-label='Choose {name}']")
    page.click("button:has-text('Compare')")
    page.wait_for_selector("figure .main-svg")
    assert "Compared by the lowest loss" in page.inner_text("main")


def test_a_run_shows_monitors_findings_and_code(watched, page):
    watched.go(f"/runs/{REAL}?lang=en", "article.finding")
    text = page.inner_text("main")
    assert "Softmax is applied twice" in text and "train.py:13" in text and "finished" in text
    assert "softmax" in page.inner_text("pre .guilty")
    titles = page.locator("figure figcaption").all_inner_texts()
    assert {"train loss", "gradient norm", "activation std", "update ratio", "weight norm"} <= set(titles)
    assert "usual 0.01 .. 10 (rule of thumb)" in text
    page.click("summary:has-text('Checklist')")
    page.wait_for_selector(".state.failed, .state.ticked")
    watched.go(f"/runs/{REAL}?lang=zh", "article.finding:has-text('病因')")
    page.evaluate("document.querySelectorAll('pre, code').forEach((code) => code.remove())")
    assert_chinese(re.sub(r".*not a git repository.*", "", page.inner_text("main")))


def test_notes_are_written_in_place_and_nothing_else(watched, page, runs_dir):
    folder = runs_dir / REAL
    stamps = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "notes.md"}
    (folder / "notes.md").write_text((folder / "notes.md").read_text() + "\nmy own words\n")
    watched.go(f"/runs/{REAL}?lang=en", "form.notes")
    page.fill("#note-best", "lr 0.1 <b>bold</b>\nsecond line")
    page.click("text=Save")
    page.wait_for_selector("text=Saved.")
    written = (folder / "notes.md").read_text()
    assert "best: lr 0.1 <b>bold</b> second line\n" in written and "my own words" in written
    assert stamps == {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != "notes.md"}


def test_a_loaded_run_lights_its_branch_and_lies_beside_the_toy(watched, page):
    watched.go(f"/tree/flat/loss/loss/double-softmax?lang=en&run={REAL}", "[data-mine] figure .main-svg")
    assert "train.py:13" in page.inner_text(".lit-list")
    lit = page.locator("[data-path='flat loss loss/double-softmax']")
    assert "lit" in lit.get_attribute("class") and "train.py:13" in lit.inner_text()
    assert "lit" in page.locator("[data-path='flat']").get_attribute("class")
    assert page.locator(f"[data-mine] a[href*='{REAL}']").count()
    watched.go("/labs?run=", ".cards")


def test_markup_in_a_name_stays_text(watched, page):
    for address in ("/runs?lang=en", f"/runs/{MARKED}?lang=en"):
        watched.go(address, f"text={MARKUP}")
    assert page.locator("main img").count() == 0


def test_a_run_of_a_newer_schema_and_a_broken_one_are_shown_as_far_as_they_go(watched, page):
    watched.go(f"/runs/{NEWER}?lang=en", "text=newer traindx (schema 99)")
    assert page.locator("article.finding").count() == 1
    watched.go(f"/runs/{BROKEN}?lang=en", "text=could not be read")
    assert page.locator("figure .main-svg").count() >= 1  # nothing but NaN and Inf, and drawn
    watched.go("/runs/no-such-run?lang=en", "text=There is no run named")


def test_a_run_is_followed_while_it_writes(watched, page, runs_dir):
    import os
    import socket

    from traindx.runs.status import born
    folder = runs_dir.parent / "live"
    shutil.copytree(runs_dir / REAL, folder)
    fields = json.loads((folder / "run.json").read_text())
    kept = {name: fields[name] for name in ("schema", "name", "script", "argv", "cwd", "started")}
    (folder / "run.json").write_text(json.dumps({**kept, "status": "running", "pid": os.getpid(), "host": socket.gethostname(), "born": born(os.getpid())}))
    target = runs_dir / "2026-01-05-0900-live"
    folder.rename(target)
    try:
        watched.go("/runs/2026-01-05-0900-live?lang=en", "figure .main-svg")
        page.wait_for_selector("main p:has-text('running')")
        with open(target / "metrics.jsonl", "a") as file:
            file.write('{"step": 4321, "loss": 77.5}\n')
        page.wait_for_selector("main p:has-text('4321 steps')")
        assert "77.5" in page.locator("figure .canvas").first.get_attribute("aria-label")
        (target / "run.json").write_text(json.dumps({**fields, "status": "finished"}))
        page.wait_for_selector("main p:has-text('finished')")
    finally:
        shutil.rmtree(target)
        watched.go("/labs", ".cards")


# -- for everybody --------------------------------------------------------------------------------------------------------

PAGES = ("/tree/flat/optim/optim/lr-too-high", "/labs", "/labs/bowl", "/labs/lr_sweep", "/rules", "/rules/loss/double-softmax", "/runs", f"/runs/{REAL}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(watched, page, theme):
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core comes with axe-playwright-python: pip install 'traindx[test]'")
    source = (Path(axe.__file__).parent / "axe.min.js").read_text()
    for at, address in enumerate(PAGES):
        watched.go(f"{address}?lang={'zh' if at % 2 else 'en'}&theme={theme}", "h1")
        page.wait_for_function("() => !document.querySelector('[aria-busy]')")
        found = page.evaluate(source + "; axe.run(document, {resultTypes: ['violations']})"
                              ".then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 160)).slice(0, 3)]))")
        assert found == [], address


def test_language_and_theme_change_without_reload(watched, page):
    watched.go("/labs/bowl?lang=en&theme=light", "form.knobs")
    page.evaluate("window.stayed = true")
    page.click("#language")
    page.wait_for_selector("button:has-text('复位')")
    page.click("#theme")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert page.evaluate("window.stayed") and "lang=zh" in page.evaluate("location.hash")
    assert page.evaluate("document.activeElement.id") == "theme"


def test_every_control_is_reached_by_tab(watched, page):
    watched.go("/labs/lr_sweep?lang=en&theme=light", ".handle")
    wanted = page.evaluate("[...document.querySelectorAll('a[href], button, input, summary, .handle')].filter((e) => e.offsetParent).length")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    seen = set()
    for _ in range(3 * wanted):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("""(() => { const e = document.activeElement; return e.id || e.getAttribute('href') || e.className + e.textContent.slice(0, 30); })()"""))
    for needed in ("knob-rate", "language", "theme", "#main"):
        assert needed in seen
    assert any("handle" in name for name in seen) and any("Another seed" in name for name in seen)


def test_a_narrow_screen_needs_no_sideways_scrolling(chromium, studio):
    narrow = Watched(chromium, viewport={"width": 375, "height": 700})
    narrow.page.goto(studio.url, wait_until="commit")
    narrow.page.wait_for_selector(".tree")
    for address in PAGES:
        for language in ("en", "zh"):
            narrow.go(f"{address}?lang={language}", "h1")
            narrow.page.wait_for_timeout(300)
            assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 375, (address, language)
    narrow.context.close()


def test_two_browsers_at_once(chromium, studio):
    pair = [Watched(chromium) for _ in range(2)]
    for at, one in enumerate(pair):
        one.page.goto(f"{studio.url}#/labs/bowl?lang=en&rate={(0.01, 3)[at]}", wait_until="commit")
    first, second = (lab_shown(one.page, "bowl") for one in pair)
    assert "1 − 0.01 ×" in first and "1 − 3 ×" in second
    for one in pair:
        one.context.close()


def test_a_studio_that_was_killed_and_came_back(chromium, tmp_path, runs_dir):
    first = serve(tmp_path, runs_dir, "--port", "0")
    one = Watched(chromium)
    one.page.goto(f"{first.url}#/labs/bowl?lang=en", wait_until="commit")
    lab_shown(one.page, "bowl")
    first.stop(signal.SIGKILL)
    one.page.wait_for_selector("#state.broken:has-text('does not answer')")
    second = serve(tmp_path, runs_dir, "--port", str(first.port))
    try:
        assert second.port == first.port and second.token == first.token
        one.page.wait_for_selector("#state:has-text('Connected again')")
        one.page.focus("#knob-rate")
        one.page.keyboard.press("End")
        one.page.wait_for_function("() => document.querySelector('.verdict').textContent.includes('1 − 3 ×')")
    finally:
        second.stop()
        one.context.close()


def test_the_exported_file_works_from_disk(chromium, tmp_path, runs_dir):
    """One lab, one leaf, one run: the whole chapter is written in the same way."""
    from traindx.studio.exporting import chapter
    said = []
    text = chapter("en", runs_dir, REAL, said.append, labs=("bowl",), rules=("optim/lr-too-high",))
    assert said and len(text) < 4e6
    file = tmp_path / "chapter.html"
    file.write_text(text, encoding="utf-8")
    one = Watched(chromium)
    one.page.goto(f"{file.as_uri()}#/labs/bowl?lang=en", wait_until="commit")
    lab_shown(one.page, "bowl")
    one.page.wait_for_selector("figure .main-svg")
    one.page.focus("#knob-rate")
    one.page.keyboard.press("End")
    one.page.wait_for_function("() => document.querySelector('.verdict').textContent.includes('1 − 3 ×')")
    one.go("/tree/flat/optim/optim/lr-too-high?lang=zh", ".panel figure .main-svg")
    one.go("/rules/loss/double-softmax?lang=zh", "details")
    one.go(f"/runs/{REAL}?lang=zh", "article.finding")
    one.page.wait_for_selector("figure .main-svg")
    assert one.errors == [] and all(url.startswith(("file:", "data:", "blob:")) for url in one.requests)
    one.context.close()
