"""Files that are written again: that it is noticed, and what reloading keeps."""

from __future__ import annotations

import gc
import os
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from engine_behind import engine_behind, shows_what_it_holds

from engine.dump import DumpOptions
from engine.inputs import InputSource
from engine.pnnx import archive as archive_module
from engine.shapes import InputShapes
from kuiper_studio.session import RunState
from kuiper_studio.session.file_watch import FileWatch
from rewriting import SIZE, WEIGHTED, export, scaled

LINES = (
    f"pnnx.Input in 0 1 0 #0=(1,{SIZE})f32",
    f"nn.Linear first 1 1 0 1 {WEIGHTED}",
    "nn.ReLU relu 1 1 1 2",
    f"nn.Linear second 1 1 2 3 {WEIGHTED}",
    "F.softmax last 1 1 3 4 dim=1",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def param(make_pair):
    return make_pair(*LINES, weights=scaled(2, 3))


@pytest.fixture
def session(open_model, param):
    """The model, fed with ones and run up to `second`."""
    source = InputSource("array", array=np.ones((1, SIZE), np.float32))
    return open_model(param, source)


@pytest.fixture
def noticed(qtbot, session):
    """A function that waits until the files' change is told."""

    def wait():
        qtbot.waitUntil(lambda: session.files_notice is not None, timeout=10_000)
        return session.files_notice

    return wait


def run_to(session, operator, settle):
    session.run_to(operator)
    settle(session)
    assert session.current.name == operator


def reload(session, settle):
    graph = session.graph
    session.reload()
    settle(session)
    assert session.graph is not graph
    assert shows_what_it_holds(session)


def texts(session, level):
    return [entry.text for entry in session.workspace.log_entries if entry.level == level]


WAYS = {
    "in-place": lambda param: export(param, scaled(5, 7)),
    "smaller": lambda param: export(param, {"other.weight": np.ones(3, np.float32)}),
    "larger": lambda param: export(param, {"other.weight": np.ones(30_000, np.float32)}),
    "empty": lambda param: param.with_suffix(".bin").write_bytes(b""),
}


class TestNotice:
    @pytest.mark.parametrize("way", WAYS)
    def test_written_in_place(self, session, param, noticed, way):
        before = datetime.now().astimezone()
        WAYS[way](param)
        notice = noticed()
        found = re.fullmatch(r"m\.pnnx\.bin was written again at (\d\d:\d\d)", notice.title)
        assert found
        assert found[1] in {f"{before:%H:%M}", f"{datetime.now().astimezone():%H:%M}"}
        assert notice.text == "The open model keeps what it was opened with."
        assert notice.can_reload
        assert texts(session, "warning") == [notice.title]

    def test_replaced(self, session, param, noticed):
        beside = param.with_name("new")
        beside.write_bytes(param.with_suffix(".bin").read_bytes())
        beside.replace(param.with_suffix(".bin"))
        assert noticed().title.startswith("m.pnnx.bin was written again at ")

    def test_both(self, session, param, noticed):
        export(param, scaled(5, 7), LINES)
        assert noticed().title.startswith("m.pnnx.param and m.pnnx.bin were written again at ")

    def test_gone_and_back(self, session, param, noticed, qtbot):
        data = param.read_bytes()
        param.unlink()
        notice = noticed()
        assert notice.title == "m.pnnx.param is gone"
        assert not notice.can_reload
        assert notice.text.endswith("It can be reloaded when the file is back.")
        param.write_bytes(data)
        qtbot.waitUntil(lambda: session.files_notice.can_reload, timeout=10_000)
        assert session.files_notice.title.startswith("m.pnnx.param was written again at ")

    def test_with_its_folder(self, session, param, noticed, qtbot):
        for path in (param, param.with_suffix(".bin")):
            path.unlink()
        noticed()
        qtbot.waitUntil(
            lambda: session.files_notice.title == "m.pnnx.param and m.pnnx.bin are gone",
            timeout=10_000,
        )

    def test_dismissed_until_the_next_time(self, session, param, noticed, qtbot):
        export(param, scaled(5, 7))
        noticed()
        session.dismiss_files_notice()
        assert session.files_notice is None
        (param.parent / "another").write_text("nothing to the model")
        qtbot.wait(500)
        assert session.files_notice is None
        export(param, scaled(6, 8))
        noticed()

    def test_between_opening_and_watching(self, session, param, noticed, settle, monkeypatch):
        watch = FileWatch.watch

        def late(files, versions):
            export(param, scaled(5, 7))
            watch(files, versions)

        monkeypatch.setattr(FileWatch, "watch", late)
        session.set_backend("numpy")
        settle(session)
        assert noticed().title.startswith("m.pnnx.bin was written again")

    def test_nothing_is_said_of_reading_and_of_other_files(self, session, param, qtbot, settle):
        param.read_bytes()
        param.with_suffix(".bin").read_bytes()
        session.resume()
        settle(session)
        session.export_dump(param.parent / "dump", DumpOptions())
        settle(session)
        (param.parent / "other.bin").write_bytes(b"other")
        qtbot.wait(700)
        assert session.files_notice is None

    def test_it_goes_with_reloading_and_closing(self, session, param, noticed, settle):
        export(param, scaled(5, 7))
        noticed()
        reload(session, settle)
        assert session.files_notice is None
        export(param, scaled(6, 8))
        noticed()
        session.close_model()
        assert session.files_notice is None

    def test_weights_that_were_not_read(
        self, open_model, param, monkeypatch, settle, qtbot, empty_session
    ):
        monkeypatch.setattr(archive_module, "_SMALL", 0)
        monkeypatch.setattr("kuiper_studio.engine_service.idle_work._LARGEST_AHEAD", 0)
        # A fused operator reads the weights of those behind it, too.
        monkeypatch.setattr("engine.backends.fusing_kernels._STRATEGIES", ())
        session = open_model(param)
        run_to(session, "relu", settle)
        export(param, scaled(5, 7))
        qtbot.waitUntil(lambda: session.files_notice is not None, timeout=10_000)
        assert session.files_notice.text == (
            "The open model keeps what was read of it; operators whose weights were not read "
            "by then cannot run."
        )
        np.testing.assert_array_equal(session.fetch("1"), np.full((1, SIZE), 2))
        session.resume()
        settle(session)
        failure = session.failure
        assert (session.state, failure.operator) == (RunState.FAILED, "second")
        assert "its weight @weight cannot be read" in failure.reason
        assert str(param.with_suffix(".bin")) in failure.reason
        assert failure.reload
        reload(session, settle)
        assert session.current.name == "second"  # where it had failed
        session.step()
        settle(session)
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 35))


