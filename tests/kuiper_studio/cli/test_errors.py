"""Every error is one sentence and exit status 2, whatever was wrong."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kuiper_studio.cli import program
from kuiper_studio.cli.commands import COMMANDS

LONG = "n" * 300
REPORT = "; please report it with the traceback that python -X dev -m kuiper_studio shows"


@pytest.fixture
def place(tmp_path, digits, monkeypatch) -> Path:
    """A folder with wrong files of all kinds, and the way into it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("rank.npy", np.zeros(3, np.float32))
    np.save("complex.npy", np.zeros((1, 1, 32, 32), np.complex64))
    np.save("objects.npy", np.array([None], object), allow_pickle=True)
    np.savez("two.npz", a=np.zeros(3), b=np.zeros(2))
    for suffix in ("npy", "npz", "png", "param", "bin", "txt"):
        (tmp_path / f"garbage.{suffix}").write_bytes(rng.bytes(400))
        (tmp_path / f"empty.{suffix}").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.npz").mkdir()
    shutil.copy(digits / "digits.pnnx.param", tmp_path / "alone.param")
    cut = (digits / "digits.pnnx.bin").read_bytes()[:-100]
    (tmp_path / "cut").mkdir()
    shutil.copy(digits / "digits.pnnx.param", tmp_path / "cut")
    (tmp_path / "cut" / "digits.pnnx.bin").write_bytes(cut)
    (tmp_path / "labels.txt").write_text("a\nb\n")
    return tmp_path


SENTENCES = [
    # the model
    ("info none.param", "none.param: there is no such file"),
    ("info folder", "folder: a folder with one .param is needed, this has none"),
    ("info garbage.param", "garbage.param:1: a .param file of PNNX begins with 7767517"),
    ("info empty.param", "empty.param: it is empty"),
    ("info garbage.bin", "garbage.bin: it is not a weights file of PNNX"),
    ("info /dev/null", "/dev/null: there is no such file"),
    ("info digits/digit_3.png", "digits/digit_3.png:1: a .param file of PNNX begins with"),
    (f"info {LONG}", "nnn"),
    ("info cut", "cut/digits.pnnx.bin: its directory"),
    ("info digits --bin garbage.bin", ""),
    (
        "info digits/digits.pnnx.param --bin garbage.bin",
        "garbage.bin: it is not a weights file",
    ),
    ("info digits/digits.pnnx.param --bin none.bin", "none.bin: there is no such file"),
    # operator types
    (
        "ops nn.Con2d",
        "no layer for operator type nn.Con2d; the nearest known type is nn.Conv2d",
    ),
    ("ops nn.ReLU nothing*", "no layer for operator type nothing*"),
    # inputs
    ("run digits", "the model takes 1 input (0 1×1×32×32 float32): give them with --input"),
    ("run digits --input none.npy", "none.npy: there is no such file"),
    ("run digits --input folder", "input 'folder' is not an image, .npy or .npz file"),
    ("run digits --input ones ones", "2 inputs were given, the model takes 1 (0)"),
    ("run digits --input rank.npy", "input 0 of 1×1×32×32 was given 3, which has 1 dimensions"),
    ("run digits --input complex.npy", "input 0 takes float32, and complex64 cannot become"),
    ("run digits --input objects.npy", "objects.npy holds object, not numbers"),
    ("run digits --input garbage.npy", "garbage.npy is not a .npy array"),
    ("run digits --input empty.npy", "empty.npy is not a .npy array"),
    ("run digits --input garbage.npz", "garbage.npz cannot be read as .npz"),
    ("run digits --input two.npz", "two.npz has 2 arrays (a, b) for 1 operand (0)"),
    ("run digits --input two.npz:c", "two.npz has no array 'c'; it has a, b"),
    ("run digits --input garbage.png", "garbage.png cannot be read as an image"),
    ("run digits --input random:x", "input 'random:x': a seed is a whole number"),
    ("run digits --input constant:inf", "input 'constant:inf': 'inf' is not finite"),
    (
        "run digits --input digits/digit_3.png --size 0x5",
        "an image cannot be resized to 0×5 pixels",
    ),
    ("run digits --input digits/digit_3.png --size 5x5 --std 0", "a std of 0 would divide by"),
    ("run digits --input digits/digit_3.png --mean 1,2,3", "input 0 has 1 channel, and mean"),
    ("run digits --input ones --backend gpu", "there is no backend 'gpu'; choose one of auto"),
    ("run digits --input ones --backend-from none", "none: there is no such file or folder"),
    ("run digits --input ones --backend-from digits", "digits: there is no such file or"),
    ("digits --demo d --backend gpu", "there is no backend 'gpu'; choose one of auto"),
    ("run digits --input ones --labels none.txt", "labels cannot be read from none.txt: there"),
    ("run digits --input ones --labels garbage.txt", "labels cannot be read from garbage.txt"),
    ("run alone.param --input ones", "the model did not run to its end: alone.param: its"),
    # outputs
    ("run digits --input ones --output o.npy", "o.npy cannot be written: name a .npz file"),
    (
        "run digits --input ones --output none/o.npz",
        "none is not a folder; create it, or choose",
    ),
    ("run digits --input ones --output folder.npz", "folder.npz is a folder; name a .npz file"),
    ("dump digits --input ones --output none/d", "none is not a folder; create it, or choose"),
    (
        "dump digits --input ones --output digits",
        "digits exists and is not a dump; choose a new",
    ),
    ("dump digits --input ones --output labels.txt", "labels.txt is a file; name a folder"),
    (
        "dump digits --input ones --output d --operators x",
        "the graph has no operator named 'x'",
    ),
    ("dump alone.param --input ones --output d --weights", "there are no weights to write"),
    (
        "dump digits --input ones --output d.npz --statistics-only",
        "statistics without arrays need",
    ),
    ("dump digits --input ones --output /dev/full", "/dev/full is a file; name a folder"),
    (
        "render digits --output g.gif",
        "g.gif cannot be written: name a .svg, .png, .pdf, .graphml or .json file",
    ),
    ("render digits --output digits --format json", "digits is a folder; name a .json file"),
    (
        "render digits --output g.svg --format json",
        "g.svg ends in .svg, but the format is json; change the name or",
    ),
    ("render digits --output none/g.svg", "none is not a folder; create it, or choose another"),
    # options that would do nothing, or contradict others
    (
        "run digits --input ones --mean 0.5",
        "--mean applies only to images, and no input is",
    ),
    ("run digits --input rank.npy --size 8x8", "--size applies only to images, and no input"),
    ("check digits --input random:1 --order BGR", "--order applies only to images, and no"),
    (
        "run digits --input ones --ncnn-options deployed",
        "--ncnn-options applies only to a model in ncnn's format",
    ),
    ("info digits --memory-limit 1MB", "--memory-limit of info applies only with --shape"),
    ("info digits --memory-bound 1MB", "--memory-bound of info applies only with --shape"),
    ("digits --sample", "--sample opens the sample model, not digits; leave one out"),
    (
        "reproduce digits --operators pool --output r --expected e.npz --reference d",
        "argument --reference: not allowed with argument --expected",
    ),
    (
        "run digits --input ones --backend numpy --backend-from d",
        "argument --backend-from: not allowed with argument --backend",
    ),
]


