"""Settings: the nearest pyproject.toml, checked by key; the command line wins."""
from __future__ import annotations

import pytest

from traindx.config import Settings, read_table, settings_from
from traindx.errors import UsageError


def pyproject(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_without_a_file_the_defaults_hold(tmp_path):
    assert settings_from({}, tmp_path) == Settings()


def test_the_command_line_wins_over_the_file(tmp_path):
    pyproject(tmp_path, '[tool.traindx]\nignore = ["curve"]\nfail-on = "error"\nmax-steps = 10\nlang = "zh"\nno-record = true\n')
    settings = settings_from({"fail_on": "warning", "max_steps": None, "command": ["train.py"]}, tmp_path)
    assert settings.fail_on == "warning"
    assert (settings.ignore, settings.max_steps, settings.lang, settings.no_record) == (("curve",), 10, "zh", True)


def test_the_file_is_found_upwards_and_its_paths_are_its_own(tmp_path):
    pyproject(tmp_path, '[tool.traindx]\nruns-dir = "kept"\njson = "-"\n')
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    pyproject(tmp_path / "a", "[project]\nname = 'no table of ours: looked further up'\n")
    settings = settings_from({}, deep)
    assert settings.runs_dir == str(tmp_path / "kept") and settings.json == "-"


@pytest.mark.parametrize(("text", "words"), [
    ("[tool.traindx\n", ["is not valid TOML"]),
    ("[tool.traindx]\nmax_step = 3\n", ["unknown key 'max_step'", "Did you mean max-steps?", "Known keys: select"]),
    ("[tool.traindx]\nzzz = 3\n", ["unknown key 'zzz'", "Known keys: select"]),
    ("[tool.traindx]\nmax-steps = 'many'\n", ["max-steps must be a whole number above 0", "'many'"]),
    ("[tool.traindx]\nmax-steps = true\n", ["max-steps must be a whole number above 0"]),
    ("[tool.traindx]\nselect = 'loss'\n", ["select must be a list of rule names", "'loss'"]),
    ("[tool.traindx]\nfail-on = 'sometimes'\n", ["fail-on must be one of error, warning, never"]),
    ("[tool.traindx]\nlang = 'fr'\n", ["lang must be one of en, zh"]),
    ("[tool.traindx]\nno-record = 1\n", ["no-record must be true or false"]),
    ("[tool.traindx]\nname = 1\n", ["name must be a text"]),
    ("[tool]\ntraindx = 3\n", ["must be a table, but is 3"]),
])
def test_a_broken_table_names_the_file_and_the_key(text, words, tmp_path):
    pyproject(tmp_path, text)
    with pytest.raises(UsageError) as problem:
        read_table(tmp_path)
    said = problem.value.text
    assert str(tmp_path / "pyproject.toml") in said.en and str(tmp_path / "pyproject.toml") in said.zh
    assert all(word in said.en for word in words), said.en
    assert any("一" <= letter <= "鿿" for letter in said.zh)


def test_a_file_that_is_no_text_is_said_to_be_none(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not valid TOML"):
        read_table(tmp_path)
