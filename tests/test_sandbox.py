"""A re-run changes nothing: 28 ways to write, in every mode that this system has, and what else a program could reach."""
from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from traindx import launch
from traindx.core.recording import Recording
from traindx.core.trials import Budget, Program, Trial
from traindx.engine import apart, linux, sandbox
from traindx.engine.copying import Copier, TooLarge
from traindx.engine.local import LocalEngine
from traindx.engine.places import beneath, places_of, project_of

HERE = Path(__file__).parent
LINUX = pytest.mark.skipif(not linux.on_linux(), reason="Linux only")
PERFORMER = "plain_performer:perform"


@pytest.fixture(scope="module")
def here_now():
    """The modes that work on this system."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        Path(project, "train.py").touch()
        code = ("import sys; from traindx.engine import sandbox; from traindx.core.trials import Program\n"
                "p = Program('train.py', cwd=sys.argv[1])\n"
                "print(*[m for m in sandbox.MODES if sandbox.way_for(p, sys.argv[2], m)])")
        done = subprocess.run([sys.executable, "-c", code, project, folder], capture_output=True, text=True, check=True)
        return done.stdout.split()


@pytest.fixture(autouse=True)
def find_performer(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))


@pytest.fixture
def project(tmp_path):
    """A project and a HOME, with files that the 28 ways write over."""
    folder, home = tmp_path / "project", tmp_path / "home"
    for path in (folder / "folder" / "deep", home / ".cache"):
        path.mkdir(parents=True)
    shutil.copy(HERE / "writing_28_ways.py", folder / "train.py")
    for name in ("old.txt", "remove.txt", "keep.txt", "keep2.txt", "keep3.txt", "move.txt", "notes.txt", "history.csv", "config.yaml"):
        (folder / name).write_text(f"as it was: {name}")
    (folder / "best.pt").write_bytes(b"the best model of last week")
    (folder / "mm.dat").write_bytes(bytes(16))
    (folder / "folder" / "deep" / "a.txt").write_text("a")
    return folder


def run_one(trial, **options):
    with LocalEngine(performer=PERFORMER, preload=("torch",), **options) as engine:
        return engine.run([trial])[0]


def tree(folder: Path) -> dict[str, tuple]:
    """Content, mode and time of everything, folders too."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.lstat()
        content = path.readlink() if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (str(content), state.st_mode, state.st_mtime_ns, state.st_uid)
    return found


@pytest.mark.parametrize("mode", sandbox.MODES)
def test_28_ways_to_write_change_nothing(mode, here_now, project, monkeypatch):
    if mode not in here_now:
        pytest.skip(f"{mode} does not work on this system")
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    before = tree(project.parent)
    trace = run_one(Trial(Program("train.py", cwd=str(project)), budget=Budget(seconds=60)), sandbox=mode)
    assert tree(project.parent) == before
    assert (trace.ended, trace.sandbox) == ("script", mode), trace.error + trace.output
    lines = trace.output.strip().splitlines()
    assert len(lines) == 28 and [line for line in lines if not line.endswith(": ok")] == []
    expected = {"ckpt/a/m.pt", "best.pt", "runs.db", "notes.txt", "absolute.txt", "sub.txt", "remove.txt (removed)", "keep3.txt (removed)", "m.safetensors"}
    assert expected <= set(trace.would_write)
    assert "~/home-probe.txt" in trace.would_write or str(project.parent / "home" / "home-probe.txt") in trace.would_write


OUTSIDE = """
import os, socket, sys
from pathlib import Path
said = []
for act in (lambda: open(sys.argv[1], "a").write("x"), lambda: os.chmod(sys.argv[1], 0o777), lambda: os.utime(sys.argv[1], (1, 1)),
            lambda: os.remove(sys.argv[1])):
    try:
        act(); said.append("done")
    except OSError as problem:
        said.append(type(problem).__name__)
print(*said)
print(Path(sys.argv[1]).read_text() if Path(sys.argv[1]).exists() else "gone")
"""


