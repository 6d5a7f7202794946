"""What a command does when a signal ends the process that works for it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them"),
    pytest.mark.slow,
]

NETWORK = (
    "pnnx.Input in 0 1 0 #0=(1,8,32,32)f32",
    (
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=8"
        " kernel_size=(3,3) out_channels=8 padding=(1,1) padding_mode=zeros stride=(1,1)"
        " @weight=(8,8,3,3)f32"
    ),
    "my.Layer own 1 1 1 2",
    (
        "nn.Conv2d last 1 1 2 3 bias=False dilation=(1,1) groups=1 in_channels=8"
        " kernel_size=(3,3) out_channels=8 padding=(1,1) padding_mode=zeros stride=(1,1)"
        " @weight=(8,8,3,3)f32"
    ),
    "pnnx.Output out 1 0 3",
)
LAYER = """
import ctypes
import os
import signal
import time

from engine.layers import register
from engine.values import Array

{top}

@register("my.Layer")
def own(input: Array) -> Array:
    {body}
    return input
"""
# Kernels of libraries that end the process, in the child of the command alone.
SITE = """
import os
import signal

def spoil():
    from engine.backends import ncnn_net, onnx_runtime

    def spoiled(make, number):
        if number is not None:
            os.kill(os.getpid(), number)
        return make()

    for backend in (ncnn_net.NcnnBackend, onnx_runtime.OnnxRuntimeBackend):
        def variants(self, operator, inputs, variants=backend.variants):
            number = FAULTS.get((operator.name, self.name))
            return {
                variant: lambda make=make: spoiled(make, number)
                for variant, make in variants(self, operator, inputs).items()
            }

        backend.variants = variants

os.register_at_fork(after_in_child=spoil)
"""

# A library that gives other numbers than NumPy.
OTHER_NUMBERS = """
def skew():
    from engine.backends import onnx_runtime

    def variants(self, operator, inputs, variants=onnx_runtime.OnnxRuntimeBackend.variants):
        return {
            variant: lambda make=make: (lambda given: tuple(x + 1 for x in make()(given)))
            for variant, make in variants(self, operator, inputs).items()
        }

    onnx_runtime.OnnxRuntimeBackend.variants = variants

os.register_at_fork(after_in_child=skew)
"""


class Bench:
    """A folder with a model, and command lines that run there."""

    def __init__(self, folder: Path, param: Path) -> None:
        self.folder, self.param = folder, param
        self.environment = {
            **os.environ,
            "KUIPER_STUDIO_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(
                [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        self.write_layer()
        (folder / "site").mkdir()

    def write_layer(self, body: str = "pass", top: str = "") -> None:
        (self.folder / "own.py").write_text(LAYER.format(body=body, top=top))

    def spoil(self, faults: dict[tuple[str, str], int]) -> None:
        text = f"FAULTS = { {key: int(number) for key, number in faults.items()} }\n{SITE}"
        (self.folder / "site" / "sitecustomize.py").write_text(text)

    def command(self, *arguments: str) -> list[str]:
        name, *options = arguments
        command = [sys.executable, "-m", "kuiper_studio", name, str(self.param)]
        return [*command, "--layers", "own.py", "--input", "random:1", *options]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def run(self, *arguments: str) -> tuple[int, str, list[str]]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        lines = err.splitlines()
        assert all(line.startswith("kuiper-studio: ") for line in lines), err
        return process.returncode, out, [line.removeprefix("kuiper-studio: ") for line in lines]

    def fail(self, *arguments: str) -> str:
        """The sentence of a command that ends with it and gives nothing else."""
        status, out, (sentence,) = self.run(*arguments)
        assert (status, out) == (2, "")
        return sentence


@pytest.fixture(autouse=True)
def _heeds_signals():
    """Let children heed Ctrl+C and hanging up, which background jobs and nohup ignore."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def bench(tmp_path, make_pair) -> Bench:
    rng = np.random.default_rng(0)
    weights = {
        f"{name}.weight": rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
        for name in ("conv", "last")
    }
    return Bench(tmp_path, make_pair(*NETWORK, weights=weights))


def written(bench: Bench, *arguments: str) -> np.ndarray:
    status, _, lines = bench.run("run", "--output", "out.npz", *arguments)
    assert status == 0, lines
    with np.load(bench.folder / "out.npz") as arrays:
        return arrays["out0"]


def children(process: subprocess.Popen[str]) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(word) for word in listed.read_text(encoding="ascii").split()]


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


# Faults in a library