class TestCopyingAhead:
    def test_nothing_is_lost(self, open_model, param, monkeypatch, settle, qtbot):
        """Large weights too, although nobody has looked at them."""
        monkeypatch.setattr(archive_module, "_SMALL", 0)
        monkeypatch.setattr("kuiper_studio.engine_service.idle_work._PIECE", 1000)
        session = open_model(param)
        qtbot.waitUntil(lambda: session.graph.file.archive.is_kept)
        export(param, scaled(5, 7))
        session.resume()
        settle(session)
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 6))

    def test_a_request_comes_first(self, open_model, param, monkeypatch, settle, qtbot):
        monkeypatch.setattr(archive_module, "_SMALL", 0)
        monkeypatch.setattr("kuiper_studio.engine_service.idle_work._PIECE", 1)
        session = open_model(param)
        session.resume()
        settle(session)
        assert session.state is RunState.FINISHED
        session.close_model()
        qtbot.waitUntil(lambda: engine_behind(session) is None)


class TestKept:
    def test_place_breakpoints_and_what_is_seen(self, session, param, settle):
        for name in ("relu", "second"):
            session.toggle_breakpoint(name)
        session.workspace.set_labels(("cat", "dog"))
        session.resume()
        settle(session)
        session.resume()
        settle(session)
        assert session.current.name == "second"
        session.select("first")
        session.show_operand("2")
        export(param, scaled(5, 7))
        reload(session, settle)
        assert (session.current.name, session.state) == ("second", RunState.STOPPED)
        assert session.breakpoints == {"relu", "second"}
        assert session.workspace.labels == ("cat", "dog")
        assert (session.selected, session.operand) == ("first", "2")
        np.testing.assert_array_equal(session.fetch("2"), np.full((1, SIZE), 5))
        session.step()
        settle(session)
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 35))

    def test_an_output_that_is_another_operand(self, session, param, settle):
        run_to(session, "second", settle)
        session.select("relu")
        export(
            param,
            scaled(5, 7),
            (
                f"pnnx.Input in 0 1 x #x=(1,{SIZE})f32",
                f"nn.Linear first 1 1 x y {WEIGHTED}",
                "nn.ReLU relu 1 1 y z",
                f"nn.Linear second 1 1 z 2 {WEIGHTED}",  # 2 was the rectifier's
                "F.softmax last 1 1 2 4 dim=1",
                "pnnx.Output out 1 0 4",
            ),
        )
        reload(session, settle)
        assert (session.selected, session.operand) == ("relu", "z")

    def test_an_output_that_is_gone(self, session, param, settle):
        run_to(session, "second", settle)
        session.select("relu")
        export(
            param,
            scaled(5, 7),
            (
                f"pnnx.Input in 0 1 0 #0=(1,{SIZE})f32",
                f"nn.Linear first 1 1 0 1 {WEIGHTED}",
                f"nn.Linear second 1 1 1 2 {WEIGHTED}",
                "pnnx.Output out 1 0 2",
            ),
        )
        reload(session, settle)
        assert (session.selected, session.operand) == ("in", "0")

    def test_inputs_are_not_being_read_while_it_runs(self, session, settle):
        run_to(session, "second", settle)
        seen = []
        session.stepped.connect(lambda _: seen.append(session.progress))
        reload(session, settle)
        assert seen
        assert set(seen) == {None}

    def test_the_end(self, session, param, settle):
        session.resume()
        settle(session)
        export(param, scaled(5, 7))
        reload(session, settle)
        assert session.state is RunState.FINISHED
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 35))

    def test_the_start(self, session, param, settle):
        export(param, scaled(5, 7))
        reload(session, settle)
        assert (session.position, session.state) == (0, RunState.READY)
        assert not session.tensors.has_value("0")

    def test_backend_seed_limit_and_sizes(self, session, param, settle):
        session.set_backend("numpy")
        settle(session)
        session.set_seed(9)
        settle(session)
        session.memory.set_limit(1 << 20)
        session.set_shapes(InputShapes({"0": (1, SIZE)}))
        settle(session)
        run_to(session, "relu", settle)
        export(param, scaled(5, 7))
        reload(session, settle)
        engine_session = engine_behind(session)
        assert session.backend == engine_session.backend == "numpy"
        assert session.seed == engine_session.seed == 9
        assert session.memory.limit == engine_session.memory_limit == 1 << 20
        assert session.input_shapes.shapes == {"0": (1, SIZE)}
        assert session.current.name == "relu"

    def test_supplied_outputs(self, session, param, settle, tmp_path):
        np.save(tmp_path / "given.npy", np.full((1, SIZE), 4, np.float32))
        source = InputSource("npy", path=tmp_path / "given.npy")
        session.supply("relu", source)
        settle(session)
        run_to(session, "last", settle)
        export(param, scaled(5, 7))
        reload(session, settle)
        assert session.current.name == "last"
        assert session.supplied == {"2": str(source.path)}
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 28))

    def test_what_is_gone(self, session, param, settle, tmp_path):
        """Of an operator that the new model does not have."""
        np.save(tmp_path / "given.npy", np.full((1, SIZE), 4, np.float32))
        session.supply("relu", InputSource("npy", path=tmp_path / "given.npy"))
        settle(session)
        run_to(session, "relu", settle)
        for name in ("first", "relu"):
            session.toggle_breakpoint(name)
        session.select("relu")
        export(
            param,
            scaled(5, 7),
            [
                line.replace("nn.ReLU relu 1 1 1 2", "nn.ReLU6 other 1 1 1 9").replace(
                    "second 1 1 2 3", "second 1 1 9 3"
                )
                for line in LINES
            ],
        )
        reload(session, settle)
        assert (session.position, session.state) == (0, RunState.READY)
        assert session.breakpoints == {"first"}
        assert session.supplied == {}
        assert session.selected == "in"
        assert texts(session, "warning")[-3:] == [
            "the breakpoint at relu is dropped: the operator is gone",
            "operand 2 is supplied no more: it is gone",
            "relu, where the model stood, is gone; it is at the start",
        ]

    def test_an_input_that_no_longer_fits(self, session, param, settle, qtbot):
        run_to(session, "relu", settle)
        export(
            param,
            scaled(5, 7),
            [line.replace(f"#0=(1,{SIZE})f32", f"#0=(1,2,{SIZE})f32") for line in LINES],
        )
        session.set_inputs({"0": InputSource("array", array=np.ones((1, SIZE), np.float32))})
        settle(session)
        run_to(session, "relu", settle)
        session.reload()
        settle(session)
        assert session.state is RunState.NEED_INPUT
        assert session.failure.title == "The input cannot be used"

    def test_while_it_runs(self, open_model, make_pair, settle, gate, qtbot):
        lines = (
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "nn.ReLU relu 1 1 0 1",
            "test.Gate slow 1 1 1 2",
            "pnnx.Output out 1 0 2",
        )
        session = open_model(make_pair(*lines, name="gated"))
        gate.close()
        session.resume()
        qtbot.waitUntil(gate.reached.is_set)
        session.reload()
        gate.open()
        settle(session)  # the operator that was under way is run to its end
        assert (session.current.name, session.state) == ("out", RunState.STOPPED)

    def test_again_before_it_is_there(self, session, param, settle):
        run_to(session, "last", settle)
        for factor in (5, 6, 7):
            export(param, scaled(factor, 1))
            session.reload()
        session.reload()
        settle(session)
        assert session.current.name == "last"
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 7))
        assert shows_what_it_holds(session)

    def test_cancelled_on_the_way(self, open_model, make_pair, settle, gate, qtbot):
        lines = (
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "test.Gate slow 1 1 0 1",
            "nn.ReLU one 1 1 1 2",
            "nn.ReLU two 1 1 2 3",
            "pnnx.Output out 1 0 3",
        )
        session = open_model(make_pair(*lines, name="gated"))
        run_to(session, "two", settle)
        gate.close()
        gate.reached.clear()
        session.reload()
        qtbot.waitUntil(gate.reached.is_set)
        session.stop()
        gate.open()
        settle(session)
        assert (session.current.name, session.state) == ("one", RunState.STOPPED)
        session.resume()
        settle(session)
        assert session.state is RunState.FINISHED

    def test_a_failure_on_the_way(self, session, param, settle):
        run_to(session, "last", settle)
        broken = "Tensor.reshape relu 1 1 1 2 shape=(7,7)"
        export(param, scaled(5, 7), [*LINES[:2], broken, *LINES[3:]])
        reload(session, settle)
        assert (session.state, session.failure.operator) == (RunState.FAILED, "relu")