@LINUX
def test_files_outside_of_all_places_are_refused(here_now, tmp_path):
    """Modes and times too, which Landlock alone would let pass."""
    if "overlay" not in here_now:
        pytest.skip("no overlay here")
    places = [Path(tempfile.gettempdir()).resolve(), Path.home().resolve()]  # where a program may write, or seem to
    folders = [folder for folder in (sys.prefix, sys.base_prefix, "/opt", "/srv", "/var/lib") if Path(folder).is_dir()]
    outside = next(path for folder in folders if not set(places) & set((path := Path(folder, f"traindx-test-{os.getpid()}").resolve()).parents))
    try:
        outside.write_text("as it was")
    except OSError:
        pytest.skip("nowhere to write outside of the temporary folders")
    try:
        (tmp_path / "train.py").write_text(OUTSIDE)
        before = outside.stat()
        program = Program("train.py", args=(outside.name,), cwd=str(tmp_path))  # a name without a folder: not one of the places
        (tmp_path / "train.py").write_text(OUTSIDE.replace("sys.argv[1]", repr(str(outside))))
        trace = run_one(Trial(program), sandbox="overlay")
        assert trace.output.split() == ["OSError"] * 4 + ["as", "it", "was"], trace.output
        assert outside.stat() == before
    finally:
        outside.unlink()


@pytest.mark.parametrize("mode", sandbox.MODES)
def test_an_argument_names_a_folder_that_may_be_written(mode, here_now, tmp_path):
    if mode not in here_now:
        pytest.skip(f"{mode} does not work on this system")
    project, out = tmp_path / "project", tmp_path / "out"
    project.mkdir()
    out.mkdir()
    (project / "train.py").write_text("import sys; open(sys.argv[1].partition('=')[2] + '/m.txt', 'w').write('x')")
    trace = run_one(Trial(Program("train.py", args=(f"--out={out}",), cwd=str(project))), sandbox=mode)
    assert not list(out.iterdir())
    if mode == "overlay":
        assert trace.ended == "script" and trace.would_write == (str(out / "m.txt"),)
    else:
        assert trace.ended == "raised" and "PermissionError" in trace.error and "(train.py:1)" in trace.error and "keeps nothing" in trace.error


NETWORK = """
import socket
for address in ("203.0.113.1", "127.0.0.1"):  # the first is reserved for documentation: nobody has it
    for kind in (socket.SOCK_STREAM,):
        with socket.socket(socket.AF_INET, kind) as end:
            end.settimeout(2)
            try:
                end.connect((address, PORT))
                print("reached")
            except OSError as problem:
                print(type(problem).__name__)
server = socket.create_server(("127.0.0.1", 0))
end = socket.create_connection(server.getsockname(), timeout=2)
print("own loopback")
"""


@pytest.mark.parametrize("mode", sandbox.MODES)
def test_no_network_but_a_loopback(mode, here_now, tmp_path):
    if mode not in here_now:
        pytest.skip(f"{mode} does not work on this system")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        (tmp_path / "train.py").write_text(NETWORK.replace("PORT", str(outside.getsockname()[1])))
        trace = run_one(Trial(Program("train.py", cwd=str(tmp_path))), sandbox=mode)
        if mode == "overlay":
            assert trace.output.split("\n")[:3] == ["OSError", "ConnectionRefusedError", "own loopback"]
        elif mode == "copy":  # Landlock knows ports, not addresses: loopback is refused too
            assert trace.output.split("\n")[:2] == ["PermissionError", "PermissionError"]
            assert trace.ended == "raised" and "PermissionError" in trace.error
        else:
            assert trace.output.split("\n")[:3] == ["OSError", "reached", "own loopback"]


@LINUX
def test_with_network_it_is_the_users(here_now, tmp_path):
    if "overlay" not in here_now:
        pytest.skip("no overlay here")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        (tmp_path / "train.py").write_text(f"import socket; socket.create_connection({outside.getsockname()!r}, timeout=2); print('reached')")
        trace = run_one(Trial(Program("train.py", cwd=str(tmp_path)), network=True), sandbox="overlay")
    assert trace.output.strip() == "reached"