@pytest.mark.parametrize(("line", "sentence"), SENTENCES, ids=[line for line, _ in SENTENCES])
def test_sentences(run, place, line, sentence):
    earlier = sorted(path.name for path in place.iterdir())
    found = run(*line.split()).sentence
    assert found.startswith(sentence)
    assert "Errno" not in found
    assert len(found) < 500
    if not line.startswith("dump alone"):
        assert sorted(path.name for path in place.iterdir()) == earlier


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("info", "the following arguments are required: MODEL"),
        ("info digits --wrong", "unrecognized arguments: --wrong"),
        ("info digits --js", "unrecognized arguments: --js"),
        ("run", "the following arguments are required: MODEL"),
        ("dump digits --output d --labels l", "unrecognized arguments: --labels l"),
        ("check digits --labels l", "unrecognized arguments: --labels l"),
        ("dump digits", "the following arguments are required: --output"),
        ("dump digits --output d --format zip", "argument --format: invalid choice: 'zip'"),
        ("render digits", "the following arguments are required: --output"),
        ("run digits --input", "argument --input: expected at least one argument"),
        ("run digits --size 224", "argument --size: '224' is not a size like 224x224"),
        ("run digits --size axb", "argument --size: 'axb' is not a size like 224x224"),
        ("run digits --scale 1/0", "argument --scale: '1/0' is not a number; write e.g. 0.5"),
        ("run digits --mean 1,,2", "argument --mean: '' is not a number; write e.g. 0.5"),
        ("run digits --std nan", "argument --std: 'nan' is not finite"),
        ("digits --theme pink", "argument --theme: invalid choice: 'pink'"),
    ],
)
def test_wrong_arguments(run, place, line, told):
    found = run(*line.split()).sentence
    assert found.startswith(told)
    command = line.split()[0]
    name = f"kuiper-studio {command}" if command in COMMANDS else "kuiper-studio"
    assert found.endswith(f"; {name} --help lists the arguments")


