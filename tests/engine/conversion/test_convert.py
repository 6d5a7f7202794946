"""Conversions by an exporter that does what the test says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import engine
from engine.conversion.cache import evict
from engine.conversion.convert import convert
from engine.conversion.executable import find_pnnx
from engine.conversion.failures import find_ncnn_losses
from engine.conversion.records import ConversionOptions
from engine.errors import (
    ConversionCancelledError,
    ConversionError,
    FeedError,
    ModelFileError,
    OpenShapeError,
    OpenSourceError,
)

PAIR = """
import zipfile
with zipfile.ZipFile("model.pnnx.bin", "w"): pass
open("model.pnnx.param", "w").write(
    "7767517\\n2 1\\n"
    "pnnx.Input in0 0 1 0 #0=(1,3)f32\\n"
    "pnnx.Output out0 1 0 0\\n"
)
"""
"""What an exporter writes in the end."""


def test_a_missing_exporter_is_named_with_how_to_get_it(data, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConversionError, match="pip install --no-deps pnnx"):
        convert(data / "traced.pt")


def test_the_script_of_pip_is_skipped_for_its_executable(monkeypatch, tmp_path):
    scripts, package = tmp_path / "bin", tmp_path / "lib/python3.11/site-packages/pnnx"
    for folder in (scripts, package):
        folder.mkdir(parents=True)
    (scripts / "pnnx").write_text(
        "#!/usr/bin/python\nfrom pnnx import pnnx\nsys.exit(pnnx())\n"
    )
    (package / "pnnx").write_bytes(b"\x7fELF")
    for place in (scripts / "pnnx", package / "pnnx"):
        place.chmod(0o755)
    monkeypatch.setenv("PATH", str(scripts))
    assert find_pnnx(Path("m.pt")) == package / "pnnx"


def test_the_exporter_runs_on_a_copy_with_our_names(data, exporter, tmp_path):
    note = exporter(
        "import json\n"
        "seen = [sys.argv[1:], os.listdir('.'), dict(os.environ), os.getcwd()]\n"
        "json.dump(seen, open(NOTE, 'w'))\n" + PAIR
    )
    hostile = tmp_path / "customop=evil.so,x.pt"
    hostile.write_bytes((data / "traced.pt").read_bytes())
    os.environ["SECRET_OF_TESTS"] = "1"
    try:
        conversion = convert(hostile)
    finally:
        del os.environ["SECRET_OF_TESTS"]
    arguments, files, environment, folder = json.loads(note.read_text())
    assert (arguments, files) == (["model.pt"], ["model.pt"])
    assert "SECRET_OF_TESTS" not in environment
    assert not Path(folder).exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["bin", "cache", "note", hostile.name]
    )
    assert (conversion.source, conversion.ncnn_param) == (hostile, None)


def test_the_graph_has_its_source(data, exporter):
    exporter("print('############# pass_level5')\n" + PAIR)
    graph = engine.load(data / "traced.pt")
    assert graph.source_path == data / "traced.pt"
    assert [version.path for version in graph.versions] == [data / "traced.pt"]
    assert graph.conversion.log == ("############# pass_level5",)
    assert [op.type for op in graph.operators] == ["pnnx.Input", "pnnx.Output"]


def test_a_bin_is_refused_beside_a_source(data, exporter):
    with pytest.raises(ModelFileError, match="leave the .bin out"):
        engine.load(data / "traced.pt", data / "other.bin")


def test_the_same_content_is_converted_once(data, exporter, tmp_path):
    note = exporter("open(NOTE, 'a').write('x')\n" + PAIR)
    first = convert(data / "traced.pt")
    copy = tmp_path / "copy.pt"
    copy.write_bytes((data / "traced.pt").read_bytes())
    assert convert(copy).folder == first.folder
    assert note.read_text() == "x"
    convert(data / "traced.pt", ConversionOptions(("1,3,4,4",)))  # other sizes
    convert(data / "no_sizes.pt")  # another file
    assert note.read_text() == "xxx"


@pytest.mark.parametrize("damage", ["model.pnnx.param", "conversion.json", "model.pnnx.log"])
def test_a_damaged_entry_is_made_anew(data, exporter, damage):
    note = exporter("open(NOTE, 'a').write('x')\n" + PAIR)
    (convert(data / "traced.pt").folder / damage).unlink()
    assert convert(data / "traced.pt").param.is_file()
    assert note.read_text() == "xx"


def test_another_exporter_converts_again(data, exporter):
    exporter(PAIR)
    first = convert(data / "traced.pt").folder
    exporter(PAIR + "# of another version\n")
    assert convert(data / "traced.pt").folder != first


def test_an_unwritable_cache_is_not_needed(data, exporter, monkeypatch, tmp_path):
    exporter(PAIR)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KUIPER_STUDIO_CACHE", str(tmp_path / "file" / "cache"))
    assert convert(data / "traced.pt").param.is_file()


def test_the_least_recently_used_entries_are_evicted(tmp_path):
    for age, name in enumerate(["newest", "middle", "oldest"]):
        entry = tmp_path / name
        entry.mkdir()
        (entry / "model.pnnx.bin").write_bytes(b"\0" * 100)
        os.utime(entry, (time.time() - 60 * age,) * 2)
    left_behind = tmp_path / ".kuiper-killed"
    left_behind.mkdir()
    os.utime(left_behind, (0, 0))
    evict(tmp_path, 250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["middle", "newest"]
    evict(tmp_path, 10)
    assert [p.name for p in tmp_path.iterdir()] == ["newest"]


# Sizes


def _asked(note):
    return json.loads(note.read_text())


NOTE_ARGUMENTS = "import json\njson.dump(sys.argv[2:], open(NOTE, 'w'))\n" + PAIR


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("no_sizes.pt", (("1,3,8,8",), ()), ["inputshape=[1,3,8,8]f32"]),
        ("no_sizes.pt", (("image=1x3x8x8",), ()), ["inputshape=[1,3,8,8]f32"]),
        ("no_sizes.pt", (("[1,16]i64",), ()), ["inputshape=[1,16]i64"]),
        ("no_sizes.pt", (("1,16i64",), ()), ["inputshape=[1,16]i64"]),
        (
            "no_sizes.pt",
            (("1,3,8,8",), ("1,3,?,16",)),
            ["inputshape=[1,3,8,8]f32", "inputshape2=[1,3,8,16]f32"],
        ),
        ("open.onnx", (("2,3,5,6i32",), ()), ["inputshape=[2,3,5,6]f32"]),  # as in the file
        ("traced.pt", ((), ("1,3,16,16",)), ["inputshape2=[1,3,16,16]f32"]),
        ("open.onnx", (("batch=2", "h=5", "w=6"), ()), ["inputshape=[2,3,5,6]f32"]),
        ("open.onnx", ((), ()), []),
    ],
)
def test_sizes_reach_the_exporter_in_its_format(data, exporter, name, options, expected):
    note = exporter(NOTE_ARGUMENTS)
    convert(data / name, ConversionOptions(*options))
    assert _asked(note) == expected


@pytest.mark.parametrize(
    ("shapes", "error", "words"),
    [
        (("1,3,8,8", "1,3"), FeedError, "has no input"),
        (("1,3,8,8i65",), FeedError, "'i65' is no type; write one of f32, i64"),
        (("other=1,3",), FeedError, "neither an input nor a symbol"),
        (("1,3,8,8 customop=x.so",), FeedError, "neither an input"),
        (("1,3,?,8",), OpenShapeError, "set its size"),
    ],
)
def test_wrong_sizes_never_reach_the_exporter(data, exporter, shapes, error, words):
    note = exporter(NOTE_ARGUMENTS)
    with pytest.raises(error, match=words):
        convert(data / "no_sizes.pt", ConversionOptions(shapes))
    assert not note.exists()


def test_open_sizes_are_requested_only_on_demand(data, exporter):
    exporter(PAIR)
    for name in ("no_sizes.pt", "open.onnx"):
        with pytest.raises(OpenSourceError) as caught:
            convert(data / name, ConversionOptions(asks=True))
        assert caught.value.inputs[0][0] == "image"
        convert(data / name)
    for name in ("traced.pt", "small.onnx"):
        convert(data / name, ConversionOptions(asks=True))


# Failures


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            "input_shapes[0] expect [1,16]i64 but got [1,16]f32",
            "input 0 takes i64, not f32; give its size as 1,16i64",
        ),
        (
            "input_shapes[0] expect [1,3,8,8]f32 but got [1,3,9,9]f32",
            r"exported at \[1,3,8,8\]f32, not \[1,3,9,9\]f32",
        ),
        ("input_shape expect 1 tensors but got 2", "it has 1 inputs, but 2 sizes"),
        (
            "  what():  forward() is missing value for argument 'n.1'. Declaration: forward(",
            "its forward takes n, which is no tensor, .*; trace the model",
        ),
        (
            "  what():  Expected at most 2 argument(s) for operator 'forward', but received 3",
            "or a list of them, which pnnx cannot give",
        ),
        ("Unknown builtin op: torchvision::nms.", "the operator torchvision::nms, which pnnx"),
        (
            "Fatal error: my.ops:Frob(-1) is not a registered function/op",
            "the operator my.ops:Frob, which pnnx does not support",
        ),
        ("Load torchscript failed: some reason", "PyTorch's reader refuses it: some reason"),
        ("terminate called after throwing 'std::bad_alloc'", "memory ran out"),
        (
            "RuntimeError: expected scalar type Half but found Float",
            "computes in Half, which pnnx cannot run; trace model.float",
        ),
        (
            "RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float",
            "computes in BFloat16, which pnnx cannot run; trace model.float",
        ),
        ("Load torchscript failed: Unknown qengine", "quantised weights of PyTorch"),
        ("Unknown builtin op: prim::ConstantMKLDNNTensor", "save it without that"),
        (
            "ort CreateSession failed Invalid tensor data type 0.",
            "input of a type that pnnx cannot",
        ),
        ("ort CreateSession failed no such node", "no such node; repair the model, or export"),
        ("RuntimeError: Given groups=1, expected 3 channels", "these sizes: Given groups=1"),
    ],
)
def test_usual_failures_become_one_sentence(data, exporter, printed, words):
    exporter(f"print({printed!r})\nsys.exit(255)")
    with pytest.raises(ConversionError, match=words) as caught:
        convert(data / "traced.pt")
    assert caught.value.log == (printed,)
    assert "\n" not in str(caught.value)


def test_a_crash_without_a_result(data, exporter):
    exporter(
        "print('############# pass_level1', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    with pytest.raises(
        ConversionError, match=r"crashed \(SIGSEGV\) in pass_level1 .*; save torch.jit.freeze"
    ):
        convert(data / "traced.pt")
    with pytest.raises(
        ConversionError, match="give the sizes of its inputs, or trace the model"
    ):
        convert(data / "no_sizes.pt")


CRASH = "if 'optlevel=1' not in sys.argv: os.kill(os.getpid(), signal.SIGSEGV)\n"


def test_a_crash_is_passed_by_with_less_joined_operators(data, exporter):
    exporter(CRASH + PAIR)
    graph = engine.load(data / "traced.pt")
    assert graph.conversion.notes[-1].startswith("pnnx crashed, so this is what it makes with")


def test_the_first_of_two_crashes_is_told(data, exporter):
    exporter(CRASH + "print('No Op registered for Odd', flush=True)\nsys.exit(1)")
    with pytest.raises(ConversionError, match=r"crashed \(SIGSEGV\)"):
        engine.load(data / "traced.pt")


SLICE = """
lines = ("pnnx.Input in0 0 1 0 #0=()f32",
         "Tensor.slice s 1 1 0 1 dim=1 start=0 end=1 step=1 $input=0 #0=()f32 #1=()f32",
         "pnnx.Output out0 1 0 1")
