"""The window shows the model that the worker holds, whatever is asked for meanwhile."""

from __future__ import annotations

import json

import numpy as np
import pytest
from engine_behind import engine_behind, shows_what_it_holds

from engine.dump import DumpOptions
from engine.inputs import InputSource
from engine.layers import unload_layers
from kuiper_studio.session import RunState


def scaled(make_pair, name, factor, *more):
    """A model of one input, which it multiplies."""
    return make_pair(
        "pnnx.Input in 0 1 0 #0=(3)f32",
        f"pnnx.Expression {name} 1 1 0 1 expr=mul(@0,{factor}) #1=(3)f32",
        *more,
        "pnnx.Output out 1 0 1",
        name=name,
    )


@pytest.fixture
def ones():
    return InputSource("array", array=np.ones(3, np.float32))


@pytest.fixture
def session(open_model, make_pair, ones):
    """A session with model a open, which doubles its input."""
    return open_model(scaled(make_pair, "a", 2), ones)


@pytest.fixture
def told(session):
    """Titles of what failed."""
    titles = []
    session.failed.connect(lambda failure: titles.append(failure.title))
    return titles


@pytest.fixture(autouse=True)
def _unloaded():
    yield
    unload_layers()


def held(session):
    """The worker's model, once it has nothing to do."""
    engine_session = engine_behind(session)
    return engine_session.graph if engine_session is not None else None


def assert_is(session, settle, name, factor):
    """Everything is of one model, and it computes."""
    settle(session)
    assert shows_what_it_holds(session)
    assert session.model_path.name == f"{name}.pnnx.param"
    assert session.graph.operators[1].name == name
    session.restart()
    settle(session)
    session.resume()
    settle(session)
    assert session.state is RunState.FINISHED
    np.testing.assert_array_equal(session.fetch("1"), np.full(3, factor, np.float32))


class TestWhatFailsAtOnceAfterwards:
    """A model is opened, and something behind it fails before it is there."""

    @pytest.fixture
    def open_b(self, session, make_pair, ones):
        path = scaled(make_pair, "b", 5)

        def open_it(**more):
            session.next_model.set_sources([ones])
            session.open(path, **more)

        return open_it

    def test_another_model(self, session, open_b, told, settle, tmp_path):
        (tmp_path / "c.param").write_text("no model")
        open_b()
        session.open(tmp_path / "c.param")
        assert_is(session, settle, "b", 5)
        assert told == ["The model cannot be opened"]

    def test_two_others(self, session, open_b, told, settle, tmp_path, make_pair, ones, gate):
        """Of what is not begun only the last one counts."""
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "test.Gate one 1 1 0 1",
            "pnnx.Output out 1 0 1",
            name="gated",
        )
        session.next_model.set_sources([ones])
        session.open(path)
        settle(session)
        gate.close()
        session.resume()
        gate.reached.wait(10)
        (tmp_path / "c.param").write_text("no model")
        open_b()
        session.open(tmp_path / "c.param")
        session.next_model.set_sources([ones])
        session.open(scaled(make_pair, "d", 7))
        gate.open()
        assert_is(session, settle, "d", 7)
        assert told == []

    def test_layers(self, session, open_b, told, settle, tmp_path):
        (tmp_path / "mine.py").write_text("def wrong(:\n")
        open_b()
        session.load_layers(tmp_path / "mine.py")
        assert_is(session, settle, "b", 5)
        assert told == ["The layers cannot be loaded"]

    def test_layers_before_it(self, session, open_b, told, settle, tmp_path):
        (tmp_path / "mine.py").write_text("def wrong(:\n")
        session.load_layers(tmp_path / "mine.py")
        open_b()
        assert_is(session, settle, "b", 5)
        assert told == ["The layers cannot be loaded"]

    def test_good_and_bad_layers(self, session, open_b, told, settle, tmp_path, make_pair):
        (tmp_path / "good.py").write_text(
            "from engine.layers import register\n\n\n"
            '@register("my.Own")\ndef own(x):\n    """Give back."""\n    return x\n'
        )
        (tmp_path / "bad.py").write_text("1 / 0\n")
        open_b()
        session.load_layers(tmp_path / "good.py")
        session.load_layers(tmp_path / "bad.py")
        assert_is(session, settle, "b", 5)
        assert told == ["The layers cannot be loaded"]

    def test_kernels_of_a_dump(self, session, open_b, told, settle, tmp_path):
        (tmp_path / "manifest.json").write_text("no manifest")
        open_b()
        session.use_kernels_of(tmp_path / "manifest.json")
        assert_is(session, settle, "b", 5)
        assert told == ["The kernels of the dump " + tmp_path.name + " cannot be used"]
        assert session.kernels_from is None
        assert session.backend == "auto"

    def test_its_own_kernels(self, session, open_b, told, settle, tmp_path):
        open_b(kernels_from=tmp_path / "none")
        assert_is(session, settle, "a", 2)
        assert len(told) == 1

    def test_kernels_of_another_model(self, session, open_b, told, settle, tmp_path):
        session.export_dump(tmp_path / "dump", DumpOptions())
        settle(session)
        names = json.loads((tmp_path / "dump" / "manifest.json").read_text())["operators"]
        assert [row["name"] for row in names] == ["in", "a", "out"]
        open_b()
        session.use_kernels_of(tmp_path / "dump")
        assert_is(session, settle, "b", 5)
        assert len(told) == 1

    def test_inputs(self, session, open_b, told, settle):
        """Chosen while b is opened: they are b's."""
        open_b()
        twos = InputSource("array", array=np.full(3, 2, np.float32))
        session.set_inputs({"0": twos})
        assert_is(session, settle, "b", 10)

    def test_inputs_for_a_model_that_cannot_be_opened(self, session, told, settle, tmp_path):
        session.open(tmp_path / "none.param")
        session.set_inputs({"0": InputSource("array", array=np.full(3, 2, np.float32))})
        assert_is(session, settle, "a", 4)

    def test_a_backend_when_the_model_is_gone(self, session, told, settle):
        """The engine goes on as it did, and so does what is shown."""
        session.model_path.unlink()
        session.set_backend("numpy")
        settle(session)
        assert session.backend == "auto"
        assert engine_behind(session).backend == "auto"
        assert told == ["The model cannot be reloaded"]

    def test_again_and_again(self, session, told, settle, make_pair, ones, tmp_path):
        (tmp_path / "c.param").write_text("no model")
        rng = np.random.default_rng(8)
        paths = {factor: scaled(make_pair, f"m{factor}", factor) for factor in (3, 4, 6)}
        for _ in range(50):
            factor = int(rng.choice([3, 4, 6]))
            session.next_model.set_sources([ones])
            session.open(paths[factor])
            for _ in range(rng.integers(3)):
                session.open(tmp_path / "c.param")
            if rng.integers(2):
                settle(session)
                assert shows_what_it_holds(session)
        session.next_model.set_sources([ones])
        session.open(paths[6])
        assert_is(session, settle, "m6", 6)


