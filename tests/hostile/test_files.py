"""Files that once did harm: every command returns the reference's result or one sentence.

Each file has a process of its own with limited memory, which runs all commands one after the
other. So a crash fails one test only. The tests of the faulty code contain the essential cases
again.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.shared

COMMANDS = """
import contextlib, io, json, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
warnings.simplefilter("error")
from kuiper_studio.cli.program import main
param, output, *sources = sys.argv[1:]
fed = ["--input", *sources] if sources else []
bound = ["--memory-bound", "64MiB"]
commands = [["info", param], ["info", param, "--json"]]
commands += [["run", param, *fed, *bound, "--backend", b]
             for b in ("numpy", "onnxruntime", "ncnn", "auto")]
commands += [["dump", param, *fed, *bound, "--output", output], ["check", param, *fed, *bound]]
for command in commands:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        status = main(command)
    print(json.dumps([command[0], status, said.getvalue()[-200:], complained.getvalue()]),
          flush=True)
# Not by getrusage, which counts what the parent had.
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
"""

# The expected end by folder: the shape of the output, or the beginning of a sentence.
RESULTS = {
    "list_operand_cat": "nn.BatchNorm2d 'op2' failed on inputs tuple of 2",
    "list_operand_cat/valid": "1×8×64×64",
    "array_headers": "1×8×64×64",
    "native_sizes/dil_wrap": "1×1×1×1",
    "native_sizes/heap": "nn.BatchNorm2d 'op2' failed on inputs 17×2×48",
    "native_sizes/heap_30": "1×8×3×64",
    "native_sizes/heap_31": "1×8×3×64",
    "native_sizes/heap_w": "1×8×3×64",
    "native_sizes/pad33": "1×1×3×3",
    "native_sizes/pad64": "1×1×3×3",
    "native_sizes/pad_100k": "1×1×3×3",
    "native_sizes/pad_4gb": "1×1×2×2",
    "native_sizes/pad_one": "1×1×3×3",
    "native_sizes/pad_wrap": "1×1×3×3",
    "native_sizes/stride": "1×1×3×3",
    "native_sizes/stride30": "1×1×3×3",
    "native_sizes/stride31": "1×1×1×1",
    "native_sizes/stride32": "1×1×1×1",
    "native_sizes/stride33": "1×1×1×1",
    "native_sizes/deconv_crop": "nn.ConvTranspose2d 'op' failed on inputs 1×4×64×64: an array",
    "native_sizes/deconv_crop2": "nn.ConvTranspose2d 'op' failed on inputs 1×4×64×64: an array",
    "float64_statistics": "scalar float64",
    "blow_up/tuple": "prim::TupleConstruct 'c13' failed on inputs tuple of 2, tuple of 2",
    "blow_up/maxpool": "1×4×8×8",
    "blow_up/lrn": "1×4×8×8",
    "blow_up/cat": "torch.cat 'c16' failed on inputs 32768×4×8×8, 32768×4×8×8: an array",
    "special_numbers/empty_pool": "nn.MaxPool1d 'op' failed on inputs 1×12×2: spatial axis 1",
    "special_numbers/hardtanh_nan": "1×12×2",
    "special_numbers/selfcheck_nan": "1×3×7",
    "special_numbers/sin": "1×65536",
}
WITHOUT_INPUT = ("float64_statistics",)
MOST_KB = 1 << 20  # in memory; the libraries alone take 200 MB


def run(*arguments: object) -> tuple[list[tuple[str, int, str, str]], int]:
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr[-2000:]}"
    *commands, memory = done.stdout.splitlines()
    return [tuple(json.loads(line)) for line in commands], int(memory)


def test_every_file_has_an_expectation(shared):
    found = {p.parent for p in (shared / "hostile").rglob("*.param")}
    assert {str(p.relative_to(shared / "hostile")) for p in found} == set(RESULTS)


@pytest.mark.parametrize("folder", RESULTS)
def test_every_command(shared, tmp_path, folder):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ncnn")
    place = shared / "hostile" / folder
    own = place / "x.npy"
    fed = [] if folder in WITHOUT_INPUT else [own if own.is_file() else "random"]
    commands, memory = run(place / "m.pnnx.param", tmp_path / "dump", *fed)
    refused = " failed on " in RESULTS[folder]
    for command, status, said, complained in commands:
        if command == "info":
            assert status == 0, complained
            continue
        assert status == (2 if refused else 0), (command, said, complained)
        assert "unforeseen" not in complained
        if refused:
            (sentence,) = complained.strip().splitlines()
            assert sentence.startswith(f"kuiper-studio: {RESULTS[folder]}"), command
        elif command == "run":
            assert RESULTS[folder] in said
    assert memory < MOST_KB


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bool_dim.npy", "claims the impossible shape (True,)"),
        ("dims70.npy", "claims 70 dimensions; arrays have"),
        ("huge_zero.npy", "claims 0×1×9223372036854775807×9223372036854775807, more than"),
        ("lzma.npz", "cannot be unpacked: Corrupt input data"),
        ("negative.npy", "claims the impossible shape (-1,)"),
        ("two_negative.npy", "claims the impossible shape (-1, -3, 4)"),
        ("zero_times_huge.npy", "claims 0×9223372036854775807, more than an array can have"),
    ],
)
def test_damaged_arrays(shared, tmp_path, name, sentence):
    folder = shared / "hostile" / "array_headers"
    commands, _ = run(folder / "m.pnnx.param", tmp_path / "dump", folder / name)
    for command, status, _, complained in commands:
        if command != "info":
            assert status == 2
            (said,) = complained.strip().splitlines()
            assert sentence in said
