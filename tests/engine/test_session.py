"""Session: positions, statuses and values as tables; no window."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import (
    FeedError,
    InferenceError,
    SessionStateError,
    UnknownNameError,
    ValueNotComputedError,
)
from engine.session import OperatorStatus, Session, SessionState

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "nn.ReLU relu 1 1 0 1",
    "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2)",
    "pnnx.Output out 1 0 2",
)
BROKEN = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "custom.Thing odd 1 1 0 1",
    "nn.ReLU behind 1 1 1 2",
    "nn.Sigmoid beside 1 1 0 3",
    "pnnx.Output out 2 0 2 3",
)
FAILING = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "nn.ReLU relu 1 1 0 1",
    "pnnx.Attribute two 0 1 2 @data=(2)f32 #2=(2)f32",
    "pnnx.Expression sum 2 1 1 2 3 expr=add(@0,@1)",
    "pnnx.Output out 1 0 3",
)


@pytest.fixture
def chain(make_pair):
    return Session(engine.load(make_pair(*CHAIN)))


@pytest.fixture
def failing(make_pair):
    weights = {"two.data": np.zeros(2, np.float32)}
    session = Session(engine.load(make_pair(*FAILING, weights=weights)))
    session.feed([[1, 2, 3]])
    return session


def test_clearing_inputs_clears_their_overrides(chain):
    chain.feed([[-1, 0, 2]])
    chain.override("1", np.array([5, 6, 7], np.float32))
    chain.run()
    chain.clear_inputs()
    assert chain.overrides == {}
    assert (chain.state, chain.position) == (SessionState.NEED_INPUT, 0)
    assert not chain.has_value("1")
    chain.feed([[-1, 0, 2]])
    chain.run()
    np.testing.assert_array_equal(chain.value("1"), [0, 0, 2])


def test_step_by_step(chain):
    assert chain.state is SessionState.NEED_INPUT
    chain.feed([[-1, 0, 2]])
    assert (chain.state, chain.position) == (SessionState.READY, 0)
    seen = []
    while chain.state is not SessionState.FINISHED:
        record = chain.step()
        seen.append((record.index, record.operator.name, record.status, record.backend))
    executed = OperatorStatus.EXECUTED
    assert seen == [
        (0, "in", executed, ""),
        (1, "relu", executed, "numpy"),
        (2, "twice", executed, "numpy"),
        (3, "out", executed, ""),
    ]
    np.testing.assert_array_equal(chain.value("1"), [0, 0, 2])
    np.testing.assert_array_equal(chain.outputs()[0], [0, 0, 4])


def test_run_equals_steps(chain):
    chain.feed([[-1, 0, 2]])
    records = chain.run()
    assert [record.index for record in records] == [0, 1, 2, 3]
    assert chain.run() == ()
    np.testing.assert_array_equal(chain.outputs()[0], [0, 0, 4])


def test_run_until_and_breakpoints(chain):
    chain.feed([[1, 1, 1]])
    chain.run(until="twice")
    assert chain.position == 2
    chain.restart()
    chain.breakpoints = {"relu"}
    chain.run()
    assert chain.position == 1
    chain.run()
    assert chain.state is SessionState.FINISHED
    with pytest.raises(UnknownNameError):
        chain.run(until="nobody")


def test_cancel_between_operators(chain):
    chain.feed([[1, 1, 1]])
    done = []
    chain.run(on_step=done.append, cancelled=lambda: len(done) == 2)
    assert (chain.position, chain.state) == (2, SessionState.STOPPED)


def test_step_back(chain):
    chain.feed([[-1, 0, 2]])
    chain.run()
    chain.step_back()
    chain.step_back()
    assert (chain.position, chain.state) == (2, SessionState.STOPPED)
    assert not chain.has_value("2")
    assert chain.has_value("1")
    for _ in range(5):
        chain.step_back()
    assert (chain.position, chain.state) == (0, SessionState.READY)
    chain.run()
    np.testing.assert_array_equal(chain.outputs()[0], [0, 0, 4])


def test_second_input_and_restart(chain):
    chain.feed([[1, 1, 1]])
    chain.run()
    chain.feed([[2, 2, 2]])
    assert (chain.position, chain.records) == (0, ())
    with pytest.raises(ValueNotComputedError, match="operator 2, .* 'twice', has not"):
        chain.value("2")
    chain.run()
    np.testing.assert_array_equal(chain.outputs()[0], [4, 4, 4])
    chain.restart()
    chain.run()
    np.testing.assert_array_equal(chain.outputs()[0], [4, 4, 4])


def test_values_are_read_only(chain):
    chain.feed([[1, 1, 1]])
    chain.run()
    for name in ("0", "1", "2"):
        with pytest.raises(ValueError, match="read-only"):
            chain.value(name)[0] = 5


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        pytest.param(lambda s: None, "no input yet", id="before feeding"),
        pytest.param(lambda s: (s.feed([[1, 1, 1]]), s.run()), "at the end", id="at the end"),
    ],
)
def test_nothing_to_step(chain, prepare, sentence):
    prepare(chain)
    with pytest.raises(SessionStateError, match=sentence):
        chain.step()


def test_unsupported_operators_block_only_dependents(make_pair):
    session = Session(engine.load(make_pair(*BROKEN)))
    session.feed([[0, 0, 0]])
    session.run()
    statuses = {op.name: session.status(op.name) for op in session.graph.operators}
    assert statuses == {
        "in": OperatorStatus.EXECUTED,
        "odd": OperatorStatus.UNSUPPORTED,
        "behind": OperatorStatus.BLOCKED,
        "beside": OperatorStatus.EXECUTED,
        "out": OperatorStatus.BLOCKED,
    }
    np.testing.assert_array_equal(session.value("3"), [0.5, 0.5, 0.5])
    with pytest.raises(ValueNotComputedError, match="its input 1 was not computed"):
        session.value("2")


def test_all_inputs_that_were_not_computed_are_named(make_pair):
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(3)f32",
        "my.Own one 1 1 0 1",
        "my.Own two 1 1 0 2",
        "pnnx.Expression sum 2 1 1 2 3 expr=add(@0,@1)",
        "pnnx.Output out 1 0 3",
    )
    session = Session(engine.load(param))
    session.feed([[0, 0, 0]])
    session.run()
    with pytest.raises(ValueNotComputedError, match="its inputs 1, 2 were not computed"):
        session.value("3")


def test_an_override_unblocks_dependents(make_pair):
    session = Session(engine.load(make_pair(*BROKEN)))
    session.feed([[0, 0, 0]])
    session.run()
    session.override("1", np.array([-1, 5, 0], np.float32))
    assert session.position == 1
    session.run()
    np.testing.assert_array_equal(session.value("2"), [0, 5, 0])
    assert session.record("odd").backend == "supplied"
    assert len(session.outputs()) == 2


TWO_OUTPUTS = (
    "pnnx.Input in 0 1 0 #0=(%n,3)f32",
    "custom.Pair odd 1 2 0 1 2 #1=(%n,2)f32 #2=(3)i64",
    "nn.ReLU behind 1 1 1 3",
    "nn.ReLU beside 1 1 0 4",
    "pnnx.Output out 2 0 3 2",
)


class TestOverride:
    @pytest.fixture
    def session(self, make_pair):
        session = Session(engine.load(make_pair(*TWO_OUTPUTS)))
        session.feed([np.zeros((2, 3))])
        return session

    def test_all_outputs(self, session):
        session.run()
        assert session.state is SessionState.FINISHED
        session.override_all({"1": -np.ones((2, 2)), "2": [1, 2, 3]}, "o.npz")
        assert (session.position, session.state) == (1, SessionState.STOPPED)
        assert session.status("beside") is OperatorStatus.PENDING
        session.run()
        record = session.record("odd")
        assert (record.status, record.backend) == (OperatorStatus.EXECUTED, "supplied")
        assert record.overrides == {"1": "o.npz", "2": "o.npz"}
        assert (session.value("1").dtype, session.value("2").dtype) == (np.float32, np.int64)
        np.testing.assert_array_equal(session.outputs()[0], np.zeros((2, 2)))
        with pytest.raises(ValueError, match="read-only"):
            session.value("1")[0] = 5

    def test_one_output_of_an_operator_that_cannot_run(self, session):
        session.override("2", [1, 2, 3])
        session.run()
        record = session.record("odd")
        assert (record.status, record.overrides) == (OperatorStatus.UNSUPPORTED, {"2": ""})
        assert session.status("behind") is OperatorStatus.BLOCKED
        np.testing.assert_array_equal(session.value("2"), [1, 2, 3])

    def test_overriding_ahead_keeps_the_position(self, session):
        session.step()
        session.override_all({"1": np.ones((2, 2)), "2": [1, 2, 3]})
        assert (session.position, session.state) == (1, SessionState.STOPPED)
        assert set(session.overrides) == {"1", "2"}
        assert session.has_value("0")

    def test_restart_keeps_overrides_and_feed_drops_them(self, session):
        session.override("2", [1, 2, 3], "two.npy")
        session.run()
        session.restart()
        assert session.overrides["2"].source == "two.npy"
        session.feed([np.zeros((2, 3))])
        assert not session.overrides

    def test_clearing_an_override(self, session):
        session.override_all({"1": np.ones((2, 2)), "2": [1, 2, 3]})
        session.run()
        session.clear_override("1", "2", "3")
        assert (session.position, session.overrides) == (1, {})
        session.run()
        assert session.status("odd") is OperatorStatus.UNSUPPORTED
        position = session.position
        session.clear_override("1")
        assert session.position == position
        with pytest.raises(UnknownNameError):
            session.clear_override("x")

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"1": np.ones((2, 3))}, "operand 1 is 2×2, and the value to supply is 2×3"),
            ({"1": np.ones(2)}, "operand 1 is 2×2, and the value to supply is 2"),
            ({"2": [0.5, 1, 2]}, "operand 2 takes int64, and float64 cannot become that"),
            ({"0": np.ones((2, 3))}, "operand 0 is an input of the model: feed it"),
        ],
    )
    def test_an_override_that_does_not_fit_changes_nothing(self, session, values, sentence):
        session.run()
        with pytest.raises(FeedError, match=sentence):
            session.override_all({"3": np.ones((2, 2)), **values})
        assert (session.state, session.overrides) == (SessionState.FINISHED, {})
        with pytest.raises(UnknownNameError):
            session.override("9", 0)

    def test_at_another_size_than_exported_only_the_rank_counts(self, make_pair):
        lines = [line.replace("%n", "1") for line in TWO_OUTPUTS]
        session = Session(engine.load(make_pair(*lines)))
        session.feed([np.zeros((4, 3))])
        session.override("1", np.ones((4, 2)))
        with pytest.raises(
            FeedError, match="operand 1 is \\?×\\?, and the value to supply is 8"
        ):
            session.override("1", np.ones(8))

    def test_operators_that_could_run_are_overridden(self, chain):
        chain.feed([[1, 1, 1]])
        chain.run()
        chain.override("1", np.array([5, 6, 7], np.float32), "relu.npy")
        assert chain.position == 1
        assert chain.step().overrides == {"1": "relu.npy"}
        chain.run()
        np.testing.assert_array_equal(chain.outputs()[0], [10, 12, 14])
        chain.clear_override("1")
        chain.run()
        np.testing.assert_array_equal(chain.outputs()[0], [2, 2, 2])

    def test_one_of_several_outputs_is_overridden(self, make_pair):
        session = Session(
            engine.load(
                make_pair(
                    "pnnx.Input in 0 1 0 #0=(4)f32",
                    "torch.chunk chunk 1 2 0 1 2 chunks=2 dim=0",
                    "pnnx.Output out 2 0 1 2",
                )
            )
        )
        session.feed([[1, 2, 3, 4]])
        session.override("2", [7, 8])
        session.run()
        record = session.record("chunk")
        assert (record.backend, record.overrides) == ("numpy", {"2": ""})
        np.testing.assert_array_equal(session.outputs(), [[1, 2], [7, 8]])

    def test_a_failed_session_continues(self, failing):
        with pytest.raises(InferenceError):
            failing.run()
        failing.override("3", [7, 7, 7])
        assert (failing.state, failing.error) == (SessionState.STOPPED, None)
        failing.run()
        np.testing.assert_array_equal(failing.outputs()[0], [7, 7, 7])

    def test_a_list(self, make_pair):
        session = Session(
            engine.load(
                make_pair(
                    "pnnx.Input in 0 1 0 #0=(3)f32",
                    "custom.Both both 1 1 0 1",
                    "prim::TupleUnpack apart 1 2 1 2 3",
                    "pnnx.Output out 2 0 2 3",
                )
            )
        )
        session.feed([[1, 2, 3]])
        session.override("1", ([1, 2], [3]))
        session.run()
        assert [value.tolist() for value in session.outputs()] == [[1, 2], [3]]


def test_failed_state_keeps_earlier_values(failing):
    with pytest.raises(InferenceError) as caught:
        failing.run()
    assert failing.state is SessionState.FAILED
    assert failing.error is caught.value
    assert failing.failed_operator.name == "sum"
    assert failing.status("sum") is OperatorStatus.FAILED
    np.testing.assert_array_equal(failing.value("1"), [1, 2, 3])
    with pytest.raises(SessionStateError, match="has failed, restart it"):
        failing.step()
    with pytest.raises(ValueNotComputedError):
        failing.outputs()
    failing.step_back()
    assert (failing.state, failing.position) == (SessionState.STOPPED, 3)
    failing.restart()
    assert (failing.state, failing.error) == (SessionState.READY, None)


def test_unknown_backend(make_pair):
    with pytest.raises(SessionStateError, match="no backend 'cuda'; choose one of auto, numpy"):
        Session(engine.load(make_pair(*CHAIN)), backend="cuda")


def test_two_sessions_share_a_graph(make_pair):
    graph = engine.load(make_pair(*CHAIN))
    one, other = Session(graph), Session(graph)
    one.feed([[1, 1, 1]])
    other.feed([[2, 2, 2]])
    one.run()
    other.run()
    assert (one.outputs()[0][0], other.outputs()[0][0]) == (2, 4)


def test_graph_without_inputs(make_pair):
    weights = {"a.data": np.arange(3, dtype=np.float32)}
    lines = ("pnnx.Attribute a 0 1 0 @data=(3)f32 #0=(3)f32", "pnnx.Output out 1 0 0")
    session = Session(engine.load(make_pair(*lines, weights=weights)))
    assert session.state is SessionState.READY
    session.run()
    np.testing.assert_array_equal(session.outputs()[0], [0, 1, 2])


RANDOM = (
    "pnnx.Input in 0 1 0 #0=(50)f32",
    "torch.rand_like one 1 1 0 1 dtype=None",
    "torch.rand_like other 1 1 0 2 dtype=None",
    "F.dropout thinned 1 1 1 3 p=0.500000 training=True",
    "F.dropout whole 1 1 1 4 p=0.500000 training=False",
    "pnnx.Expression sum 3 1 2 3 4 5 expr=add(@0,add(@1,@2))",
    "pnnx.Output out 1 0 5",
)
# As pnnx writes it below its usual level of optimisation.
TOLD = (
    "pnnx.Input in 0 1 0 #0=(50)f32",
    "prim::Constant p 0 1 p value=0.500000",
    "prim::Constant train 0 1 t value={}",
    "F.dropout drop 3 1 0 p t 1 $input=0 $p=p $training=t",
    "pnnx.Output out 1 0 1",
)


class TestSeeds:
    @pytest.fixture
    def graph(self, make_pair):
        return engine.load(make_pair(*RANDOM))

    @pytest.fixture
    def run(self, graph):
        def compute(seed=0):
            session = Session(graph, seed=seed)
            session.feed([np.ones(50)])
            session.run()
            return session

        return compute

    def test_operators_that_are_random(self, graph):
        assert [o.name for o in graph.operators if o.random] == ["one", "other", "thinned"]

    def test_records_state_the_seed(self, run):
        seeds = {r.operator.name: r.seed for r in run(7).records}
        assert seeds == {
            "in": None, "one": 7, "other": 7, "thinned": 7, "whole": None, "sum": None,
            "out": None,
        }  # fmt: skip
        assert [r.operator.name for r in run().records if r.random] == [
            "one", "other", "thinned",
        ]  # fmt: skip

    def test_one_seed_gives_one_result(self, run):
        once, again, another = run(7), run(7), run(8)
        assert (once.seed, another.seed) == (7, 8)
        for name in "12345":
            np.testing.assert_array_equal(once.value(name), again.value(name))
            if name != "4":
                assert (once.value(name) != another.value(name)).any()

    def test_operators_do_not_share_numbers(self, run):
        session = run()
        assert (session.value("1") != session.value("2")).all()

    def test_the_seed_is_0_by_default(self, graph, run):
        session = Session(graph)
        session.feed([np.ones(50)])
        session.run()
        assert session.seed == 0
        np.testing.assert_array_equal(session.outputs()[0], run(0).outputs()[0])
        np.testing.assert_array_equal(graph.forward([np.ones(50)])[0], run(0).outputs()[0])
        np.testing.assert_array_equal(graph.forward([np.ones(50)], 3)[0], run(3).outputs()[0])

    def test_stepping_back_and_forth_changes_nothing(self, graph, run):
        expected = run(5)
        session = Session(graph, seed=5)
        session.feed([np.ones(50)])
        for _ in range(3):
            session.step()
        for back in (1, 2, 3, 1, 2):
            for _ in range(back):
                session.step_back()
            for _ in range(back):
                session.step()
        session.run()
        np.testing.assert_array_equal(session.outputs()[0], expected.outputs()[0])
        session.restart()
        session.run()
        np.testing.assert_array_equal(session.outputs()[0], expected.outputs()[0])

    def test_sessions_do_not_disturb_each_other(self, graph, run):
        one, other = Session(graph, seed=5), Session(graph, seed=6)
        for session in (one, other):
            session.feed([np.ones(50)])
        for _ in graph.operators:
            one.step()
            other.step()
        np.testing.assert_array_equal(one.outputs()[0], run(5).outputs()[0])
        np.testing.assert_array_equal(other.outputs()[0], run(6).outputs()[0])

    def test_a_single_operator_draws_the_same_numbers(self, graph, run):
        operator = graph.operator("one")
        (drawn,) = operator.forward([np.ones(50, "f4")], operator.generator(4))
        np.testing.assert_array_equal(drawn, run(4).value("1"))
        (drawn,) = operator.forward([np.ones(50, "f4")])
        np.testing.assert_array_equal(drawn, run(0).value("1"))

    def test_another_seed_drops_drawn_values(self, run):
        session = run(1)
        session.reseed(2)
        assert (session.seed, session.position) == (2, 1)
        assert session.state is SessionState.STOPPED
        assert [record.operator.name for record in session.records] == ["in"]
        session.run()
        np.testing.assert_array_equal(session.outputs()[0], run(2).outputs()[0])

    def test_another_seed_before_anything_was_drawn(self, graph, run):
        session = Session(graph)
        session.reseed(3)
        assert (session.state, session.position) == (SessionState.NEED_INPUT, 0)
        session.feed([np.ones(50)])
        session.step()
        session.reseed(2)
        assert session.position == 1
        session.run()
        np.testing.assert_array_equal(session.outputs()[0], run(2).outputs()[0])

    def test_another_seed_does_not_affect_a_deterministic_model(self, chain):
        chain.feed([[1, 1, 1]])
        chain.run()
        chain.reseed(5)
        assert (chain.seed, chain.state) == (5, SessionState.FINISHED)

    def test_another_seed_undoes_a_failure_downstream(self, make_pair):
        session = Session(
            engine.load(
                make_pair(
                    "pnnx.Input in 0 1 0 #0=(3)f32",
                    "torch.rand_like noise 1 1 0 1 dtype=None",
                    "pnnx.Expression bad 2 1 0 1 2 expr=size(@0,9)",
                    "pnnx.Output out 1 0 2",
                )
            )
        )
        session.feed([np.ones(3)])
        with pytest.raises(InferenceError):
            session.run()
        session.reseed(5)
        assert (session.state, session.position) == (SessionState.STOPPED, 1)

    def test_invalid_seeds_are_refused(self, graph, run):
        with pytest.raises(SessionStateError, match="a whole number of at least 0, not -1"):
            Session(graph, seed=-1)
        session = run(1)
        with pytest.raises(SessionStateError, match="not -5"):
            session.reseed(-5)
        assert (session.seed, session.state) == (1, SessionState.FINISHED)

    def test_a_large_seed(self, run):
        """Numbers of more than 64 bits are seeds too, and no bit is lost."""
        assert (run(10**20 - 1).value("1") != run(10**20 - 1 - 2**64).value("1")).any()

    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize(
        "kind", ["prim::Constant train 0 1 t value", "pnnx.Expression train 0 1 t expr"]
    )
    def test_constants_of_the_file_decide_randomness(self, make_pair, training, kind):
        lines = (*TOLD[:2], f"{kind}={training}", *TOLD[3:])
        session = Session(engine.load(make_pair(*lines)))
        session.feed([np.ones(50)])
        session.run()
        assert session.graph.operator("drop").random == training
        assert session.record("drop").random == training
        assert set(session.outputs()[0].tolist()) == ({0, 2} if training else {1})

    def test_an_operand_decides_randomness_only_in_the_record(self, make_pair):
        told = ("prim::Constant no 0 1 n value=0", "aten::Bool train 1 1 n t")
        lines = (*TOLD[:2], *told, *TOLD[3:])
        session = Session(engine.load(make_pair(*lines)))
        session.feed([np.ones(50)])
        session.run()
        assert session.graph.operator("drop").random
        assert not session.record("drop").random
        assert set(session.outputs()[0].tolist()) == {1}
