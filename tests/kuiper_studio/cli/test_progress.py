"""How far long work is, for somebody who watches."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kuiper_studio.cli import terminal


@pytest.fixture
def watched(monkeypatch, capsys) -> None:
    """Standard error is a terminal, and every piece of work takes long."""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)


@pytest.mark.parametrize(
    ("command", "titles"),
    [("run", ["running"]), ("dump", ["running", "writing"]), ("check", ["checking"])],
)
@pytest.mark.usefixtures("watched")
def test_work_that_takes_long_has_a_bar(run, digits, tmp_path, command, titles):
    output = ("--output", tmp_path / "dump") if command == "dump" else ()
    ended = run(command, digits, "--input", digits / "digit_3.png", *output)
    assert ended.status == 0
    shown = ended.err.split("\r")
    for title in titles:
        first = next(line for line in shown if line.startswith(f"{title}: "))
        assert "/25 [" in first or title == "writing"
        assert "<" in first, "no time left"
    assert not shown[-1].strip(), "the bar is still there"
    assert "running" not in ended.out


@pytest.mark.usefixtures("watched", "qapp")
def test_drawing_has_a_bar(run, digits, tmp_path):
    ended = run("render", digits, "--output", tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").exists()
    assert ended.err.split("\r")[1].startswith("drawing: ")


@pytest.mark.usefixtures("watched")
def test_a_bar_goes_when_the_work_fails(capsys):
    def fail() -> None:
        with terminal.progress_shown("running", "operators") as show:
            show(1, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    shown = capsys.readouterr().err.split("\r")
    assert any(line.startswith("running:  25%") and "1/4" in line for line in shown)
    assert not shown[-1].strip()


def test_short_work_has_no_bar(capsys, monkeypatch):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    with terminal.progress_shown("running", "operators") as show:
        show(1, 2)
        show(2, 2)
    assert capsys.readouterr().err == ""


def test_a_pipe_gets_no_bar(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    with terminal.progress_shown("running", "operators") as show:
        show(1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_what_shows_bars_is_loaded_when_one_is_shown(digits):
    code = (
        "import sys; from kuiper_studio.cli import main; "
        f"status = main(['run', {str(digits)!r}, '--input', 'random']); "
        "sys.exit(status or 'tqdm' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0