def test_random_bytes(run, place, digits):
    """Models damaged at random give their facts, or one sentence."""
    rng = random.Random(7)
    param = (digits / "digits.pnnx.param").read_bytes()
    weights = (digits / "digits.pnnx.bin").read_bytes()
    words = [b"-1", b"1e400", b"(1,", b"(0,0)", b"\xff", b"\0", b"\x1b[2J", b"9" * 30, b"="]
    for _ in range(150):
        text, data = bytearray(param), bytearray(weights)
        for _ in range(rng.choice([1, 3])):
            start = rng.randrange(len(text))
            text[start : start + rng.randrange(12)] = rng.choice([b"", b" ", *words])
        if rng.random() < 0.3:
            start = rng.randrange(len(data))
            data[start : start + 9] = rng.randbytes(rng.randrange(20))
        (place / "m.param").write_bytes(text)
        (place / "m.bin").write_bytes(data)
        command, *options = rng.choice([["info"], ["run", "--input", "ones"]])
        ended = run(command, "m.param", *options)
        if ended.status == 0:
            assert ended.lines
        else:
            assert "unforeseen" not in ended.sentence
            assert ended.sentence.isprintable()


class TestUnforeseen:
    def test_a_bug_is_a_sentence(self, run, digits, monkeypatch):
        monkeypatch.setattr(program, "load_graph", lambda _: len(5))
        assert run("info", digits).sentence == (
            f"an unexpected TypeError: object of type 'int' has no len(){REPORT}"
        )

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (MemoryError(), "not enough memory"),
            (PermissionError(13, "Permission denied", "x"), "x: permission was denied"),
            (OSError(28, "No space left on device"), "the disk is full"),
            (RecursionError("deep"), f"an unexpected RecursionError: deep{REPORT}"),
            (ValueError("two\n  lines"), f"an unexpected ValueError: two lines{REPORT}"),
        ],
    )  # fmt: skip
    def test_errors_of_all_kinds(self, run, digits, monkeypatch, error, sentence):
        def fail(_: object) -> None:
            raise error

        monkeypatch.setattr(program, "load_graph", fail)
        assert run("info", digits).sentence == sentence

    def test_an_interrupt(self, run, digits, monkeypatch):
        def interrupt(_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(program, "load_graph", interrupt)
        ended = run("info", digits)
        assert (ended.status, ended.err) == (130, "kuiper-studio: interrupted\n")


def test_no_display(run, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert run().sentence == (
        "there is no display for the window; use --demo DIR, or a command without a window: "
        "info, run, dump, check, precision, convert, compare, sweep, recorder, reproduce, "
        "render, ops"
    )


def test_a_command_that_does_not_exist(run):
    assert run("rum").sentence == (
        "'rum' is neither a model nor a command; the commands are info, run, dump, check, "
        "precision, convert, compare, sweep, recorder, reproduce, render, ops"
    )


def test_the_help_names_every_command(run):
    told = run("--help").out
    assert "  render     Draw the graph of a model, or write its layout as data.\n" in told
    assert all(f"\n  {command} " in told for command in COMMANDS)


def test_version(run):
    assert run("--version").lines[0].startswith("kuiper-studio ")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(run, command):
    ended = run(*command.split(), "--help")
    assert ended.status == 0
    assert f"usage: kuiper-studio {command}".strip() in ended.out


# Streams and signals, which need a process of their own


def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kuiper_studio", *map(str, arguments)],
        stdout=options.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **options.get("env", {})},
    )


def test_a_reader_that_has_read_enough(samples, tmp_path):
    # More than a pipe holds, so that the writer notices.
    lines = [f"nn.ReLU r{i} 1 1 v{i} v{i + 1} #v{i + 1}=(1)f32" for i in range(3000)]
    text = "\n".join(["7767517", "3001 3001", "pnnx.Input in 0 1 v0 #v0=(1)f32", *lines, ""])
    (tmp_path / "m.param").write_text(text)
    for options in ([], ["--json"]):
        with start("info", tmp_path / "m.param", *options) as process:
            assert process.stdout.read(20)
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 0


def test_a_full_output(samples):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        process = start("info", samples / "digits", stdout=full)
        _, err = process.communicate()
    assert (process.returncode, err) == (
        2, "kuiper-studio: standard output cannot be written: the disk is full\n",
    )  # fmt: skip


def test_a_terminal_that_knows_ascii_only(samples):
    process = start("info", samples / "digits", env={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "input: 0 1x1x32x32 float32\n" in out


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_dump_that_is_killed_leaves_nothing(samples, tmp_path, number, status):
    arguments = ("--input", samples / "unet" / "scene_1.png", "--format", "png")
    process = start("dump", samples / "unet", *arguments, "--output", tmp_path / "d")
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob(".kuiper-*/new")) and time.monotonic() < deadline:
        if process.poll() is not None:
            break
    process.send_signal(number)
    _, err = process.communicate()
    if process.returncode == 0:
        pytest.skip("the dump was done before it could be killed")
    assert (process.returncode, err) == (status, "kuiper-studio: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(run, digits):
    (digits / "digits.pnnx.param").chmod(0)
    sentence = run("info", digits / "digits.pnnx.param").sentence
    assert sentence.startswith(f"{digits / 'digits.pnnx.param'}: ")
    assert "ermission" in sentence