class TestBadFiles:
    """The old model stays open and can be used; reloading is still offered."""

    @pytest.mark.parametrize("name", ["m.pnnx.param", "m.pnnx.bin"])
    def test_cut_off(self, session, param, settle, noticed, name):
        run_to(session, "second", settle)
        graph, path = session.graph, param.with_name(name)
        path.write_bytes(path.read_bytes()[:90])
        noticed()
        session.reload()
        settle(session)
        failure = session.failure
        assert failure.title == "The model cannot be reloaded"
        assert name in failure.reason
        assert failure.hint == "The earlier model stays open."
        assert failure.reload
        assert session.graph is graph
        assert session.files_notice.can_reload
        assert (session.current.name, session.state) == ("second", RunState.STOPPED)
        session.step()
        settle(session)
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 6))
        export(param, scaled(5, 7), LINES)
        reload(session, settle)
        assert session.failure is None
        np.testing.assert_array_equal(session.fetch("3"), np.full((1, SIZE), 35))

    def test_gone(self, session, param, settle):
        param.unlink()
        session.reload()
        settle(session)
        assert session.failure.reason == f"{param}: there is no such file"
        assert session.state is RunState.READY

    def test_kernels_of_a_dump_that_fit_no_more(self, session, param, settle, tmp_path):
        session.resume()
        settle(session)
        session.export_dump(tmp_path / "dump", DumpOptions())
        settle(session)
        session.use_kernels_of(tmp_path / "dump")
        settle(session)
        assert session.backend == "recorded"
        session.resume()
        settle(session)
        export(param, scaled(5, 7))
        reload(session, settle)
        assert session.backend == "recorded"
        export(param, scaled(5, 7), [line.replace(" relu ", " other ") for line in LINES])
        said = []
        session.workspace.announced.connect(said.append)
        reload(session, settle)
        assert (session.backend, session.kernels_from) == ("auto", None)
        assert said == ["the model has changed, and is computed by auto again"]
        assert session.state is RunState.FINISHED


def test_no_descriptor_is_leaked(session, param, settle, monkeypatch):
    monkeypatch.setattr(archive_module, "_SMALL", 0)
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    counts = []
    for factor in range(12):
        export(param, scaled(factor, 1))
        reload(session, settle)
        gc.collect()
        counts.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    assert counts[-1] <= counts[2]  # less where something of another test is let go of
