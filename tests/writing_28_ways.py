"""Writes, renames and removes in 28 ways, beside itself and at HOME; says for each whether it worked."""
import mmap
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import numpy as np
import torch

results = []


def way(name, act):
    try:
        act()
        results.append(f"{name}: ok")
    except BaseException as problem:
        results.append(f"{name}: {type(problem).__name__}({problem})")


def save_safetensors():
    from safetensors.torch import save_file
    save_file(model.state_dict(), "m.safetensors")


def append():
    with open("history.csv", "a") as file:
        file.write("1,2\n")


def write_memmap():
    array = np.memmap("mm.dat", dtype="float32", mode="r+", shape=(4,))
    array[0] += 1
    array.flush()


def write_mapped():
    with open("mm.dat", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[4:8] = b"abcd"


def write_database():
    base = sqlite3.connect("runs.db")
    base.execute("create table if not exists t(a)")
    base.execute("insert into t values (1)")
    base.commit()
    base.close()


def read_by_workers():
    loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=2)
    assert sum(float(batch.sum()) for batch in loader) == 28


def replace():
    pathlib.Path("best.tmp").write_text("better")
    os.replace("best.tmp", "config.yaml")


def temporary():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")


def absolute():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "absolute.txt"), "w") as file:
        file.write("x")


model = torch.nn.Linear(4, 2)
home = os.path.expanduser("~")
way("makedirs", lambda: os.makedirs("ckpt/a", exist_ok=True))
way("torch.save", lambda: torch.save(model.state_dict(), "ckpt/a/m.pt"))
way("torch.save over", lambda: torch.save(model.state_dict(), "best.pt"))
way("torch.load back", lambda: torch.load("best.pt"))
way("safetensors", save_safetensors)
way("append", append)
way("pathlib", lambda: pathlib.Path("notes.txt").write_text("new"))
way("np.save", lambda: np.save("array.npy", np.ones(3)))
way("memmap", write_memmap)
way("mmap", write_mapped)
way("sqlite", write_database)
way("rename", lambda: os.rename("old.txt", "renamed.txt"))
way("replace", replace)
way("remove", lambda: os.remove("remove.txt"))
way("rmtree", lambda: shutil.rmtree("folder"))
way("move", lambda: shutil.move("move.txt", "ckpt/moved.txt"))
way("absolute", absolute)
way("home", lambda: pathlib.Path(home, "home-probe.txt").write_text("x"))
way("subprocess", lambda: subprocess.run("echo hi > sub.txt; rm keep3.txt", shell=True, check=True))
way("chmod", lambda: os.chmod("keep.txt", 0o600))
way("symlink", lambda: os.symlink("keep.txt", "link"))
way("link", lambda: os.link("keep.txt", "hard"))
way("temporary", temporary)
way("shared memory", lambda: torch.ones(3).share_memory_())
way("workers", read_by_workers)
way("os.open", lambda: os.close(os.open("raw.txt", os.O_WRONLY | os.O_CREAT)))
way("utime", lambda: os.utime("keep.txt", (1, 1)))
way("truncate", lambda: os.truncate("keep2.txt", 1))
print("\n".join(results))
sys.stdout.flush()