def test_environment_keeps_trackers_and_hubs_quiet(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    (tmp_path / "train.py").write_text(
        "import os, tempfile\nprint(os.environ['WANDB_MODE'], os.environ.get('HF_HUB_OFFLINE'), os.environ['OMP_NUM_THREADS'])\n"
        "assert tempfile.gettempdir() == os.environ['TMPDIR'] != '/tmp'")
    program = Program("train.py", cwd=str(tmp_path))
    assert run_one(Trial(program)).output.split() == ["disabled", "1", "1"]
    assert run_one(Trial(program, network=True)).output.split() == ["disabled", "None", "1"]


@pytest.mark.parametrize("mode", ["copy", "guard"])
def test_in_a_copy_the_program_finds_itself_and_reports_the_users_paths(mode, here_now, tmp_path):
    if mode not in here_now:
        pytest.skip(f"{mode} does not work on this system")
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "helper.py").write_text("VALUE = 7")
    (project / "src" / "train.py").write_text(
        "import sys; sys.path.insert(0, '..')\nimport helper\nprint(__file__, helper.VALUE)\nopen('out.txt', 'w').write('x')\nraise ValueError('here')")
    trace = run_one(Trial(Program("train.py", cwd=str(project / "src")), observe=True), sandbox=mode)
    assert trace.output.splitlines()[0] == f"{project}/src/train.py 7"
    assert trace.error == "ValueError: here (train.py:5)" and trace.would_write == ("out.txt",)


def test_recording_in_a_copy_names_the_original(tmp_path):
    (tmp_path / "train.py").write_text("x = 1")
    with LocalEngine(performer=PERFORMER, preload=("torch",), sandbox="guard") as engine:
        trace = engine.run([Trial(Program("train.py", cwd=str(tmp_path)), observe=True)])[0]
        assert Path(trace.recording, "events.jsonl").read_text() == f'{{"script": "{tmp_path}/train.py"}}\n'
        assert os.listdir(Path(trace.recording).parent) == ["own"]
    assert not Path(trace.recording).exists()