class TestClosing:
    """Whatever goes on, the session is empty and idle at once, and stays so."""

    @pytest.fixture
    def gated(self, session, make_pair, gate, ones, settle):
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "test.Gate one 1 1 0 1",
            "test.Gate two 1 1 1 2",
            "pnnx.Output out 1 0 2",
            name="gated",
        )
        session.next_model.set_sources([ones])
        session.open(path)
        settle(session)
        assert session.graph.operators[1].name == "one"
        return session

    def close(self, session, qtbot):
        heard = []
        session.close_model()
        for signal in (
            session.state_changed, session.stepped, session.failed,
            session.studies.self_checked, session.workspace.announced, session.inputs_changed,
            session.graph_changed,
        ):  # fmt: skip
            signal.connect(lambda *_: heard.append(1))
        self.assert_empty(session)
        return heard

    def assert_empty(self, session):
        assert (session.graph, session.state) == (None, RunState.EMPTY)
        assert not session.busy
        assert session.progress is None
        assert session.files_notice is None

    def assert_stays_empty(self, session, qtbot, heard):
        qtbot.waitUntil(lambda: held(session) is None)
        qtbot.wait(50)
        self.assert_empty(session)
        assert heard == []

    def test_while_it_runs(self, gated, gate, qtbot):
        gate.close()
        gated.resume()
        heard = self.close(gated, qtbot)
        gate.open()
        self.assert_stays_empty(gated, qtbot, heard)

    def test_while_it_is_opened(self, session, make_pair, qtbot):
        session.open(scaled(make_pair, "b", 5))
        heard = self.close(session, qtbot)
        self.assert_stays_empty(session, qtbot, heard)

    def test_while_the_first_is_opened(self, empty_session, make_pair, qtbot):
        empty_session.open(scaled(make_pair, "b", 5))
        assert empty_session.state is RunState.LOADING
        heard = self.close(empty_session, qtbot)
        self.assert_stays_empty(empty_session, qtbot, heard)

    def test_while_several_are_asked_for(self, session, make_pair, qtbot, tmp_path):
        session.open(scaled(make_pair, "b", 5))
        session.open(scaled(make_pair, "d", 7))
        session.load_layers(tmp_path / "none.py")
        heard = self.close(session, qtbot)
        self.assert_stays_empty(session, qtbot, heard)

    def test_while_layers_are_loaded(self, session, qtbot, tmp_path):
        session.load_layers(tmp_path / "none.py")
        heard = self.close(session, qtbot)
        self.assert_stays_empty(session, qtbot, heard)

    def test_while_inputs_are_read(self, session, qtbot):
        session.set_inputs({"0": InputSource("random")})
        heard = self.close(session, qtbot)
        self.assert_stays_empty(session, qtbot, heard)

    def test_while_it_is_exported(self, session, settle, qtbot, tmp_path):
        session.resume()
        settle(session)
        session.export_dump(tmp_path / "dump", DumpOptions())
        heard = self.close(session, qtbot)
        self.assert_stays_empty(session, qtbot, heard)

    def test_while_it_is_checked(self, gated, gate, qtbot):
        gate.close()
        gated.studies.self_check()
        heard = self.close(gated, qtbot)
        gate.open()
        self.assert_stays_empty(gated, qtbot, heard)

    def test_and_opening_again(self, gated, gate, settle, qtbot, make_pair, ones):
        gate.close()
        gated.resume()
        gated.close_model()
        gated.next_model.set_sources([ones])
        gated.open(scaled(make_pair, "b", 5))
        gate.open()
        assert_is(gated, settle, "b", 5)
