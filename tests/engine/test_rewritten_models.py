"""Files that are written again while their model is open: it keeps what it was opened with."""

from __future__ import annotations

import errno
import gc
import importlib.util
import io
import os
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.dump import DumpOptions, write_dump
from engine.errors import ExportError, InferenceError, ModelFileError
from engine.pnnx import archive as archive_module
from engine.pnnx import load, private_copy, save
from engine.self_check import self_check

LINES = (
    "pnnx.Input in 0 1 0 #0=(2,64)f32",
    (
        "nn.Linear one 1 1 0 1 bias=True in_features=64 out_features=96 @bias=(96)f32 "
        "@weight=(96,64)f32 #0=(2,64)f32 #1=(2,96)f32"
    ),
    "nn.ReLU relu 1 1 1 2 #1=(2,96)f32 #2=(2,96)f32",
    (
        "nn.Linear two 1 1 2 3 bias=False in_features=96 out_features=32 "
        "@weight=(32,96)f32 #2=(2,96)f32 #3=(2,32)f32"
    ),
    "pnnx.Output out 1 0 3",
)
LOST = "it changed after the model was opened, before these bytes were read"


def weights_of(seed):
    """Multiples of a quarter: sums of their products are exact, in any order."""
    rng = np.random.default_rng(seed)
    shapes = {"one.bias": (96,), "one.weight": (96, 64), "two.weight": (32, 96)}
    return {n: rng.integers(-8, 9, s).astype(np.float32) / 4 for n, s in shapes.items()}


def computed(weights, x):
    hidden = np.maximum(x @ weights["one.weight"].T + weights["one.bias"], 0)
    return hidden @ weights["two.weight"].T


OLD, NEW = weights_of(1), weights_of(2)
X = np.random.default_rng(3).integers(-4, 5, (2, 64)).astype(np.float32)


def bin_of(param):
    return param.with_suffix(".bin")


def archive_of(weights):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in weights.items():
            archive.writestr(name, array.tobytes())
    return file.getvalue()


