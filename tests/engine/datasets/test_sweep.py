"""Whole sweeps: statistics against one NumPy pass, resumption, failures."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from datasets_support import COUNT, DIGITS, all_values

from engine.datasets import InputReader, InputSet, SweepOptions, open_sweep, sweep
from engine.errors import FeedError, SweepError, UnknownNameError
from engine.threads import thread_count


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    path = tmp_path_factory.mktemp("inputs") / "set.npy"
    data = np.random.default_rng(3).random((COUNT, 1, 32, 32), np.float32)
    data[4] = 0
    np.save(path, data)
    return path


@pytest.fixture(scope="module")
def expected(inputs):
    return all_values(DIGITS, np.load(inputs))


@pytest.fixture(scope="module")
def found(inputs, tmp_path_factory):
    options = SweepOptions(shard=16, batch=1, dump=True, covariance=True)
    return sweep(DIGITS, inputs, tmp_path_factory.mktemp("out"), options, workers=0)


def test_statistics_are_those_of_one_numpy_pass(found, expected):
    assert list(found.operands) == list(expected)
    for name, values in expected.items():
        mine, exact = found.operands[name], values.astype(np.float64)
        assert mine.count == values.size
        assert (mine.min, mine.max) == (values.min(), values.max())
        assert mine.zeros == (values == 0).sum()
        assert (mine.nan, mine.inf) == (0, 0)
        assert mine.mean == pytest.approx(exact.mean(), abs=1e-6 * exact.std())
        assert mine.std == pytest.approx(exact.std(), rel=1e-6)


def test_channels_are_those_of_one_numpy_pass(found, expected):
    for name, values in expected.items():
        mine = found.operands[name].channels
        rows = np.moveaxis(values, mine.axis + 1, 0).astype(np.float64)
        rows = rows.reshape(len(rows), -1)
        assert np.array_equal(mine.min, rows.min(axis=1))
        assert np.array_equal(mine.max, rows.max(axis=1))
        assert np.array_equal(mine.zeros, (rows == 0).sum(axis=1))
        spread = rows.std()
        np.testing.assert_allclose(mine.mean, rows.mean(axis=1), atol=1e-6 * spread)
        np.testing.assert_allclose(mine.std, rows.std(axis=1), atol=1e-6 * spread)
        np.testing.assert_allclose(
            mine.covariance,
            np.cov(rows, bias=True).reshape(len(rows), -1),
            atol=1e-5 * spread**2,
        )


def test_a_channel_is_dead_in_inputs_with_nothing_but_zeros(found, expected):
    rows = expected["7"].reshape(COUNT, 16, -1)
    share = (rows == 0).all(axis=2).mean(axis=0)
    np.testing.assert_allclose(found.operands["7"].channels.dead, share)


def test_a_channel_is_saturated_at_the_ends_of_an_operators_range(tmp_path):
    model = tmp_path / "m.param"
    model.write_text(
        "7767517\n17 9\n"
        "pnnx.Input x 0 1 0 #0=(1,2,2,3)f32\n"
        "nn.ReLU6 a 1 1 0 1 #0=(1,2,2,3)f32 #1=(1,2,2,3)f32\n"
        "F.sigmoid b 1 1 0 2 $input=0 #0=(1,2,2,3)f32 #2=(1,2,2,3)f32\n"
        "nn.Hardtanh c 1 1 0 3 max_val=5.500000e+00 min_val=0.000000e+00 #3=(1,2,2,3)f32\n"
        "pnnx.Output u 1 0 1\n"
        "pnnx.Output v 1 0 2\n"
        "pnnx.Output w 1 0 3\n"
        "F.hardtanh d 1 1 0 4 $input=0 #4=(1,2,2,3)f32\n"
        "F.hardsigmoid e 1 1 0 5 $input=0 #5=(1,2,2,3)f32\n"
        "F.tanh f 1 1 0 6 $input=0 #6=(1,2,2,3)f32\n"
        "F.softmax g 1 1 0 7 dim=1 $input=0 #7=(1,2,2,3)f32\n"
        "F.softsign h 1 1 0 8 $input=0 #8=(1,2,2,3)f32\n"
        + "".join(f"pnnx.Output y{n} 1 0 {n}\n" for n in range(4, 9))
    )
    data = np.ones((2, 2, 2, 3), np.float32)
    data[0] = np.reshape([-8, 0, 3, 6, 7, 2.5, 1, 2, 3, 4, 5, 5.5], (2, 2, 3))
    np.save(tmp_path / "set.npy", data)
    swept = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    # In channel 0 are -8, 0, 3, 6, 7, 2.5 and six ones, in channel 1 one 5.5.
    assert swept.operands["1"].channels.saturated.tolist() == [2 / 12, 0]
    assert swept.operands["2"].channels.saturated.tolist() == [2 / 12, 0]
    assert swept.operands["3"].channels.saturated.tolist() == [4 / 12, 1 / 12]
    # All but 0 are clipped to -1 or 1; hardsigmoid is 1 from 3 on, and tanh 0.999 from 3.8.
    assert swept.operands["4"].channels.saturated.tolist() == [11 / 12, 1]
    assert swept.operands["5"].channels.saturated.tolist() == [4 / 12, 4 / 12]
    assert swept.operands["6"].channels.saturated.tolist() == [3 / 12, 3 / 12]
    # Only where -8 meets 1 is a probability near 1; its other one, near 0, is no end.
    assert swept.operands["7"].channels.saturated.tolist() == [0, 1 / 12]
    assert swept.operands["8"].channels.saturated.tolist() == [0, 0]
    assert np.isnan(swept.operands["0"].channels.saturated).all()


def test_extreme_inputs_are_sorted_and_the_first_of_equals_wins(found, expected):
    peaks = expected["7"].reshape(COUNT, 16, -1).max(axis=2)
    channels = found.operands["7"].channels
    for channel in range(16):
        most = np.argsort(-peaks[:, channel], kind="stable")[:8]
        least = np.argsort(peaks[:, channel], kind="stable")[:8]
        assert channels.most.inputs[channel].tolist() == most.tolist()
        assert channels.least.inputs[channel].tolist() == least.tolist()
        assert np.array_equal(channels.most.values[channel], peaks[most, channel])


def test_histograms_count_every_element_where_it_lies(found, expected):
    for name, values in expected.items():
        mine = found.operands[name].histogram
        counts, _ = np.histogram(values.astype(np.float64), mine.edges)
        assert np.array_equal(mine.counts, counts)
        assert mine.step == 1
        assert mine.width <= (values.max() - values.min()) / 1023
        for share in (0.0, 0.1, 0.5, 0.999, 1.0):
            middle = np.quantile(values, share, method="inverted_cdf")
            assert abs(found.operands[name].quantile(share) - middle) <= 1.01 * mine.width


def test_inputs_give_other_parts_to_a_sampled_histogram(tmp_path):
    """A third of 3 x 16384 elements each: three equal inputs give each element once."""
    model = tmp_path / "m.param"
    model.write_text(
        "7767517\n2 1\npnnx.Input x 0 1 0 #0=(1,3,128,128)f32\npnnx.Output out 1 0 0\n"
    )
    image = np.random.default_rng(6).normal(size=(1, 3, 128, 128)).astype(np.float32)
    np.save(tmp_path / "set.npy", np.repeat(image, 3, axis=0))
    swept = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    mine = swept.operands["0"].histogram
    assert mine.step == 3
    assert np.array_equal(mine.counts, np.histogram(image.astype(np.float64), mine.edges)[0])


def test_an_unusual_input_is_an_outlier(found):
    assert found.operands["0"].outliers[0].index == 4


def test_the_summary_has_what_scripts_read(found, expected):
    summary = json.loads((found.path / "summary.json").read_bytes())
    assert summary["operands"]["23"].items() >= {
        "count": 10 * COUNT, "nan": 0, "inf": 0, "zeros": int((expected["23"] == 0).sum()),
    }.items()  # fmt: skip
    assert summary["inputs"]["done"] == COUNT


def test_results_are_the_same_with_two_workers_and_one_is_killed(
    found, inputs, tmp_path, monkeypatch
):
    pytest.importorskip("distributed")
    import os
    import signal

    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    killed, limits = [], []

    def kill_one(done, total):
        if not killed:
            import psutil

            workers = [
                child for child in psutil.Process().children(recursive=True)
                if "spawn_main" in " ".join(child.cmdline())
            ]  # fmt: skip
            environment = workers[-1].environ()
            limits.extend(environment[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS"))
            killed.append(workers[-1].pid)
            os.kill(killed[0], signal.SIGKILL)

    options = SweepOptions(shard=16, batch=1, covariance=True)
    other = sweep(DIGITS, inputs, tmp_path / "out", options, workers=2, progress=kill_one)
    assert killed
    # More threads than processors would spin; a lower limit of the user stays.
    assert limits == [str(max(1, thread_count() // 2)), "1"]
    assert os.environ["OMP_NUM_THREADS"] == "64"
    ours, theirs = found.study("statistics"), other.study("statistics")
    for name, array in ours.items():
        assert np.array_equal(array, theirs[name], equal_nan=True), name


def test_what_a_killed_worker_had_begun_to_write_is_removed(inputs, tmp_path):
    """A process that is killed while it writes among the results stands for the worker."""
    half = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from engine.atomic import written_beside\n"
        "with written_beside(Path(sys.argv[1])) as partial:\n"
        "    partial.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    left = []

    def write_half(done, total):
        if not left:
            shards = tmp_path / "out" / "shards"
            subprocess.run([sys.executable, "-c", half, str(shards / "x.npz")], check=False)
            left.extend(shards.glob(".kuiper-*"))

    sweep(
        DIGITS, inputs, tmp_path / "out", SweepOptions(shard=16), workers=0, progress=write_half
    )
    assert len(left) == 1
    assert not [*(tmp_path / "out").rglob(".kuiper-*")]


def test_a_sweep_does_not_wait_for_ever_without_workers(monkeypatch):
    cluster = pytest.importorskip("engine.datasets.cluster")
    now, threads = [0.0], {"tcp://one": 1, "tcp://two": 2}

    class Client:
        @staticmethod
        def nthreads():
            return threads

    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    workers = cluster._Workers(Client())
    assert workers.threads() == 3
    threads.clear()
    now[0] = 100
    assert workers.threads() == 0
    threads["tcp://three"] = 1  # one was started anew
    now[0] = 200
    assert workers.threads() == 1
    threads.clear()
    now[0] = 300
    assert workers.threads() == 0
    now[0] = 330
    with pytest.raises(SweepError, match="all workers have been gone .* --resume"):
        workers.threads()


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"NumPy": "1.26.4"}, "has NumPy 1.26.4, but the command NumPy 2.4.0: all need"),
        ({"NumPy": "2.4.9", "Python": "3.12.0"}, None),
        ({"Python": "3.13.1"}, "has Python 3.13.1, but the command Python 3.12.7: all need"),
        (
            {"Kuiper Studio": "0.1.1", "NumPy": "2.3.0"},
            (
                "has Kuiper Studio 0.1.1 and NumPy 2.3.0, but the command "
                "Kuiper Studio 0.1.0 and NumPy 2.4.0: all need the same"
            ),
        ),
    ],
)
def test_workers_of_other_versions(theirs, told, monkeypatch):
    cluster = pytest.importorskip("engine.datasets.cluster")
    mine = {"Kuiper Studio": "0.1.0", "Python": "3.12.7", "NumPy": "2.4.0"}
    monkeypatch.setattr(cluster, "_versions", lambda: mine)

    class Client:
        @staticmethod
        def run(_):
            return {"tcp://one:1": mine, "tcp://two:2": mine | theirs}

    if told is None:
        cluster._check_versions(Client())
        return
    with pytest.raises(SweepError, match=re.escape(f"the worker at tcp://two:2 {told}")):
        cluster._check_versions(Client())


def test_a_resumed_sweep_computes_only_what_is_missing(inputs, tmp_path, monkeypatch):
    from engine.datasets.model import LoadedModel

    options = SweepOptions(shard=16, batch=8)
    first = sweep(DIGITS, inputs, tmp_path, options, workers=0)
    before = first.study("statistics")
    shards = sorted((tmp_path / "shards").iterdir())
    shards[1].write_bytes(shards[1].read_bytes()[:-100])  # as if it were damaged
    shards[2].unlink()
    ran = []
    run_batch = LoadedModel.run_batch

    def counted(self, batch):
        ran.append(len(batch))
        return run_batch(self, batch)

    monkeypatch.setattr(LoadedModel, "run_batch", counted)
    again = sweep(DIGITS, inputs, tmp_path, options, workers=0, resume=True)
    assert sum(ran) == COUNT - 16
    for name, array in before.items():
        assert np.array_equal(array, again.study("statistics")[name], equal_nan=True)
    ran.clear()
    data = np.load(inputs)
    data[20] += 1
    other = tmp_path.with_name("other.npy")
    np.save(other, data)
    sweep(DIGITS, other, tmp_path, options, workers=0, resume=True)
    assert sum(ran) == 16


def test_an_earlier_sweep_is_not_overwritten_unasked(inputs, tmp_path):
    options = SweepOptions(limit=2)
    sweep(DIGITS, inputs, tmp_path, options, workers=0)
    with pytest.raises(SweepError, match="--resume continues it"):
        sweep(DIGITS, inputs, tmp_path, options, workers=0)
    sweep(DIGITS, inputs, tmp_path, options, workers=0, overwrite=True)
    assert open_sweep(tmp_path).inputs.done == 2


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_mended_input_changes_its_own_task_only(tmp_path, damaged):
    """Also where it is one of the first, which choose the size of a batch."""
    folder, out = tmp_path / "set", tmp_path / "out"
    folder.mkdir()
    pictures = np.random.default_rng(6).random((64, 1, 1, 32, 32)).astype(np.float32)
    for number, picture in enumerate(pictures):
        np.save(folder / f"{number:02}.npy", picture)
    place = folder / f"{damaged:02}.npy"
    np.save(place, np.zeros((1, 3, 32, 32), np.float32))
    options = SweepOptions(shard=32)
    first = sweep(DIGITS, folder, out, options, workers=0).inputs
    assert [each.index for each in first.failed] == [damaged]
    before = {path.name: path.stat().st_mtime_ns for path in (out / "shards").glob("*.npz")}
    np.save(place, pictures[damaged])
    assert not sweep(DIGITS, folder, out, options, workers=0, resume=True).inputs.failed
    after = {path.name: path.stat().st_mtime_ns for path in (out / "shards").glob("*.npz")}
    assert [before[name] == after[name] for name in sorted(before)] == [False, True]


@pytest.mark.parametrize("how", ["resume", "overwrite"])
def test_a_sweep_that_cannot_begin_leaves_an_earlier_one_as_it_was(inputs, tmp_path, how):
    files = tmp_path / "files"
    files.mkdir()
    for number, array in enumerate(np.load(inputs)[:3]):
        np.save(files / f"{number}.npy", array[np.newaxis])
    out = tmp_path / "out"
    sweep(DIGITS, files, out, workers=0)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    empty, wrong = tmp_path / "empty", tmp_path / "wrong"
    for folder in (empty, wrong):
        folder.mkdir()
    np.save(wrong / "0.npy", np.zeros((1, 7, 3), np.float32))
    for unusable in (tmp_path / "none", empty, wrong):
        with pytest.raises(SweepError):
            sweep(DIGITS, unusable, out, workers=0, **{how: True})
    nothing = SweepOptions(operators=("none",))
    with pytest.raises(UnknownNameError):
        sweep(DIGITS, files, out, nothing, workers=0, **{how: True})
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    with InputReader(open_sweep(out).inputs.set) as reader:
        assert reader.name(2) == str(files / "2.npy")
    assert sweep(DIGITS, files, out, workers=0, **{how: True}).inputs.done == 3
    assert not (out / ".planned").exists()


def test_inputs_are_not_overwritten_by_the_dump_that_they_are_in(inputs, tmp_path):
    pytest.importorskip("zarr")
    options = SweepOptions(limit=2, dump=True)
    found = sweep(DIGITS, inputs, tmp_path / "out", options, workers=0)
    source = tmp_path / "in.zarr"
    source.symlink_to(found.dump / "0")
    for how in ("resume", "overwrite"):
        with pytest.raises(SweepError, match="they are in the dump that is to be written"):
            sweep(DIGITS, source, tmp_path / "out", options, workers=0, **{how: True})
    assert open_sweep(tmp_path / "out").inputs.done == 2


def test_a_sweep_that_cannot_begin_leaves_nothing(inputs, tmp_path):
    out = tmp_path / "out"
    for wrong in (tmp_path / "none", inputs.parent, f"{inputs.parent}/*.png"):
        with pytest.raises(SweepError):
            sweep(DIGITS, wrong, out, SweepOptions(shapes=("7,7",)), workers=0)
    with pytest.raises(UnknownNameError):
        sweep(DIGITS, inputs.parent, out, SweepOptions(operators=("none",)), workers=0)
    pytest.importorskip("distributed")
    with pytest.raises(SweepError, match="there is no scheduler"):
        sweep(DIGITS, inputs.parent, out, scheduler="none://x")
    assert sweep(DIGITS, inputs.parent, out, SweepOptions(limit=1), workers=0).inputs.done == 1


def test_a_dump_that_holds_nothing_whole_is_not_left(inputs, tmp_path):
    pytest.importorskip("zarr")
    out, options = tmp_path / "out", SweepOptions(limit=20, dump=True, shard=16, batch=1)

    def cancelled_after(tasks):
        looks = iter(range(tasks + 1))
        return lambda: next(looks) == tasks

    for _ in range(2):  # no task has ended: nothing is asked of the second
        with pytest.raises(SweepError, match="cancelled"):
            sweep(DIGITS, inputs, out, options, workers=0, cancelled=cancelled_after(0))
        assert not (out / "dump.zarr").exists()
    with pytest.raises(SweepError, match="cancelled"):
        sweep(DIGITS, inputs, out, options, workers=0, cancelled=cancelled_after(1))
    with pytest.raises(SweepError, match="--resume continues it"):
        sweep(DIGITS, inputs, out, options, workers=0)
    sweep(DIGITS, inputs, out, options, workers=0, resume=True)
    shutil.rmtree(out / "shards")
    with pytest.raises(SweepError, match="cancelled"):
        sweep(
            DIGITS, inputs, out, options, workers=0, resume=True, cancelled=cancelled_after(0)
        )
    assert (out / "dump.zarr").exists()  # it was a whole one


def test_a_script_that_its_workers_run_again_is_told_so(tmp_path):
    pytest.importorskip("distributed")
    np.save(tmp_path / "set.npy", np.zeros((2, 1, 32, 32), np.float32))
    script = tmp_path / "script.py"
    script.write_text(
        "import engine\nfrom engine.errors import SweepError\ntry:\n"
        f"    engine.sweep({str(DIGITS)!r}, 'set.npy', 'out', workers=1)\n"
        "except SweepError as exc:\n    print(exc)\n"
    )
    ended = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert 'must call engine.sweep under `if __name__ == "__main__":`' in ended.stdout
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""
    assert ended.returncode == 0
    assert not list((tmp_path / "out").glob(".unguarded"))


def test_a_folder_of_the_user_is_left_alone(inputs, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(SweepError, match="other files"):
        sweep(DIGITS, inputs, tmp_path, workers=0, overwrite=True)


def test_unreadable_inputs_are_listed_and_passed_over(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    for number in range(4):
        np.save(folder / f"{number}.npy", np.full((1, 1, 32, 32), number, np.float32))
    (folder / "1.npy").write_bytes(b"no array")
    np.save(folder / "2.npy", np.zeros(3))
    found = sweep(DIGITS, folder, tmp_path / "out", workers=0)
    assert [(each.index, each.name) for each in found.inputs.failed] == [
        (1, str(folder / "1.npy")), (2, str(folder / "2.npy")),
    ]  # fmt: skip
    assert (found.inputs.done, found.inputs.failed_count) == (2, 2)
    assert found.operands["0"].count == 2 * 1024
    with pytest.raises(SweepError, match="input 1: .*cannot be read") as failed:
        sweep(DIGITS, folder, tmp_path / "b", SweepOptions(strict=True), workers=0)
    assert str(failed.value).count("1.npy") == 1
    (folder / "1.npy").unlink()  # a reason without the name: it is of another shape
    with pytest.raises(SweepError, match=r"input 1: .*2\.npy: ") as failed:
        sweep(DIGITS, folder, tmp_path / "c", SweepOptions(strict=True), workers=0)
    assert str(failed.value).count("2.npy") == 1


def test_operators_that_cannot_run_are_named(tmp_path):
    model = tmp_path / "m.param"
    model.write_text(
        "7767517\n5 4\n"
        "pnnx.Input x 0 1 0 #0=(1,2)f32\n"
        "nn.Unheard a 1 1 0 1\n"
        "nn.ReLU b 1 1 1 2\n"
        "nn.ReLU c 1 1 0 3\n"
        "pnnx.Output y 1 0 2\n"
    )
    np.save(tmp_path / "set.npy", np.ones((2, 2), np.float32))
    found = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0)
    assert list(found.operands) == ["0", "3"]
    (remark,) = found.remarks
    assert remark == (
        "1 operator cannot run, and what needs the results is left out: 'a': no layer for "
        "operator type nn.Unheard"
    )
    few = SweepOptions(operators=("c",))
    assert sweep(model, tmp_path / "set.npy", tmp_path / "few", few, workers=0).remarks == ()


def save_numbered(folder, numbers):
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        np.save(folder / f"{number}.npy", np.full((1, 1, 32, 32), number, np.float32))


def names_of(found):
    with InputReader(found.inputs.set) as reader:
        return [reader.name(index) for index in range(found.inputs.count)]


def test_links_to_folders_count_and_rings_of_them_end(tmp_path):
    save_numbered(tmp_path / "elsewhere", [2])
    save_numbered(tmp_path / "set" / "a", [1])
    (tmp_path / "set" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "elsewhere" / "across").symlink_to(tmp_path / "set" / "a")
    found = sweep(DIGITS, tmp_path / "set", tmp_path / "out", workers=0)
    names = names_of(found)
    expected = ["a/1.npy", "b/2.npy", "b/across/1.npy"]
    assert names == [str(tmp_path / "set" / name) for name in expected]


def test_a_list_has_comments_and_may_come_from_windows(tmp_path):
    save_numbered(tmp_path / "set", [1, 2])
    text = "\ufeffset/2.npy\r\n# set/none.npy\r\n\r\nset/1.npy\r\nset/2.npy\r\n"
    (tmp_path / "list.txt").write_bytes(text.encode())
    found = sweep(DIGITS, tmp_path / "list.txt", tmp_path / "out", workers=0)
    names = names_of(found)
    assert names == [str(tmp_path / "set" / f"{number}.npy") for number in (2, 1, 2)]
    assert found.operands["0"].count == 3 * 1024


@pytest.mark.parametrize("version", [2, 3])
def test_the_entries_of_a_zarr_array(inputs, tmp_path, version):
    zarr = pytest.importorskip("zarr")
    data = np.load(inputs)
    path = tmp_path / "set.zarr"
    array = zarr.create_array(
        str(path), shape=data.shape, chunks=(7, 1, 32, 32), dtype="f4", zarr_format=version
    )
    array[:] = data
    found = sweep(DIGITS, path, tmp_path / "out", SweepOptions(limit=20), workers=0)
    assert found.inputs.done == 20
    assert found.operands["0"].max == data[:20].max()
    assert found.operands["0"].zeros == 1024  # input 4


@pytest.mark.parametrize("content", [b"junk", b"\x93NUMPY\x01\x00\xff\xff"])
def test_an_array_that_is_none(tmp_path, content):
    (tmp_path / "set.npy").write_bytes(content)
    with pytest.raises(SweepError, match=r"set\.npy is not a \.npy array: its header"):
        sweep(DIGITS, tmp_path / "set.npy", tmp_path / "out", workers=0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_pipe_among_the_inputs_is_passed_over(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    os.mkfifo(folder / "0.npy")
    np.save(folder / "1.npy", np.zeros((1, 1, 32, 32), np.float32))
    found = sweep(DIGITS, folder, tmp_path / "out", workers=0)
    assert [each.index for each in found.inputs.failed] == [0]
    assert "it is a folder, a pipe or a device" in found.inputs.failed[0].reason
    assert found.inputs.done == 1


def test_a_dump_may_be_all_zeros(tmp_path):
    """Of a task, or of the whole data set: Zarr leaves such files out."""
    zarr = pytest.importorskip("zarr")
    data = np.zeros((32, 1, 32, 32), np.float32)
    data[20:] = np.random.default_rng(0).random((12, 1, 32, 32), np.float32)
    np.save(tmp_path / "set.npy", data)
    options = SweepOptions(shard=16, batch=1, dump=True)
    written = set()
    for _ in range(2):  # resumed, it computes nothing again
        found = sweep(
            DIGITS, tmp_path / "set.npy", tmp_path / "out", options, workers=0, resume=True
        )
        stored = zarr.open_array(str(found.dump / "0"), mode="r")
        np.testing.assert_array_equal(stored[:], data)
        parts = sorted((found.dump / "0" / "c").iterdir())
        assert [part.name for part in parts] == ["0", "1"]
        written.add(tuple((part / "0/0/0").stat().st_mtime_ns for part in parts))
    assert len(written) == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_entries_of_an_array_are_read_as_they_lie_in_the_file(tmp_path, order):
    data = np.random.default_rng(0).random((5, 1, 32, 32), np.float32)
    np.save(tmp_path / "set.npy", np.asarray(data, order=order))
    found = sweep(DIGITS, tmp_path / "set.npy", tmp_path / "out", workers=0)
    assert found.operands["0"].channels.most.inputs[0, 0] == data.max(axis=(1, 2, 3)).argmax()
    with InputReader(found.inputs.set) as reader:
        for index, item in enumerate(data):
            np.testing.assert_array_equal(reader.entry(index), item)


def test_entries_that_an_array_has_lost_are_failed_inputs(tmp_path):
    path = tmp_path / "set.npy"
    np.save(path, np.zeros((4, 1, 32, 32), np.float32))
    with InputReader(InputSet("npy", str(path), "set.npy", 4)) as reader:
        os.truncate(path, path.stat().st_size - 100)
        assert reader.entry(2).shape == (1, 32, 32)
        with pytest.raises(FeedError, match=r"set\.npy\[3\] cannot be read"):
            reader.entry(3)


def test_a_kept_result_with_failures_is_none_when_all_must_run(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    for number in range(2):
        np.save(folder / f"{number}.npy", np.zeros((1, 1, 32, 32), np.float32))
    (folder / "1.npy").write_bytes(b"no array")
    sweep(DIGITS, folder, tmp_path / "out", workers=0)
    strict = SweepOptions(strict=True)
    with pytest.raises(SweepError, match="input 1: .*cannot be read"):
        sweep(DIGITS, folder, tmp_path / "out", strict, workers=0, resume=True)


def _model_of_four(path, last):
    path.write_text(
        "7767517\n4 3\n"
        "pnnx.Input x 0 1 0 #0=(4,1,2,3)f32\n"
        "pnnx.Expression a 1 1 0 1 expr=sub(@0,0.5) #0=(4,1,2,3)f32 #1=(4,1,2,3)f32\n"
        f"{last}\n"
        "pnnx.Output out 1 0 2\n"
    )
    return path


def test_different_inputs_fill_the_batch_that_a_model_takes(tmp_path):
    last = "Tensor.reshape b 1 1 1 2 shape=(4,6) $input=1 #1=(4,1,2,3)f32 #2=(4,6)f32"
    model = _model_of_four(tmp_path / "m.param", last)
    data = np.random.default_rng(0).random((6, 1, 2, 3), np.float32)
    np.save(tmp_path / "set.npy", data)
    notes = []
    found = sweep(model, tmp_path / "set.npy", tmp_path / "out", workers=0, note=notes.append)
    assert not notes
    assert found.inputs.done == 6
    assert found.operands["2"].shape == (6,)
    assert found.operands["2"].count == data.size  # not four times
    assert found.operands["2"].mean == pytest.approx(data.mean() - 0.5, abs=1e-6)
    assert found.operands["1"].channels.most.inputs[0, 0] == data.max(axis=(1, 2, 3)).argmax()


def test_an_input_fills_the_batch_alone_where_inputs_depend_on_each_other(tmp_path):
    last = "torch.cumsum b 1 1 1 2 dim=0 $input=1 #1=(4,1,2,3)f32 #2=(4,1,2,3)f32"
    model = _model_of_four(tmp_path / "m.param", last)
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((4, 1, 2, 3), number, np.float32))
    notes = []
    pattern = str(tmp_path / "*.npy")
    found = sweep(model, pattern, tmp_path / "out", workers=0, note=notes.append)
    assert notes == ["the model takes several inputs at once; each input fills its batch alone"]
    assert list(found.remarks) == notes
    assert (found.operands["2"].count, found.operands["2"].max) == (3 * 24, 4 * 1.5)


def test_a_dump_is_opened_by_others_and_is_a_reference(found, expected):
    xarray, array = pytest.importorskip("xarray"), pytest.importorskip("dask.array")
    import engine

    path = found.dump
    opened = xarray.open_zarr(path, consolidated=False)
    assert opened["7"].dims == ("input", "channels_16", "rows_32", "columns_32")
    for name, values in expected.items():
        assert np.array_equal(opened[name].values, values)
    assert np.array_equal(array.from_zarr(path / "19")[17].compute(), expected["19"][17])
    reference = engine.open_reference(f"{path}:33")
    assert (reference.inputs, reference.outputs) == (("0",), ("23",))
    for name, values in expected.items():
        assert np.array_equal(reference.array(name), values[33:34])
    session = engine.Session(engine.load(DIGITS), backend="numpy")
    session.feed([expected["0"][33:34]])
    session.run()
    assert engine.compare(session, reference).verdict == "same"
    with pytest.raises(engine.errors.ReferenceFileError, match="0 to 39"):
        engine.open_reference(f"{path}:40")