def test_a_fault_in_a_library_is_worked_around_and_remembered(bench):
    pytest.importorskip("onnxruntime")
    expected = written(bench, "--backend", "numpy")
    bench.spoil({("last", "onnxruntime"): signal.SIGSEGV})
    status, out, lines = bench.run("run", "--backend", "onnxruntime", "--output", "out.npz")
    assert status == 0
    assert out.startswith("5 operators in ")
    assert out.count("written to out.npz") == 1
    (sentence,) = lines
    assert sentence == (
        "a segmentation fault (SIGSEGV) ended onnxruntime in operator 'last'; trying again "
        "without it"
    )
    with np.load(bench.folder / "out.npz") as arrays:
        np.testing.assert_allclose(arrays["out0"], expected, atol=1e-3)

    status, _, (sentence,) = bench.run("run", "--backend", "onnxruntime")
    memory = bench.folder / "cache" / "exclusions.json"
    assert status == 0
    assert sentence == (
        "operator 'last' runs without onnxruntime, which crashed there in an earlier run; "
        f"remove {memory} to allow it again"
    )
    memory.unlink()
    bench.spoil({})
    assert bench.run("run", "--backend", "onnxruntime")[2] == []


def test_a_fault_in_a_reference_is_worked_around_too(bench, make_pair):
    """Its operators have names of their own, and the model itself keeps the library."""
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    weights = {
        f"{name}.weight": rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
        for name in ("conv", "theirs")
    }
    lines = [line.replace(" last ", " theirs ") for line in NETWORK]
    other = make_pair(*lines, weights=weights, name="other")
    bench.spoil({("theirs", "onnxruntime"): signal.SIGSEGV})
    arguments = ("compare", "--backend", "onnxruntime", "--reference", str(other))
    status, out, (sentence,) = bench.run(*arguments)
    assert (status, out.splitlines()[-1][:5]) == (0, "same:")
    assert sentence == (
        "a segmentation fault (SIGSEGV) ended onnxruntime in operator 'theirs'; trying again "
        "without it"
    )
    memory = json.loads((bench.folder / "cache" / "exclusions.json").read_text())
    assert [list(operators) for operators in memory["models"].values()] == [["theirs"]]
    assert bench.run(*arguments)[::2] == (0, [])  # remembered


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGABRT, "an abort (SIGABRT)"),
        (signal.SIGBUS, "a bus error (SIGBUS)"),
        (signal.SIGILL, "an illegal instruction (SIGILL)"),
        (signal.SIGFPE, "an arithmetic exception (SIGFPE)"),
    ],
)
def test_other_faults(bench, number, words):
    pytest.importorskip("ncnn")
    bench.spoil({("conv", "ncnn"): number})
    status, _, lines = bench.run("run", "--backend", "ncnn")
    assert status == 0
    assert lines == [f"{words} ended ncnn in operator 'conv'; trying again without it"]


def test_a_second_fault_ends_the_command(bench):
    pytest.importorskip("ncnn")
    bench.spoil({("conv", "ncnn"): signal.SIGSEGV, ("last", "ncnn"): signal.SIGABRT})
    status, out, lines = bench.run("dump", "--backend", "ncnn", "--output", "dump")
    assert (status, out) == (2, "")
    assert lines == [
        "a segmentation fault (SIGSEGV) ended ncnn in operator 'conv'; trying again without it",
        "an abort (SIGABRT) ended ncnn in operator 'last'; try --backend numpy",
    ]
    assert not (bench.folder / "dump").exists()
    # The first is remembered, so the second one is worked around now.
    status, out, lines = bench.run("dump", "--backend", "ncnn", "--output", "dump")
    assert (status, out) == (0, "written to dump\n")
    assert len(lines) == 3
    assert lines[1] == (
        "an abort (SIGABRT) ended ncnn in operator 'last'; trying again without it"
    )


def test_the_fastest_kernels_are_found_without_it(bench):
    pytest.importorskip("ncnn")
    bench.spoil({("last", "ncnn"): signal.SIGSEGV, ("last", "onnxruntime"): signal.SIGSEGV})
    status, _, lines = bench.run("run", "--tune", "60")
    library = lines[0].partition(" in operator")[0].rpartition(" ")[2]
    assert library in {"ncnn", "onnxruntime"}
    assert len(lines) == 2
    assert status == 2
    status, _, lines = bench.run("run", "--tune", "60")
    assert status == 0


def test_a_check_leaves_it_out(bench):
    pytest.importorskip("ncnn")
    bench.spoil({("last", "ncnn"): signal.SIGSEGV})
    status, out, lines = bench.run("check", "--json")
    assert (status, len(lines)) == (0, 1)
    assert "ended ncnn in operator 'last'" in lines[0]
    kernels = {
        row["kernel"].partition("/")[0]
        for row in json.loads(out)["comparisons"]
        if row["name"] == "last" and row["verdict"] != "left"
    }
    assert "ncnn" not in kernels


def test_a_kill_is_not_tried_again(bench):
    pytest.importorskip("ncnn")
    bench.spoil({("last", "ncnn"): signal.SIGKILL})
    assert bench.fail("run", "--backend", "ncnn") == (
        "a kill (SIGKILL), most likely because memory ran out, ended ncnn in operator 'last'; "
        "try --memory-limit SIZE or --backend numpy"
    )
    assert not (bench.folder / "cache" / "exclusions.json").exists()