def touch_later(path):
    """Give a file a time that no clock is too coarse for."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


def in_place(data):
    """As pnnx does it: the file is truncated, and written from its beginning."""

    def write(path):
        path.write_bytes(data)
        touch_later(path)

    return write


def replace(path):
    """As careful programs do it: written beside, and renamed."""
    beside = path.with_suffix(".new")
    beside.write_bytes(archive_of(NEW))
    beside.replace(path)


WAYS = {
    "same-size": in_place(archive_of(NEW)),
    "smaller": in_place(archive_of({"other.weight": OLD["one.bias"]})),
    "larger": in_place(archive_of({**NEW, "three.weight": np.ones(40_000, np.float32)})),
    "zeros": lambda path: in_place(bytes(path.stat().st_size))(path),
    "nothing": in_place(b""),
    "deleted": Path.unlink,
    "replaced": replace,
}
STAYS = {"deleted", "replaced"}  # the file that was opened is there, without its name


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """A file that is read as a whole, and one whose weights are copied one by one."""
    if request.param == "large":
        monkeypatch.setattr(archive_module, "_SMALL", 0)
    return request.param


@pytest.fixture(params=["young", "settled"])
def age(request, monkeypatch):
    """A file that was just written when it was opened, and one that was not."""
    if request.param == "settled":
        monkeypatch.setattr("engine.file_versions._COARSEST_TICK", -1)
    return request.param


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(archive_module, "_SMALL", 0)


@pytest.fixture
def param(make_pair):
    return make_pair(*LINES, weights=OLD)


def arrays_of(graph):
    return {name: attribute.array for name, attribute in graph.file.weights()}


def assert_old(arrays):
    for name, array in OLD.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


@pytest.mark.usefixtures("age")
class TestWeights:
    @pytest.mark.parametrize("way", WAYS)
    def test_weights_that_were_read_stay(self, param, size, way):
        graph = engine.load(param)
        arrays = arrays_of(graph)
        WAYS[way](bin_of(param))
        assert_old(arrays)
        assert_old(arrays_of(graph))
        assert graph.file.archive.is_kept

    @pytest.mark.parametrize("way", WAYS)
    def test_weights_that_were_not_read(self, param, size, way):
        graph = engine.load(param)
        WAYS[way](bin_of(param))
        if size == "small" or way in STAYS:
            assert_old(arrays_of(graph))
            return
        for _, attribute in graph.file.weights():
            with pytest.raises(ModelFileError, match=LOST) as caught:
                _ = attribute.array
            assert caught.value.path == bin_of(param)

    @pytest.mark.parametrize("way", WAYS)
    def test_weights_of_which_some_were_read(self, param, large, way):
        graph = engine.load(param)
        _ = graph.operator("one").attributes["weight"].array
        WAYS[way](bin_of(param))
        weight = graph.operator("one").attributes["weight"].array
        np.testing.assert_array_equal(weight, OLD["one.weight"])
        if way not in STAYS:
            with pytest.raises(ModelFileError, match=LOST):
                _ = graph.operator("two").attributes["weight"].array

    def test_rewriting_the_same_weights_loses_nothing(self, param, large):
        """What an exporter does that is run twice: nothing is lost."""
        graph = engine.load(param)
        in_place(bin_of(param).read_bytes())(bin_of(param))
        assert_old(arrays_of(graph))

    def test_copied_ahead(self, param, large):
        graph = engine.load(param)
        archive = graph.file.archive
        pieces = 1
        while archive.copy_ahead(5000):
            pieces += 1
            assert pieces < 100
        assert pieces >= sum(a.nbytes for a in OLD.values()) // 5000
        assert archive.is_kept
        WAYS["same-size"](bin_of(param))
        assert_old(arrays_of(graph))

    def test_copied_ahead_while_it_is_written(self, param, large):
        """What was complete by then stays; what was begun is never made up of two files."""
        graph = engine.load(param)
        archive = graph.file.archive
        archive.copy_ahead(1000)  # one.bias, and a piece of one.weight
        WAYS["same-size"](bin_of(param))
        assert not archive.copy_ahead(1 << 20)
        bias = graph.operator("one").attributes["bias"].array
        np.testing.assert_array_equal(bias, OLD["one.bias"])
        for name in ("one", "two"):
            with pytest.raises(ModelFileError, match=LOST):
                _ = graph.operator(name).attributes["weight"].array


@pytest.mark.usefixtures("large")
class TestYoungFiles:
    """The times of a file say nothing when it is written twice within a tick of the clock."""

    def rewrite_unnoticed(self, path, data):
        """Write a file and give it the times it had, as far as that goes."""
        status = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def test_other_weights_are_told_by_their_checksum(self, param):
        graph = engine.load(param)
        data = bin_of(param).read_bytes()
        assert data.count(OLD["two.weight"].tobytes()) == 1
        # the directory stays as it is, as if it had not been written yet
        other = data.replace(OLD["two.weight"].tobytes(), NEW["two.weight"].tobytes())
        self.rewrite_unnoticed(bin_of(param), other)
        one, two = (graph.operator(name).attributes["weight"] for name in ("one", "two"))
        np.testing.assert_array_equal(one.array, OLD["one.weight"])
        with pytest.raises(ModelFileError, match="'two.weight' has a wrong checksum"):
            _ = two.array

    def test_archives_without_checksums_open(self, param):
        data = bytearray(bin_of(param).read_bytes())
        place = 0
        while (place := data.find(b"PK\1\2", place)) >= 0:
            data[place + 16 : place + 20] = bytes(4)
            place += 1
        bin_of(param).write_bytes(data)
        assert_old(arrays_of(engine.load(param)))


BACKENDS = ("numpy", "auto", "onnxruntime", "ncnn")


def session_of(param, backend):
    if backend in {"onnxruntime", "ncnn"} and importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    session = engine.Session(engine.load(param), backend=backend)
    session.feed([X])
    return session


@pytest.mark.parametrize("backend", BACKENDS)
class TestSessions:
    @pytest.mark.parametrize("way", WAYS)
    def test_between_two_steps(self, param, size, backend, way):
        session = session_of(param, backend)
        session.run(until="relu")
        WAYS[way](bin_of(param))
        if size == "large" and way not in STAYS:
            self.assert_fails_at_two(session, bin_of(param))
            return
        session.run()
        np.testing.assert_allclose(session.outputs()[0], computed(OLD, X), rtol=1e-5)

    def assert_fails_at_two(self, session, path):
        with pytest.raises(InferenceError) as caught:
            session.run()
        assert caught.value.operator == "two"
        assert "its weight @weight cannot be read" in caught.value.reason
        assert str(path) in caught.value.reason
        assert LOST in caught.value.reason
        assert session.state is engine.SessionState.FAILED
        hidden = np.maximum(X @ OLD["one.weight"].T + OLD["one.bias"], 0)
        np.testing.assert_allclose(session.value("2"), hidden, rtol=1e-5)

    def test_passes_behind_it(self, param, large, backend):
        """A library keeps a form of the weights; the reference reads them where they lie."""
        session = session_of(param, backend)
        for _ in range(3):
            session.restart()
            session.run()
            WAYS["same-size"](bin_of(param))
        np.testing.assert_allclose(session.outputs()[0], computed(OLD, X), rtol=1e-5)
        session.feed([np.ones((5, 64), np.float32)])  # another program is made
        session.run()
        np.testing.assert_allclose(
            session.outputs()[0], computed(OLD, np.ones((5, 64), np.float32)), rtol=1e-5
        )

    def test_a_file_that_is_rewritten_all_the_time(self, param, large, backend):
        """Each pass gives the numbers of the file that was opened, or says it is gone."""
        path, data = bin_of(param), (archive_of(OLD), archive_of(NEW), b"PK")
        rng = np.random.default_rng(5)
        stop = threading.Event()

        def export():
            for _ in range(400):
                if stop.is_set():
                    return
                in_place(data[rng.integers(3)])(path)

        exporter = threading.Thread(target=export)
        exporter.start()
        try:
            for _ in range(40):
                self.one_pass(param, backend)
        finally:
            stop.set()
            exporter.join()

    def one_pass(self, param, backend):
        try:
            session = session_of(param, backend)
        except ModelFileError:
            return  # half written, and says so
        first = None
        try:
            for _ in range(2):
                session.restart()
                session.run()
                result = session.outputs()[0].copy()
                first = result if first is None else first
                np.testing.assert_allclose(result, first, rtol=1e-5)
        except InferenceError as exc:
            if "cannot be read" not in exc.reason:
                raise
        if first is not None:
            wanted = [computed(weights, X) for weights in (OLD, NEW)]
            assert any(np.allclose(first, each, rtol=1e-5) for each in wanted)


def test_self_check_and_dump_of_weights_that_are_gone(param, large, tmp_path):
    session = session_of(param, "numpy")
    session.run(until="relu")
    WAYS["zeros"](bin_of(param))
    write_dump(session, tmp_path / "values", DumpOptions())
    with pytest.raises(ExportError, match=LOST):
        write_dump(session, tmp_path / "weights", DumpOptions(weights=True))
    assert not (tmp_path / "weights").exists()
    assert "its weight @weight cannot be read" in self_check(session).error.reason


def test_saved_over_its_own_files(param, large):
    graph = load(param)
    save(graph, param, bin_of(param))
    assert_old({name: a.array for name, a in load(param).weights()})
    assert_old({name: a.array for name, a in graph.weights()})


class TestOpening:
    def test_the_directory_is_cut_meanwhile(self, param, large, monkeypatch):
        path, read = bin_of(param), private_copy.read_at

        def cut(descriptor, offset, nbytes):
            data = read(descriptor, offset, nbytes)
            WAYS["nothing"](path)
            return data

        monkeypatch.setattr(archive_module, "read_at", cut)
        with pytest.raises(ModelFileError) as caught:
            engine.load(param, path)
        assert str(caught.value) == (
            f"{path}: it changed while it was opened; open the model again"
        )

    def test_the_structure_is_written_meanwhile(self, param, monkeypatch):
        """Two files of two exports may fit each other, and are no model."""
        keep = archive_module.Archive.keep

        def export(archive):
            in_place(param.read_bytes().replace(b"nn.ReLU", b"nn.Tanh"))(param)
            keep(archive)

        monkeypatch.setattr(archive_module.Archive, "keep", export)
        with pytest.raises(ModelFileError) as caught:
            engine.load(param)
        assert str(caught.value) == (f"{param}: it changed while it was opened; open it again")

    def test_nothing_is_copied(self, param, large, monkeypatch):
        monkeypatch.setattr(private_copy.PrivateCopy, "copy", None)
        monkeypatch.setattr(private_copy.PrivateCopy, "clone", lambda *_: False)
        graph = engine.load(param)
        assert not graph.unsupported  # layers are checked without their weights
        assert not graph.file.archive.is_kept


class TestPrivateFiles:
    def test_the_copy_is_freed_with_the_last_view(self, param, size):
        def descriptors():
            gc.collect()
            return len(list(Path("/proc/self/fd").iterdir()))

        def mappings():
            return Path("/proc/self/maps").read_text(encoding="utf-8").count("(deleted)")

        if not Path("/proc/self/fd").is_dir():
            pytest.skip("no /proc here")
        before = descriptors(), mappings()
        graphs = [engine.load(param) for _ in range(20)]
        arrays = [arrays_of(graph) for graph in graphs]
        assert (descriptors() > before[0]) == (size == "large")
        kept = arrays[3]["one.weight"]
        del graphs, arrays
        np.testing.assert_array_equal(kept, OLD["one.weight"])
        del kept
        assert (descriptors(), mappings()) == before

    @pytest.mark.parametrize("way", WAYS)
    def test_file_systems_that_share_blocks(self, param, large, monkeypatch, way):
        """All of the file is there at once, where the system can (as on btrfs and XFS)."""

        def clone(private, source):
            size = os.fstat(source).st_size
            assert os.pwrite(private._file, os.pread(source, size, 0), 0) == size
            return True

        monkeypatch.setattr(private_copy.PrivateCopy, "clone", clone)
        graph = engine.load(param)
        assert graph.file.archive.is_kept
        assert not graph.file.archive.copy_ahead(1 << 20)
        WAYS[way](bin_of(param))
        assert_old(arrays_of(graph))

    def test_no_file_is_left_or_seen(self, param, large):
        before = sorted(param.parent.iterdir())
        graph = engine.load(param)
        assert_old(arrays_of(graph))
        assert sorted(param.parent.iterdir()) == before

    def test_read_only_folder(self, param, large, monkeypatch):
        """The private file lies elsewhere then: in the cache, or among temporary files."""
        opened, places = os.open, []

        def refuse(path, flags, *arguments, **named):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                places.append(Path(path))
                raise OSError(errno.EACCES, "Permission denied")
            return opened(path, flags, *arguments, **named)

        if sys.platform == "linux":
            monkeypatch.setattr(os, "open", refuse)
        graph = engine.load(param)
        assert_old(arrays_of(graph))
        WAYS["zeros"](bin_of(param))
        assert_old(arrays_of(graph))
        if sys.platform == "linux":
            assert places[0] == param.parent

    def test_without_room_weights_are_read_into_memory(self, param, large, monkeypatch):
        """Weights are read into memory then."""

        def refuse(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(private_copy.os, "ftruncate", refuse)
        graph = engine.load(param)
        assert not graph.file.archive.copy_ahead(1 << 20)  # nothing that nobody asked for
        one = graph.operator("one").attributes["weight"].array
        WAYS["same-size"](bin_of(param))
        np.testing.assert_array_equal(one, OLD["one.weight"])
        with pytest.raises(ModelFileError, match=LOST):
            _ = graph.operator("two").attributes["weight"].array

    @pytest.mark.parametrize("ahead", [False, True])
    def test_the_disk_becomes_full(self, param, large, monkeypatch, ahead):
        def refuse(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        graph = engine.load(param)
        first = graph.operator("one").attributes["bias"].array
        monkeypatch.setattr(private_copy.os, "copy_file_range", refuse, raising=False)
        monkeypatch.setattr(private_copy, "_pwrite", refuse)
        if ahead:
            assert not graph.file.archive.copy_ahead(1 << 20)
        np.testing.assert_array_equal(first, OLD["one.bias"])
        assert_old(arrays_of(graph))

    def test_systems_that_cannot_copy_in_the_kernel(self, param, large, monkeypatch):
        monkeypatch.setattr(private_copy.sys, "platform", "darwin")
        monkeypatch.setattr(private_copy, "_CHUNK", 1000)
        assert_old(arrays_of(engine.load(param)))

    def test_the_folder_vanishes(self, make_pair, tmp_path, large):
        param = make_pair(*LINES, weights=OLD)
        folder = tmp_path / "gone"
        folder.mkdir()
        for path in (param, bin_of(param)):
            path.rename(folder / path.name)
        graph = engine.load(folder / param.name)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        assert_old(arrays_of(graph))

    def test_threads_ask_for_the_same_weight(self, param, large):
        graph = engine.load(param)
        attributes = dict(graph.file.weights())
        found = []
        start = threading.Barrier(4)

        def ask():
            start.wait()
            found.append({name: a.data for name, a in attributes.items()})

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for arrays in found:
            for name, data in arrays.items():
                assert data is found[0][name]
                assert data.tobytes() == OLD[name].tobytes()


def test_a_file_that_is_truncated_while_it_is_read(param):
    """The file is cut to nothing while its weights are looked at, at full size."""
    script = """
        import sys, numpy as np, engine
        graph = engine.load(sys.argv[1])
        weight = graph.operator("big").attributes["weight"]
        if sys.argv[3] == "before":
            weight.array[::4096].sum()
        open(sys.argv[2], "wb").close()
        try:
            print(int(weight.array.sum()))
        except engine.errors.ModelFileError as error:
            print(error.reason)
    """
    big = param.with_name("big.pnnx.param")
    count = 3 << 20
    big.write_text(
        f"7767517\n2 1\npnnx.Input in 0 1 0 #0=(2,4)f32\n"
        f"my.Big big 1 0 0 @weight=({count})f32\n",
        encoding="utf-8",
    )
    for order, said in (("before", str(count)), ("after", LOST)):
        with zipfile.ZipFile(bin_of(big), "w") as archive:
            archive.writestr("big.weight", np.ones(count, np.float32).tobytes())
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), big, bin_of(big), order],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(said)