open("model.pnnx.param", "w").write("7767517\\n3 2\\n" + "\\n".join(lines))
"""


@pytest.mark.parametrize(
    "second",
    [
        "open('model.pnnx.param', 'w').write('7767517\\n2 1\\nstrange')",
        SLICE.replace("1 1 0 1 dim", "1 1 9 1 dim"),  # of what nothing gives
        SLICE,  # of a dimension that there is not
        SLICE.replace("$input=0", "@weight=(3,3)f32"),  # of a weight that there is not
    ],
)
def test_a_second_conversion_that_is_damaged_leaves_the_first(data, exporter, second):
    """With open sizes the file is converted twice, to find slices that are lost."""
    exporter(PAIR + f"if 'optlevel=1' in sys.argv: exec({second!r})")
    options = ConversionOptions(("1,3,8,8",), ("1,3,8,16",))
    graph = engine.load(data / "traced.pt", conversion=options)
    assert len(graph.operators) == 2
    assert graph.conversion.options.optlevel == 2


def test_a_crash_on_onnx_says_what_else_to_export(data, exporter):
    exporter(
        "print('############# pass_level3', flush=True)\n"
        "print('  what():  map::at', flush=True)\nos.kill(os.getpid(), signal.SIGABRT)"
    )
    words = (
        r"crashed \(SIGABRT\) in pass_level3 without a result \(map::at\); export the model as"
    )
    with pytest.raises(ConversionError, match=words):
        convert(data / "small.onnx")


def test_a_crash_after_the_pair_costs_only_the_ncnn_model(data, exporter):
    exporter(
        PAIR
        + "open('model.ncnn.param', 'w').write('half')\n"
        + "print('############# pass_ncnn', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    graph = engine.load(data / "traced.pt")
    assert len(graph.operators) == 2
    assert graph.conversion.ncnn_param is None
    assert graph.conversion.notes == (
        "pnnx crashed (SIGSEGV) in pass_ncnn: there is no ncnn model",
    )


def test_operators_that_ncnn_lacks_are_counted():
    lines = [
        "ignore torch.fft.fft fft_2 param dim=-1",
        "ignore torch.fft.fft fft_2 param n=None",
        "ignore Tensor.reshape r param shape=(1)",
        "FLOPS = 48",
    ]
    sentence = "the ncnn model lacks parameters of 2 operators: fft_2 and 1 more"
    assert find_ncnn_losses(lines) == sentence
    assert find_ncnn_losses(["FLOPS = 48"]) == ""


def test_operators_that_pnnx_does_not_know_are_named(data, exporter):
    exporter(PAIR + "print('custom op = torchvision::nms')")
    assert convert(data / "traced.pt").notes == (
        "pnnx does not know torchvision::nms and keeps it unchanged",
    )


def test_half_a_pair_is_refused(data, exporter):
    exporter(
        "open('model.pnnx.param', 'w').write('7767517\\n2 1\\npnnx.Inp')\n"
        "open('model.pnnx.bin', 'w').write('PK')\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    with pytest.raises(ConversionError, match="crashed"):
        convert(data / "traced.pt")


def test_weights_that_pnnx_cannot_read_are_told(data, exporter):
    """It leaves float16 that is stored as numbers without values, and goes on."""
    exporter(PAIR + "print('unknown Attribute tensor scalar type 3')")
    (note,) = convert(data / "small.onnx").notes
    assert note.startswith("pnnx could not read a weight, and what follows from it is wrong")


def test_a_pair_of_nonsense_is_refused_and_not_kept(data, exporter):
    note = exporter(
        "open(NOTE, 'a').write('x')\n"
        "for name in ('param', 'bin'): open(f'model.pnnx.{name}', 'w').write('nonsense')"
    )
    for _ in range(2):
        with pytest.raises(ConversionError, match="ended with status 0 without a result"):
            convert(data / "traced.pt")
    assert note.read_text() == "xx"


def test_a_link_to_a_file_elsewhere_is_no_result(data, exporter, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the user")
    exporter(f"os.symlink({str(secret)!r}, 'model.pnnx.param')\nopen('model.pnnx.bin', 'w')")
    with pytest.raises(ConversionError, match="without a result") as caught:
        convert(data / "traced.pt")
    assert "of the user" not in str(caught.value)


CHILD = """
import subprocess
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
open(NOTE, 'w').write(f'{os.getpid()} {child.pid}')
print('working', flush=True)
time.sleep(60)
"""


def _is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _wait_for_the_end(note):
    ids = note.read_text().split()
    ended = time.monotonic() + 5
    while any(map(_is_alive, ids)) and time.monotonic() < ended:
        time.sleep(0.01)
    assert [pid for pid in ids if _is_alive(pid)] == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_cancelling_ends_all_started_processes(data, exporter):
    note = exporter(CHILD)
    lines = []
    with pytest.raises(ConversionCancelledError):
        convert(data / "traced.pt", report=lines.append, is_cancelled=lambda: bool(lines))
    assert lines == ["working"]
    _wait_for_the_end(note)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_hang_ends_at_the_time_limit(data, exporter):
    note = exporter(CHILD)
    with pytest.raises(ConversionError, match="did not finish within 1 s"):
        convert(data / "traced.pt", time_limit=1)
    _wait_for_the_end(note)


def test_an_exporter_that_prints_for_ever_can_be_cancelled(data, exporter):
    exporter("while True: sys.stdout.write('x' * 65536)")
    started = time.monotonic()
    with pytest.raises(ConversionError, match="did not finish"):
        convert(data / "traced.pt", time_limit=0.5)
    assert time.monotonic() - started < 5


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_memory_is_bounded(data, exporter, monkeypatch):
    monkeypatch.setattr("engine.conversion.running.machine_memory", lambda: 256 << 20)
    exporter("b = bytearray(512 << 20)\n" + PAIR)
    with pytest.raises(ConversionError, match="memory ran out|status 1"):
        convert(data / "traced.pt")


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_of_the_user_stays_when_it_is_lower():
    launcher = Path(engine.__file__).with_name("conversion") / "launcher.py"
    bounds = f"{1 << 40} {os.getpid()}"
    program = f"exec {sys.executable} -I -S {launcher} {bounds} /bin/sh -c 'ulimit -d'"
    command = ["/bin/bash", "-c", f"ulimit -d 4000000; {program}"]
    assert subprocess.check_output(command, text=True) == "4000000\n"


def test_a_source_that_changes_during_conversion_is_refused(data, exporter, tmp_path):
    source = tmp_path / "m.pt"
    source.write_bytes((data / "traced.pt").read_bytes())
    exporter(f"open({str(source)!r}, 'ab').write(b'more')\n" + PAIR)
    with pytest.raises(ConversionError, match="changed while it was converted"):
        convert(source)


def test_copies_are_named_by_the_source(data, exporter, tmp_path):
    exporter(PAIR)
    conversion = convert(data / "traced.pt")
    written = conversion.copy_to(tmp_path / "out")
    assert [p.name for p in written] == [
        "traced.pnnx.param",
        "traced.pnnx.bin",
        "traced.pnnx.log",
    ]
    assert len(engine.load(written[0]).operators) == 2
    with pytest.raises(FileExistsError):
        conversion.copy_to(tmp_path / "out")
    conversion.copy_to(tmp_path / "out", overwrite=True)