# Faults elsewhere


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "a segmentation fault (SIGSEGV)"),
        ("ctypes.string_at(0)", "a segmentation fault (SIGSEGV)"),
        ("os.abort()", "an abort (SIGABRT)"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 2)", "a signal (signal 36)"),
    ],
)
def test_a_layer_of_the_users_own(bench, body, words):
    bench.write_layer(body)
    sentence = f"{words} ended numpy in operator 'own'; one of your own layers may be at fault"
    for command in (("run",), ("dump", "--output", "dump"), ("check",)):
        assert bench.fail(*command) == sentence


OUTSIDE = (
    "an abort (SIGABRT) ended the command outside of any operator; "
    "one of your own layers may be at fault"
)


def test_a_file_of_layers(bench):
    bench.write_layer(top="os.abort()")
    assert bench.fail("run") == OUTSIDE
    process = subprocess.run(
        [sys.executable, "-m", "kuiper_studio", "ops", "--layers", "own.py"],
        cwd=bench.folder, env=bench.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (2, f"kuiper-studio: {OUTSIDE}\n")


def test_after_the_run_no_operator_is_to_blame(bench):
    bench.write_layer("from kuiper_studio.cli import run; run.say = lambda *_: os.abort()")
    assert bench.fail("run", "--output", "out.npz") == OUTSIDE


def test_info_at_other_sizes(bench):
    bench.write_layer("os.abort()")
    process = subprocess.run(
        [sys.executable, "-m", "kuiper_studio", "info", str(bench.param),
         "--layers=own.py", "--shape", "1,8,16,16"],
        cwd=bench.folder, env=bench.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert process.stderr == (
        "kuiper-studio: an abort (SIGABRT) ended numpy in operator 'own'; "
        "one of your own layers may be at fault\n"
    )


# Requests to end


SLEEP = "open('here', 'w').close(); time.sleep(600)"


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_requests_reach_the_child(bench, number, status):
    bench.write_layer(SLEEP)
    process = bench.start("run")
    wait_for((bench.folder / "here").exists)
    (child,) = children(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (status, "", "kuiper-studio: interrupted\n")
    assert not Path(f"/proc/{child}").exists()


def test_a_child_that_is_asked_itself(bench):
    bench.write_layer(f"signal.signal(signal.SIGTERM, signal.SIG_DFL); {SLEEP}")
    process = bench.start("run")
    wait_for((bench.folder / "here").exists)
    os.kill(children(process)[0], signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "", "kuiper-studio: interrupted\n")


def test_the_child_ends_with_the_process_that_was_killed(bench):
    bench.write_layer(SLEEP)
    process = bench.start("run")
    wait_for((bench.folder / "here").exists)
    (child,) = children(process)
    process.kill()
    process.communicate(timeout=60)  # which ends when nobody writes any more
    wait_for(lambda: not Path(f"/proc/{child}").exists())


def test_ctrl_c_in_a_terminal_ends_both(bench):
    bench.write_layer(SLEEP)
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(bench.folder)
        command = bench.command("run")
        os.execve(command[0], command, bench.environment)
    wait_for((bench.folder / "here").exists)
    os.write(terminal, b"\x03")
    shown = b""
    with contextlib.suppress(OSError):  # nobody holds the other end any more
        while data := os.read(terminal, 4096):
            shown += data
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"Traceback" not in shown
    assert shown.count(b"kuiper-studio: interrupted") == 1


# What passes through


def test_statuses_and_streams_pass_through(bench):
    assert written(bench).shape == (1, 8, 32, 32)
    status, out, lines = bench.run("run", "--backend", "nothing")
    assert (status, out) == (2, "")
    assert lines == [
        "there is no backend 'nothing'; choose one of auto, numpy, onnxruntime, ncnn"
    ]
    bench.spoil({})
    with (bench.folder / "site" / "sitecustomize.py").open("a") as file:
        file.write(OTHER_NUMBERS)
    status, out, lines = bench.run("check")
    assert (status, lines) == (1, [])
    assert "differ" in out


def test_the_window_is_not_forked(tmp_path):
    code = (
        "import os, sys; os.fork = None; sys.argv[1:] = ['--version']; "
        "from kuiper_studio.__main__ import main; sys.exit(main())"
    )
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert process.returncode == 0


def test_without_another_process_the_command_works_here(bench):
    code = (
        "import errno, os, sys\n"
        "def fork(): raise BlockingIOError(errno.EAGAIN, 'no more processes')\n"
        "os.fork = fork\n"
        f"sys.argv[1:] = {bench.command('run')[3:]!r}\n"
        "from kuiper_studio.__main__ import main; sys.exit(main())"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=bench.folder, env=bench.environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    assert "out0: 1×8×32×32 float32" in process.stdout
