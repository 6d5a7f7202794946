"""What values may take is asked before it is taken, and a sentence says what was too much."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import engine
from engine.errors import InferenceError, LayerError, MemoryBoundError, SessionStateError
from engine.memory_bound import (
    Room,
    bounded,
    current_room,
    default_bound,
    format_memory_error,
    machine_memory,
    require_extent,
    require_memory,
)
from engine.session import Session, SessionState

MIB = 1 << 20
FLOAT32 = np.dtype(np.float32)
HOW = ": --memory-bound raises it, or Debug → Memory… in the window"


class TestMachine:
    """Control groups as Linux shows them, written by the test."""

    @pytest.fixture
    def groups(self, tmp_path):
        def write(process: str, **files: str):
            (tmp_path / "cgroup").write_text(process)
            for name, text in files.items():
                path = tmp_path / "groups" / name.replace("__", "/").replace("_DOT_", ".")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text}\n")
            return machine_memory(tmp_path / "cgroup", tmp_path / "groups")

        return write

    def test_without_groups(self, tmp_path):
        whole = machine_memory(tmp_path / "none", tmp_path / "none")
        assert whole >= machine_memory()
        assert default_bound() == machine_memory() // 2

    def test_the_least_of_nested_groups(self, groups):
        assert (
            groups(
                "0::/outer/inner\n",
                outer__inner__memory_DOT_max=str(64 * MIB),
                outer__memory_DOT_max=str(48 * MIB),
                memory_DOT_max="max",
            )
            == 48 * MIB
        )

    def test_a_path_of_the_host(self, groups):
        assert groups("0::/docker/1234\n", memory_DOT_max=str(32 * MIB)) == 32 * MIB

    def test_version_1(self, groups):
        text = "5:cpu,cpuacct:/a\n4:memory:/a\n"
        found = groups(text, memory__a__memory_DOT_limit_in_bytes=str(16 * MIB))
        assert found == 16 * MIB

    @pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
    def test_address_space(self):
        program = (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
            "from engine.memory_bound import machine_memory; print(machine_memory())"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert int(found.stdout) <= 3 << 30


class TestBounded:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.empty(2 * MIB, np.uint8),
            lambda: np.zeros((2, MIB), np.uint8),
            lambda: np.ones((2048, 1), np.uint8) + np.ones(1024, np.uint8),
            lambda: np.arange(2 * MIB // 8),
            lambda: np.ones(MIB // 4, np.uint8).astype(np.float64),
            lambda: np.concatenate([np.ones(MIB // 2 + 1, np.uint8)] * 4),
            lambda: np.fromiter((0.0 for _ in range(MIB)), np.float64),
        ],
    )
    def test_every_way_to_make_an_array_is_bounded(self, make):
        with pytest.raises(MemoryBoundError, match=r"the memory bound is 1\.0 MB"):  # noqa: SIM117
            with bounded(Room(MIB)):
                make()
        assert make().nbytes > MIB  # outside as ever

    def test_the_error_names_shape_and_dtype(self):
        with pytest.raises(MemoryBoundError) as caught, bounded(Room(3 * MIB, held=2 * MIB)):
            np.empty((2, MIB), np.float32)
        assert str(caught.value) == (
            "an array 2×1048576 of float32 would take 8.4 MB; the memory bound is 3.1 MB, "
            f"of which 2.1 MB are taken{HOW}"
        )

    def test_other_memory_errors_become_bound_errors(self):
        assert format_memory_error(MemoryError()) == "not enough memory"
        assert format_memory_error(MemoryError("huge")) == "not enough memory: huge"
        with (
            pytest.raises(MemoryBoundError, match="not enough memory: huge"),
            bounded(current_room()),
        ):
            raise MemoryError("huge")

    def test_more_than_the_machine_has(self):
        with pytest.raises(MemoryBoundError) as caught, bounded(Room(1 << 62)):
            np.empty(1 << 50, np.uint8)
        assert str(caught.value) == (
            "not enough memory: an array 1125899906842624 of uint8 would take 1.1 PB"
        )

    def test_other_errors_pass(self):
        with pytest.raises(ZeroDivisionError), bounded(current_room()):
            raise ZeroDivisionError

    def test_nested_bounds(self):
        outer, inner = Room(8 * MIB), Room(MIB)
        with bounded(outer):
            with bounded(outer):
                assert current_room() is outer
            with bounded(inner):
                assert current_room() is inner
                with pytest.raises(LayerError):
                    require_memory((2, MIB), FLOAT32)
            assert current_room() is outer
            np.empty((2, MIB), np.uint8)
        assert current_room().bound == default_bound()

    def test_other_threads_are_not_bounded(self):
        made = []
        with bounded(Room(MIB)):
            thread = threading.Thread(target=lambda: made.append(np.empty(2 * MIB, np.uint8)))
            thread.start()
            thread.join()
        assert made[0].nbytes == 2 * MIB

    def test_arrays_outlive_the_bound(self):
        """Memory is given back by NumPy's own function, also when Python ends."""
        program = (
            "import numpy as np, builtins\n"
            "from engine.memory_bound import Room, bounded\n"
            "with bounded(Room(1 << 30)):\n"
            "    kept = [np.arange(n) for n in (1, 1000, 100_000)]\n"
            "builtins.kept = kept; cycle = [kept]; cycle.append(cycle)\n"
            "for _ in range(1000):\n"
            "    with bounded(Room(1 << 30)): a = np.ones(10_000)\n"
            "    a.resize(20_000, refcheck=False)\n"
            "print(kept[2].sum())"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert (found.returncode, found.stdout.strip()) == (0, "4999950000"), found.stderr

    def test_stretched_views_need_no_free_memory(self):
        with bounded(Room(8 * MIB, held=7 * MIB)):
            require_extent((MIB,), FLOAT32)
            with pytest.raises(LayerError, match=r"4\.2 MB; the memory bound is 8\.4 MB"):
                require_memory((MIB,), FLOAT32)
            with pytest.raises(LayerError, match=r"12\.6 MB; the memory bound is 8\.4 MB:"):
                require_extent((3, MIB), FLOAT32)


def doublings(count: int) -> list[str]:
    """Each joins what was before with itself."""
    return [
        "pnnx.Input in0 0 1 0 #0=(1,4,8,8)f32",
        *(f"torch.cat c{i} 2 1 {i - 1} {i - 1} {i} dim=0" for i in range(1, count + 1)),
        f"pnnx.Output out 1 0 {count}",
    ]


def image(fill=1.0):
    return np.full((1, 4, 8, 8), fill, np.float32)


@pytest.fixture
def session(make_pair):
    def make(*lines: str, weights=None, **options) -> Session:
        return Session(engine.load(make_pair(*lines, weights=weights)), **options)

    return make


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime", "ncnn", "auto"])
def test_doublings_stop_at_the_bound(session, backend):
    """1 KiB, then 2, 4, …: with the fifteenth result all take 64 MiB less 1 KiB."""
    if backend not in {"numpy", "auto"}:
        pytest.importorskip(backend)
    made = session(*doublings(40), backend=backend, memory_bound=64 * MIB - 1025)
    made.feed([image()])
    with pytest.raises(InferenceError) as caught:
        made.run()
    assert made.state is SessionState.FAILED
    failed = made.failed_operator
    assert failed is not None
    assert failed.name == "c15"
    assert str(caught.value) == (
        "torch.cat 'c15' failed on inputs 16384×4×8×8, 16384×4×8×8: an array 32768×4×8×8 of "
        f"float32 would take 33.6 MB; the memory bound is 67.1 MB, of which 33.6 MB are "
        f"taken{HOW}"
    )
    np.testing.assert_array_equal(made.value("3"), np.ones((8, 4, 8, 8)))
    # The others are there to look at, and with more room it goes on.
    made.step_back()
    made.memory_bound = 64 * MIB - 1024
    made.step()
    with pytest.raises(InferenceError, match="c16"):
        made.step()


class TestSession:
    def test_views_are_counted_once(self, session):
        made = session(
            "pnnx.Input in0 0 1 0 #0=(1,4,8,8)f32",
            "torch.neg n 1 1 0 1",
            "Tensor.reshape r 1 1 1 2 shape=(4,64)",
            "torch.permute p 1 1 2 3 dims=(1,0)",
            "pnnx.Output out 1 0 3",
            backend="numpy",
            memory_bound=MIB,
        )
        made.feed([image()])
        assert made.held_bytes == 1024
        made.run()
        assert made.held_bytes == 2048
        made.step_back()  # the output, then the permutation, the reshaping, the negation
        made.step_back()
        made.step_back()
        assert made.held_bytes == 2048
        made.step_back()
        assert made.held_bytes == 1024
        made.restart()
        assert made.held_bytes == 1024

    def test_weights_do_not_count(self, session):
        made = session(
            "pnnx.Attribute a 0 1 0 @data=(64,64)f32 #0=(64,64)f32",
            "torch.permute p 1 1 0 1 dims=(1,0)",
            "torch.neg n 1 1 1 2",
            "pnnx.Output out 1 0 2",
            weights={"a.data": np.zeros((64, 64), np.float32)},
            backend="numpy",
            memory_bound=20 << 10,
        )
        made.run()
        assert made.held_bytes == 64 * 64 * 4

    def test_several_outputs_together(self, session):
        lines = [
            "pnnx.Input in0 0 1 0 #0=(3,1000)f32",
            "torch.sort s 1 2 0 1 2 dim=-1 descending=False",
            "pnnx.Output out 1 0 1",
        ]
        # Fed 12 000 bytes, values as many, and places twice.
        enough = session(*lines, backend="numpy", memory_bound=60_000)
        enough.feed([np.zeros((3, 1000), np.float32)])
        enough.run()
        assert enough.held_bytes == 48_000
        short = session(*lines, backend="numpy", memory_bound=47_999)
        short.feed([np.zeros((3, 1000), np.float32)])
        with pytest.raises(InferenceError, match=r"inputs 3×1000: what it gives to 1"):
            short.run()

    def test_inputs_count(self, session):
        made = session(*doublings(1), memory_bound=1023)
        with pytest.raises(MemoryBoundError) as caught:
            made.feed([image()])
        assert str(caught.value) == (
            f"what is fed to 0 would take 1.0 kB; the memory bound is 1.0 kB{HOW}"
        )
        assert made.state is SessionState.NEED_INPUT

    def test_overrides_count(self, session):
        made = session(*doublings(2), backend="numpy", memory_bound=7 << 10)
        made.feed([image()])
        made.override("1", np.zeros((2, 4, 8, 8), np.float32))
        assert made.held_bytes == 3 << 10
        made.run()
        assert made.held_bytes == 7 << 10
        made.clear_override("1")
        assert made.held_bytes == 1 << 10

    def test_dropped_values_do_not_count(self, session):
        count = 40
        made = session(
            "pnnx.Input in0 0 1 0 #0=(1,4,8,8)f32",
            *(f"torch.neg n{i} 1 1 {i - 1} {i}" for i in range(1, count + 1)),
            f"pnnx.Output out 1 0 {count}",
            backend="numpy",
            memory_limit=8 << 10,
            memory_bound=20 << 10,
        )
        made.feed([image()])
        made.run()
        assert made.held_bytes <= 9 << 10
        np.testing.assert_array_equal(made.value("7"), image(-1.0))
        assert made.held_bytes <= 9 << 10

    def test_a_view_larger_than_the_bound(self, session):
        """Whoever looks at it goes through all of it."""
        made = session(
            "pnnx.Input in0 0 1 0 #0=(1,1)f32",
            "Tensor.expand e 1 1 0 1 sizes=(1024,1024)",
            "pnnx.Output out 1 0 1",
            memory_bound=MIB,
        )
        made.feed([np.ones((1, 1), np.float32)])
        with pytest.raises(InferenceError, match=r"would take 4\.2 MB; the memory bound is 1"):
            made.run()

    def test_a_fork_has_the_bound(self, session):
        assert session(*doublings(1), memory_bound=12345).fork("numpy").memory_bound == 12345

    def test_the_default_is_half_of_the_machine(self, session):
        assert session(*doublings(1)).memory_bound == default_bound()

    def test_a_negative_bound_is_refused(self, session):
        with pytest.raises(SessionStateError, match="a number of bytes, not -1"):
            session(*doublings(1), memory_bound=-1)


X = "pnnx.Input in0 0 1 0 #0=(1,1000)f32"
NUMBERS = "pnnx.Input in0 0 1 0 #0=(1,1000)i64"
TURN = "torch.permute p 1 1 0 1 dims=(1,0)"
LIFT = "Tensor.unsqueeze u 1 1 0 1 dim=0"
SPREAD = (
    "nn.ConvTranspose1d a 1 1 1 2 in_channels=1 out_channels=1 kernel_size=(1) stride=(1000) "
    "padding=(0) output_padding=(0) dilation=(1) groups=1 bias=False @weight=(1,1,1)f32"
)


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize(
    "lines",
    [
        (X, TURN, "torch.add a 2 1 0 1 2"),
        (X, TURN, "torch.matmul a 2 1 1 0 2"),
        (X, TURN, "pnnx.Expression a 2 1 0 1 2 expr=mul(@0,@1)"),
        (X, "torch.squeeze p 1 1 0 1", "torch.outer a 2 1 1 1 2"),
        (X, "torch.squeeze p 1 1 0 1", "torch.einsum a 2 1 1 1 2 equation=i,j->ij"),
        (X, "torch.squeeze p 1 1 0 1", "torch.diag a 1 1 1 2"),
        (X, "torch.squeeze p 1 1 0 1", "torch.diag_embed a 1 1 1 2"),
        (X, "torch.squeeze p 1 1 0 1", "torch.cartesian_prod a 2 1 1 1 2"),
        (X, TURN, "torch.cdist a 2 1 1 1 2 p=2.0"),
        (X, "torch.kron a 2 1 0 0 2"),
        (X, "torch.block_diag a 2 1 0 0 2", "torch.block_diag b 2 1 2 2 3",
         "torch.kron c 2 1 3 3 4"),
        (X, "Tensor.repeat a 1 1 0 2 sizes=(1000,1)"),
        (X, "torch.tile a 1 1 0 2 dims=(1000,1)"),
        (X, "torch.repeat_interleave a 1 1 0 2 repeats=1000 dim=0"),
        (X, "F.pad a 1 1 0 2 pad=(0,1000000) mode=constant value=0"),
        (X, "F.pad a 1 1 0 2 pad=(0,1000000) mode=replicate"),
        (X, LIFT, "F.interpolate a 1 1 1 2 size=1000000"),
        (X, LIFT, "nn.AdaptiveAvgPool1d a 1 1 1 2 output_size=1000000"),
        (X, "torch.fft.fft a 1 1 0 2 n=1000000 dim=-1"),
        (X, "torch.histc a 1 1 0 2 bins=1000000 min=0 max=1"),
        (X, "torch.zeros a 0 1 2 size=(1000,1000) dtype=torch.float"),
        (X, "torch.rand a 0 1 2 size=(1000,1000) dtype=torch.float"),
        (X, "torch.eye a 0 1 2 n=1000 m=1000"),
        (X, "torch.tril_indices a 0 1 2 row=1000 col=1000 offset=0"),
        (X, "torch.arange a 0 1 2 start=0 end=1000000 step=1"),
        (NUMBERS, "F.one_hot a 1 1 0 2 num_classes=1000"),
        (NUMBERS, "nn.Embedding a 1 1 0 2 num_embeddings=1 @weight=(1,1000)f32"),
        (NUMBERS, "torch.squeeze p 1 1 0 1", "torch.bincount a 1 1 1 2 minlength=1000000"),
        (X, LIFT,
         SPREAD),
        (X, LIFT, "Tensor.unsqueeze v 1 1 1 2 dim=0",
         "nn.Unfold a 1 1 2 3 kernel_size=(1,1000) padding=(0,500) stride=1 dilation=1"),
    ],
    ids=lambda lines: lines[-1].split()[0],
)  # fmt: skip
def test_small_inputs_large_results(session, lines, backend):
    """Operators whose results are a thousand times their inputs, and more."""
    shape = (1, 1, 1) if lines[-1] == SPREAD else (1, 1000)
    weights = {"a.weight": np.zeros(shape, np.float32)} if "@weight" in lines[-1] else None
    last = lines[-1].split()
    given = last[4 + int(last[2])]
    made = session(
        *lines, f"pnnx.Output out 1 0 {given}", weights=weights, backend=backend,
        memory_bound=MIB,
    )  # fmt: skip
    made.feed([np.zeros((1, 1000), np.int64 if lines[0] == NUMBERS else np.float32)])
    with pytest.raises(InferenceError, match=r"would take .*; the memory bound is 1\.0 MB"):
        made.run()
    assert made.held_bytes < MIB