def test_a_sandbox_that_does_not_work_is_said_and_nothing_is_run(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("open('mark', 'w')")
    trace = run_one(Trial(Program("train.py", cwd=str(tmp_path))), sandbox="bubble")
    assert trace.ended == "refused" and "bubble" in trace.error and not (tmp_path / "mark").exists()


# -- which folders ----------------------------------------------------------------------------------------------------

def test_the_project_is_the_repository_around_the_script(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src" / "deep").mkdir(parents=True)
    (tmp_path / "home" / "work").mkdir(parents=True)
    assert project_of(str(tmp_path / "repo" / "src" / "deep")) == str(tmp_path / "repo")
    places = places_of(Program("../../repo/src/train.py", cwd=str(tmp_path / "home" / "work")))
    assert places.projects == (str(tmp_path / "repo"), str(tmp_path / "home" / "work"))
    assert places.cwd == str(tmp_path / "home" / "work") and str(tmp_path / "home") in places.others


def test_home_under_git_is_no_project(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    (home / ".git").mkdir(parents=True)
    (home / "work").mkdir()
    assert project_of(str(home / "work")) == str(home / "work")


def test_system_folders_are_never_places():
    places = places_of(Program("/train.py", args=("--data=/usr/x.npz", "https://a/b"), cwd="/"))
    assert places.projects == () and not {"/", "/usr"} & set(places.others)


def test_outermost_places_hide_inner_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a" / "b").mkdir(parents=True)
    places = places_of(Program("a/b/t.py", cwd=str(tmp_path)))
    assert all(not beneath(one, other) for one in places.outermost for other in places.outermost if one != other)


# -- copies -----------------------------------------------------------------------------------------------------------

def test_a_copy_links_what_is_large_or_foreign(tmp_path, monkeypatch):
    monkeypatch.setattr("traindx.engine.copying.LINK_FROM", 100)
    project, data = tmp_path / "project", tmp_path / "data"
    (project / "env").mkdir(parents=True)
    (project / "env" / "pyvenv.cfg").touch()
    (project / "big.bin").write_bytes(bytes(101))
    (project / "small.txt").write_text("x")
    data.mkdir()
    (project / "data").symlink_to("../data")
    (project / "same").symlink_to("small.txt")
    copier = Copier(links=True)
    copier.copy(str(project), str(tmp_path / "copy"))
    links = {path.name: os.readlink(path) for path in (tmp_path / "copy").iterdir() if path.is_symlink()}
    assert links == {"env": str(project / "env"), "big.bin": str(project / "big.bin"), "data": str(data), "same": "small.txt"}
    (tmp_path / "copy" / "small.txt").write_text("changed")
    (tmp_path / "copy" / "same").unlink()
    assert list(copier.changed(str(tmp_path / "copy"))) == ["same (removed)", "small.txt"]


def test_a_large_project_is_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("traindx.engine.copying.MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(TooLarge, match="Move data out of the project"):
        Copier(links=True).copy(str(tmp_path), str(tmp_path / "copy"))


def test_removing_touches_nothing_outside(tmp_path):
    tmp_path.chmod(0o755)
    closed = tmp_path / "tree" / "closed"
    closed.mkdir(parents=True)
    (tmp_path / "kept").write_text("x")
    (tmp_path / "tree" / "link").symlink_to(tmp_path)
    closed.chmod(0)
    before = tree(tmp_path)["kept"], tmp_path.stat().st_mode
    sandbox.remove_tree(str(tmp_path / "tree"))
    sandbox.remove_tree(str(tmp_path / "never was"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tree(tmp_path)["kept"], tmp_path.stat().st_mode) == before


INSIDE_A_CONTAINER = """
import os, sys
from traindx.engine import linux
layers, before = sys.argv[1:]
linux.leave_namespaces(user=False, net=False)
linux.mount("tmpfs", layers, "tmpfs")
folders = [os.path.join(layers, name) for name in ("upper", "work")]
for folder in folders:
    os.mkdir(folder)
upper = os.open(folders[0], os.O_RDONLY)
linux.overlay(os.open("/tmp", os.O_PATH), upper, os.open(folders[1], os.O_PATH), "/tmp")
os.environ.update(HOME=before + "/home")
from traindx.engine.local import LocalEngine
from traindx.core.trials import *
with LocalEngine(performer="plain_performer:perform", preload=("torch",), sandbox="overlay") as engine:
    trace = engine.run([Trial(Program("train.py", cwd=before + "/project"), budget=Budget(seconds=60))])[0]
print(trace.ended, trace.error, trace.sandbox, trace.output.count(": ok"))
for here, _, names, _ in os.fwalk(".", dir_fd=upper):
    print("changed", here, names)
"""


@LINUX
def test_where_the_disk_is_an_overlay_itself_as_in_a_container(here_now, project, tmp_path_factory):
    if "overlay" not in here_now or os.getuid() != 0 or not beneath(str(project), "/tmp"):
        pytest.skip("needs root and overlays")
    layers = tmp_path_factory.mktemp("layers")
    done = subprocess.run([sys.executable, "-c", INSIDE_A_CONTAINER, layers, project.parent], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "script  overlay 28", done.stdout + done.stderr
    assert done.stdout.splitlines()[1:] == ["changed . []"], done.stdout


def test_a_long_temporary_folder_is_not_taken(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    (tmp_path / "train.py").write_text("import torch\nprint(len(list(torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1))))")
    assert run_one(Trial(Program("train.py", cwd=str(tmp_path)), budget=Budget(seconds=60))).output == "4\n"


# -- as somebody else -------------------------------------------------------------------------------------------------

def unprivileged_python() -> str | None:
    """An interpreter that nobody may run and that can load our torch."""
    for path in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with_torch = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": "/nonexistent", "OMP_NUM_THREADS": "1"}
        try:
            subprocess.run([path, "-c", "import torch"], user=65534, group=65534, extra_groups=[], env=with_torch, cwd="/", check=True,
                           capture_output=True)
            return path
        except (OSError, subprocess.SubprocessError):
            continue
    return None


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_as_an_unprivileged_user(mode, project, tmp_path_factory):
    python = unprivileged_python()
    if python is None:
        pytest.skip("no interpreter that nobody may run")
    import tempfile
    with tempfile.TemporaryDirectory() as name:  # tmp_path is closed to others
        folder = Path(name)
        folder.chmod(0o755)
        for source in (project, project.parent / "home"):
            shutil.copytree(source, folder / source.name)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
        before = tree(folder)
        code = ("import sys; from traindx.engine.local import LocalEngine; from traindx.core.trials import *\n"
                f"with LocalEngine(performer={PERFORMER!r}, preload=('torch',), sandbox={mode!r}) as e:\n"
                f"    t = e.run([Trial(Program('train.py', cwd={str(folder / 'project')!r}))])[0]\n"
                "print(t.ended, t.error, t.sandbox, t.output.count(': ok'), len(t.would_write)); print(t.output)")
        surroundings = {"PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), *sys.path])), "HOME": str(folder / "home")}
        done = subprocess.run([python, "-c", code], user=65534, group=65534, extra_groups=[], env=surroundings, cwd="/", capture_output=True, text=True)
        assert done.stdout.startswith(f"script  {mode} 28 "), done.stdout + done.stderr
        assert tree(folder) == before


TRAINS = """
import os, sys
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
Path("old.txt").write_text("new"); Path("folder/deep/b.txt").write_text("b"); Path("keep.txt").unlink()
Path.home().joinpath("mine.txt").write_text("home")
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=16):
    optimizer.zero_grad(); nn.functional.cross_entropy(model(x), y).backward(); optimizer.step()
    torch.save(model.state_dict(), "best.pt")
print("trained")
sys.exit(3) if "3" in sys.argv else os.kill(os.getpid(), 9) if "9" in sys.argv else None
"""


@pytest.mark.parametrize("words", [("shapes", "--html"), ("data", "--html")], ids=lambda words: words[0])
def test_looking_at_shapes_and_data_changes_nothing(words, project, tmp_path_factory):
    (project / "train.py").write_text(TRAINS)
    before, page = tree(project.parent), tmp_path_factory.mktemp("page") / "page.html"
    done = subprocess.run([sys.executable, "-m", "traindx", words[0], words[1], str(page), "train.py"], cwd=project, capture_output=True, text=True,
                          env={**os.environ, "HOME": str(project.parent / "home"), "PYTHONDONTWRITEBYTECODE": "1", "TRAINDX_LANG": "en"})
    assert tree(project.parent) == before
    assert (done.returncode, page.exists()) == (0, True), done.stderr
    assert "[4] float32" in done.stdout if words[0] == "data" else "[B=16" in done.stdout


@pytest.mark.parametrize("mode", sandbox.MODES)
def test_a_program_apart_is_watched_as_ever_and_keeps_nothing(mode, here_now, project, tmp_path, monkeypatch):
    if mode not in here_now:
        pytest.skip(f"{mode} does not work on this system")
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    (project / "train.py").write_text(TRAINS)
    before = tree(project.parent)
    with tempfile.TemporaryDirectory(prefix="traindx-") as place:
        for arg, status in (("3", 3), ("9", 128 + 9)):
            folder = Path(place, arg)
            program = Program("train.py", args=(arg,), cwd=str(project))
            outcome = launch.launch(lambda variables: apart.command(program, folder, False, variables, mode), apart.own_folder(folder),  # noqa: B023
                                    {"script": "train.py"}, stdout=2)
            recording = Recording.read(apart.own_folder(folder))
            assert (outcome.status, recording.steps) == (status, 4)
            assert {file.name for file in folder.iterdir()} == {sandbox.OWN}
    assert tree(project.parent) == before
