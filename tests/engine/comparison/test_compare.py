"""Comparisons of a small network with tensors that are computed by definition."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

import engine
from comparison_network import make_weights, truth
from engine.comparison import Status, write_corrections
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.comparison.references.reference import hash_weight
from engine.errors import ReferenceFileError


def reference(arrays, inputs=("x0",), outputs=(), operators=(), prefix="x"):
    """A reference with names that mean nothing to us."""
    tensors = [
        ReferenceTensor(f"{prefix}{key}", lambda array=array: array)
        for key, array in arrays.items()
    ]
    return Reference("theirs", tensors, operators, inputs, outputs)


def statuses(comparison):
    return {row.operand: row.status for row in comparison.rows}


def origins(comparison):
    return [origin.operator.name for origin in comparison.origins]


def test_equal_runs_have_no_origin(make_session, tensors):
    found = engine.compare(make_session(), reference(tensors))
    assert (found.verdict, found.origins, found.unmatched.ours) == ("same", (), ())
    assert {row.operand: row.reference for row in found.rows} == {
        "0": "x0", "1": "x1", "2": "x2", "3": "x3", "4": "x4", "5": "x5",
        "6": found.rows[6].reference, "7": "x7",
    }  # fmt: skip
    assert {row.matched_by for row in found.rows} == {"input", "content"}
    assert found.rows[6].reference in {"x5", "x6"}  # which have the same elements
    assert all(row.born < 1e-5 for row in found.rows)


def test_matrices_are_multiplied_by_one_thread(make_session, tensors):
    """Several threads wait for each other where other programs compute as well."""
    controller = pytest.importorskip("threadpoolctl").ThreadpoolController()

    def threads():
        return [i["num_threads"] for i in controller.info() if "numpy" in i["filepath"]]

    seen, before = [], threads()

    def load(array):
        seen.append(threads())
        return array

    loading = [ReferenceTensor(k, partial(load, array)) for k, array in tensors.items()]
    engine.compare(make_session(), Reference("theirs", loading, (), ("0",), ("7",)))
    assert len(seen) >= len(tensors)
    assert {count for each in seen for count in each} <= {1}
    assert threads() == before


FAULTS = [
    pytest.param({"expr=add(@0,@1)": "expr=sub(@0,@1)"}, {}, "sum", id="expression"),
    pytest.param({"nn.ReLU act": "nn.Identity act"}, {}, "act", id="no activation"),
    pytest.param({"nn.ReLU last": "nn.Sigmoid last"}, {}, "last", id="other activation"),
    pytest.param({}, {"conv.bias": np.zeros(4, np.float32)}, "conv", id="bias"),
    pytest.param({}, {"mix.weight": -make_weights()["mix.weight"]}, "mix", id="weight"),
    pytest.param({}, {"conv.weight": 1.01 * make_weights()["conv.weight"]}, "conv", id="scale"),
    pytest.param({}, {"fc.bias": np.zeros(5, np.float32)}, "fc", id="at the end"),
    pytest.param(
        {"kernel_size=(3,3) out_channels=4 padding=(1,1)": "kernel_size=(3,3) out_channels=4 "
         "padding=(0,0)"}, {}, "conv", id="another shape",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "weights", "where"), FAULTS)
@pytest.mark.parametrize("named", [True, False], ids=["same names", "other names"])
def test_a_fault_is_named(make_session, tensors, lines, weights, where, named):
    outputs = ["7" if named else "x7"]
    theirs = reference(tensors, ["0" if named else "x0"], outputs, prefix="" if named else "x")
    found = engine.compare(make_session(lines, weights), theirs)
    assert found.verdict == "differs"
    assert origins(found) == [where]
    origin = found.origins[0]
    assert origin.born > 1e-4
    assert origin.among == ()
    behind = [row for row in found.rows if row.operator.index > origin.operator.index]
    assert {row.status for row in behind} <= {Status.INHERITED, Status.NOT_COMPARED}
    assert all(row.born < 1e-4 for row in behind)


def test_independent_faults_are_all_named(make_session, tensors):
    weights = {"conv.bias": np.ones(4, np.float32), "fc.weight": np.ones((5, 256), np.float32)}
    found = engine.compare(make_session({}, weights), reference(tensors, outputs=["x7"]))
    assert origins(found) == ["conv", "fc"]
    assert found.rows[-1].inherited < found.rows[-1].born + found.rows[-1].measures.relative


def test_inherited_and_amplified(make_session, tensors):
    weights = {"conv.bias": make_weights()["conv.bias"] + 0.01}
    found = engine.compare(make_session({}, weights), reference(tensors))
    rows = {row.operand: row for row in found.rows}
    distance = 0.01 / np.abs(tensors["1"]).max()
    assert rows["1"].born == pytest.approx(distance, rel=1e-3)
    assert rows["1"].inherited == pytest.approx(0, abs=1e-6)
    assert rows["3"].born < 1e-6
    assert rows["3"].inherited == pytest.approx(rows["3"].measures.relative, rel=1e-4)
    assert rows["3"].amplification == pytest.approx(
        rows["3"].measures.relative / rows["2"].measures.relative
    )


def test_amplification_is_by_the_largest_difference_of_the_inputs(make_pair):
    """A tenth of 4 at one input, a hundredth of 4 at the other: 0.44 of 8 at their sum."""
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,4)f32",
        "pnnx.Input in1 0 1 1 #1=(1,4)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #0=(1,4)f32 #1=(1,4)f32 #2=(1,4)f32",
        "pnnx.Output out0 1 0 2",
    )
    session = engine.Session(engine.load(make_pair(*lines)), backend="numpy")
    ours = np.float32([[1, 2, 3, 4]])
    session.feed([ours, ours])
    theirs = [ours - np.float32([[0.4, 0, 0, 0]]), ours - np.float32([[0.04, 0, 0, 0]])]
    arrays = {"0": theirs[0], "1": theirs[1], "2": theirs[0] + theirs[1]}
    found = engine.compare(session, reference(arrays, ["x0", "x1"], ["x2"]))
    (row,) = (row for row in found.rows if row.operand == "2")
    assert row.measures.relative == pytest.approx(0.44 / 8, rel=1e-4)
    assert row.amplification == pytest.approx(0.44 / 8 / 0.1, rel=1e-4)


def test_a_small_error_of_an_operator_is_no_accumulated_rounding(make_pair):
    """It is half of the tolerance, more than any rounding: what inherits it differs."""
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,64)f32",
        "pnnx.Expression more 1 1 0 1 expr=add(@0,1.0) #0=(1,64)f32 #1=(1,64)f32",
        "pnnx.Expression less 1 1 1 2 expr=sub(@0,1.9) #1=(1,64)f32 #2=(1,64)f32",
        "pnnx.Output out0 1 0 2",
    )
    x = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 64)
    more = x + np.float32(1.0001)  # half of the tolerance of 0.0001 of 2
    arrays = {"0": x, "1": more, "2": more - np.float32(1.9)}  # 0.00011 of 0.9
    found = engine.compare(run_lines(make_pair, x, *lines), reference(arrays, ["x0"], ["x2"]))
    assert found.verdict == "differs"
    assert statuses(found)["2"] is Status.INHERITED


@pytest.mark.parametrize(
    ("ours", "theirs", "status"),
    [
        ([100, 50, -50, 0], [100, 50, -50, 0], Status.SAME),
        ([101, 50, -50, 0], [100, 50, -50, 0], Status.SAME),  # cosine 1, RMSE 0.005 of 100
        ([3, 3, 3, 3], [1, 1, 1, 1], Status.ORIGIN),  # cosine 1, RMSE 2
        ([10, 5, 5, 5], [10, 0, 0, 0], Status.ORIGIN),  # cosine 0.76, RMSE 0.43 of 10
    ],
)
def test_8_bit_integers_agree_by_cosine_and_rmse(make_pair, ours, theirs, status):
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,4)i8",
        "nn.Flatten flat 1 1 0 1 start_dim=0 end_dim=-1 #0=(1,4)i8 #1=(4)i8",
        "pnnx.Output out0 1 0 1",
    )
    session = engine.Session(engine.load(make_pair(*lines)), backend="numpy")
    session.feed([np.int8([ours])])
    arrays = {"0": np.int8([theirs]), "1": np.int8(theirs)}
    found = engine.compare(session, reference(arrays, ["x0"], ["x1"]))
    assert statuses(found)["0"] is status
    assert found.verdict == ("same" if status is Status.SAME else "differs")


def test_another_input_is_the_origin(make_session, image, tensors):
    found = engine.compare(make_session(), reference(truth(image * 255, make_weights())))
    assert origins(found) == ["in0"]
    assert found.origins[0].text == "pnnx.Input 'in0' has other values than the reference"
    assert {row.status for row in found.rows[1:]} == {Status.INHERITED}


def test_another_input_that_the_reference_does_not_show_is_seen_downstream(make_session, image):
    shown = {
        key: value for key, value in truth(image * 255, make_weights()).items() if key != "0"
    }
    found = engine.compare(make_session(), reference(shown, inputs=()))
    assert [origin.text for origin in found.origins] == [
        "pnnx.Input 'in0' has other values than the reference, seen at nn.Conv2d 'conv'"
    ]


def test_a_fused_operator_counts_as_the_last_of_its_group(make_session, tensors):
    shown = {key: array for key, array in tensors.items() if key not in {"1", "4"}}
    found = engine.compare(make_session(), reference(shown))
    assert (found.verdict, "1" in statuses(found)) == ("same", False)
    reasons = {each.operand: each.reason for each in found.unmatched.ours}
    assert reasons["1"] == "the reference does not show it; the operators that read it agree"
    faulty = engine.compare(
        make_session({}, {"conv.bias": np.ones(4, np.float32)}), reference(shown)
    )
    (origin,) = faulty.origins
    assert (origin.operator.name, origin.operand, origin.among) == ("conv", "2", ())
    assert origin.reasons[0].kind == "bias"


def test_layouts_are_undone(make_session, tensors):
    turned = {
        key: array.transpose(0, 2, 3, 1) if array.ndim == 4 else array[0]
        for key, array in tensors.items()
    }
    found = engine.compare(make_session(), reference(turned))
    assert found.verdict == "same"
    assert [row.layout.name for row in found.rows[:5]] == ["NHWC"] * 5
    assert found.rows[-1].layout.name == "no batch axis"
    found = engine.compare(
        make_session({"nn.ReLU last": "nn.Sigmoid last"}), reference(turned, outputs=["x7"])
    )
    assert origins(found) == ["last"]


def test_weights_rounded_to_float16_are_no_fault(make_session, image):
    rounded = {
        key: array.astype(np.float16).astype(np.float32)
        for key, array in make_weights().items()
    }
    found = engine.compare(make_session(), reference(truth(image, rounded)))
    assert (found.verdict, found.origins) == ("same", ())
    assert Status.FLOAT16_WEIGHTS in statuses(found).values()


def test_weights_are_anchors(make_session, tensors):
    from engine.comparison.references.reference import hash_weight

    weights = {"w": hash_weight(make_weights()["mix.weight"].reshape(4, 4))}
    call = ReferenceOperator("gemm", "Gemm", ("x2",), ("x3",), lambda: weights)
    found = engine.compare(make_session(), reference(tensors, operators=[call]))
    row = next(row for row in found.rows if row.operand == "3")
    assert (row.reference, row.matched_by) == ("x3", "weights")


def test_weights_of_other_sizes_are_not_hashed(make_session, tensors):
    """Hashing the weights of a large model takes longer than running it."""

    class Hash:
        size = 7
        float32 = float16 = property(lambda self: pytest.fail("it was hashed"))

    calls = [
        ReferenceOperator("norm", "BatchNorm", ("x0",), ("x1",), lambda: {"w": Hash()}),
        ReferenceOperator("relu", "Relu", ("x1",), ("x2",)),
    ]
    found = engine.compare(make_session(), reference(tensors, operators=calls))
    assert found.verdict == "same"
    assert {row.matched_by for row in found.rows} == {"input", "content"}


def test_outputs_without_a_counterpart_are_listed(make_session, tensors):
    theirs = {key: array for key, array in tensors.items() if key != "7"}
    found = engine.compare(make_session(), reference(theirs))
    assert (found.verdict, found.missing_outputs) == ("same", ("7",))
    assert engine.compare(make_session(), reference(tensors)).missing_outputs == ()


def test_it_says_why_the_reference_is_incomplete(make_session):
    weights = {"fc.weight": np.zeros((5, 256), np.float32)}
    change = {"in_features=256 out_features=5": "in_features=255 out_features=5"}
    session, other = make_session(), make_session(change, weights, "other")
    found = engine.compare(session, other)
    assert (found.verdict, found.missing_outputs) == ("same", ("7",))
    assert "'fc'" in found.reference_failure
    assert "255" in found.reference_failure
    assert found.to_json()["reference_failure"] == found.reference_failure
    assert engine.compare(session, session).reference_failure == ""


def test_a_signalling_nan_is_a_nan(make_session, tensors):
    theirs = {key: np.array(array, np.float32) for key, array in tensors.items()}
    theirs["7"].reshape(-1).view(np.uint32)[0] = 0x7FA00000
    found = engine.compare(make_session(), reference(theirs, outputs=["x7"]))
    (row,) = [row for row in found.rows if row.operand == "7"]
    assert row.measures.non_finite == 1
    assert origins(found) == [row.operator.name]


def test_nothing_of_the_session_changes(make_session, tensors):
    session = make_session()
    session.step()
    engine.compare(session, reference(tensors))
    assert session.position == 1


def test_corrections_by_hand(make_session, tensors):
    session = make_session()
    path = session.graph.param_path
    assert path.name == "m.pnnx.param"
    written = write_corrections(path, "theirs", {"3": "x5", "4": None})
    assert written.name == "m.pnnx.matches.json"
    write_corrections(path, "others", {"3": "x1"})
    found = engine.compare(session, reference(tensors))
    rows = {row.operand: row for row in found.rows}
    assert (rows["3"].reference, rows["3"].matched_by) == ("x5", "hand")
    assert "4" not in rows
    write_corrections(path, "theirs", {})
    assert engine.compare(session, reference(tensors)).verdict == "same"
    written.write_text('{"schema": 1}', encoding="utf-8")
    with pytest.raises(ReferenceFileError, match="not a file of matches"):
        engine.compare(session, reference(tensors))


def test_a_session_and_a_model_are_references(make_session):
    other = make_session({}, {"mix.bias": np.zeros(4, np.float32)}, name="other")
    assert origins(engine.compare(make_session(), other)) == ["mix"]
    assert origins(engine.compare(make_session(), other.graph)) == ["mix"]
    assert origins(engine.compare(make_session(), other.graph.param_path)) == ["mix"]


def test_the_json_has_the_documented_keys(make_session, tensors):
    found = engine.compare(make_session({"nn.ReLU last": "nn.Tanh last"}), reference(tensors))
    facts = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert facts["verdict"] == "differs"
    (origin,) = facts["origins"]
    assert origin.keys() >= {"operator", "type", "operand", "index", "born", "inherited"}
    (reason,) = origin["reasons"]
    assert (origin["operator"], reason["kind"]) == ("last", "activation_missing")
    assert reason["explains"] == 1
    assert "relu" in reason["text"]
    assert facts["rows"][0].keys() >= {
        "operator", "operand", "reference", "matched_by", "confidence", "max_abs", "max_rel",
        "cosine", "snr_db", "within_permille", "born", "inherited", "status",
    }  # fmt: skip
    assert facts["unmatched"].keys() == {"ours", "reference"}


def run_lines(make_pair, image, *lines):
    session = engine.Session(engine.load(make_pair(*lines)), backend="numpy")
    session.feed([image])
    return session


def test_ties_are_no_fault(make_pair):
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,6)f32",
        "torch.topk top 1 2 0 1 2 dim=1 k=3 largest=True sorted=True $input=0 #1=(1,3)f32",
        "pnnx.Output out0 1 0 1",
        "pnnx.Output out1 1 0 2",
    )
    x = np.float32([[5, 1, 5, 2, 5, 0]])
    session = run_lines(make_pair, x, *lines)
    arrays = {"0": x, "1": np.float32([[5, 5, 5]]), "2": np.int64([[4, 2, 0]])}
    theirs = reference(arrays, ["x0"], ["x1", "x2"])
    found = engine.compare(session, theirs)
    session.run()
    assert statuses(found)["2"] is Status.TIE or np.array_equal(session.value("2"), [[4, 2, 0]])
    assert found.verdict == "same"
    arrays["2"] = np.int64([[4, 2, 3]])
    found = engine.compare(session, reference(arrays, ["x0"], ["x1", "x2"]))
    assert origins(found) == ["top"]


def test_random_numbers_are_no_fault(make_pair):
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,64)f32",
        "torch.rand_like noise 1 1 0 1 $input=0 #0=(1,64)f32 #1=(1,64)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #0=(1,64)f32 #1=(1,64)f32 #2=(1,64)f32",
        "pnnx.Output out0 1 0 2",
    )
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((1, 64)).astype(np.float32), rng.random((1, 64), np.float32)
    session = run_lines(make_pair, x, *lines)
    arrays = {"0": x, "1": noise, "2": x + noise}
    found = engine.compare(session, reference(arrays, ["x0"], ["x2"]))
    assert (found.verdict, found.origins) == ("same", ())
    assert statuses(found)["1"] is Status.RANDOM
    rows = {row.operand: row for row in found.rows}
    assert [rows[name].excused for name in ("0", "1", "2")] == [False, False, True]
    assert rows["2"].to_json()["excused"]


def test_nothing_but_the_input_matches(make_pair):
    """Nothing shows then that both are the same."""
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,64)f32",
        "pnnx.Expression triple 1 1 0 1 expr=mul(@0,3) #0=(1,64)f32 #1=(1,64)f32",
        "pnnx.Expression less 1 1 1 2 expr=sub(@0,1) #1=(1,64)f32 #2=(1,64)f32",
        "pnnx.Output out0 1 0 2",
    )
    x = np.random.default_rng(0).standard_normal((1, 64)).astype(np.float32)
    session = run_lines(make_pair, x, *lines)
    other = reference({"0": x, "1": np.tanh(x) + 4, "2": np.exp(x)}, ["x0"])
    found = engine.compare(session, other)
    assert [row.operand for row in found.rows] == ["0"]
    assert found.verdict == "differs"
    assert found.advice.startswith("No tensor of theirs but its inputs matches an operand")
    alone = engine.compare(session, reference({"0": x}, ["x0"]))
    assert (alone.verdict, alone.advice, alone.missing_outputs) == ("same", "", ("2",))


def test_what_inherits_from_an_origin_too_is_not_excused(make_pair):
    lines = (
        "pnnx.Input in0 0 1 0 #0=(1,64)f32",
        "torch.rand_like noise 1 1 0 1 $input=0 #0=(1,64)f32 #1=(1,64)f32",
        "pnnx.Expression wrong 1 1 0 2 expr=mul(@0,3) #0=(1,64)f32 #2=(1,64)f32",
        "pnnx.Expression sum 2 1 2 1 3 expr=add(@0,@1) #2=(1,64)f32 #1=(1,64)f32 #3=(1,64)f32",
        "pnnx.Output out0 1 0 3",
    )
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((1, 64)).astype(np.float32), rng.random((1, 64), np.float32)
    session = run_lines(make_pair, x, *lines)
    arrays = {"0": x, "1": noise, "2": 2 * x, "3": 2 * x + noise}
    found = engine.compare(session, reference(arrays, ["0"], ["3"], prefix=""))
    assert origins(found) == ["wrong"]
    rows = {row.operand: row for row in found.rows}
    assert (rows["3"].status, rows["3"].excused) == (Status.INHERITED, False)


def test_a_fault_in_a_group_that_the_reference_has_fused(make_pair):
    """The reference shows conv and ReLU as one, as ncnn does; the second ReLU is not taken."""
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((4, 4, 3, 3)).astype("f4")
    image = rng.standard_normal((1, 4, 9, 9)).astype("f4")

    def run(mode, name):
        size = "(1,4,9,9)f32"
        conv = (
            "bias=False dilation=(1,1) groups=1 in_channels=4 kernel_size=(3,3) "
            f"out_channels=4 padding=(1,1) padding_mode={mode} stride=(1,1) "
            "@weight=(4,4,3,3)f32"
        )
        plain = conv.replace(mode, "zeros")
        path = make_pair(
            f"pnnx.Input in 0 1 0 #0={size}",
            f"nn.Conv2d one 1 1 0 1 {conv} #1={size}",
            f"nn.ReLU act 1 1 1 2 #2={size}",
            f"nn.Conv2d two 1 1 2 3 {plain} #3={size}",
            f"pnnx.Expression sum 2 1 3 0 4 expr=add(@0,@1) #4={size}",
            f"nn.ReLU last 1 1 4 5 #5={size}",
            "pnnx.Output out 1 0 5",
            weights={"one.weight": weight, "two.weight": weight[::-1]},
            name=name,
        )
        session = engine.Session(engine.load(path), backend="numpy")
        session.feed([image])
        session.run()
        return session

    true = run("zeros", "true")
    shown = [(f"{name}x", true.value(name)) for name in "02345"]  # no output of `one`
    calls = [
        ("x1", "Convolution", ("0x",), ("2x",), {"weight": hash_weight(weight)}),
        ("x2", "Convolution", ("2x",), ("3x",), {"weight": hash_weight(weight[::-1])}),
    ]
    fused = Reference(
        "fused",
        [ReferenceTensor(key, lambda array=array: array) for key, array in shown],
        [
            ReferenceOperator(name, kind, given, made, lambda hashes=hashes: hashes)
            for name, kind, given, made, hashes in calls
        ],
        inputs=("0x",),
        outputs=("5x",),
    )
    found = engine.compare(run("reflect", "faulty"), fused)
    (origin,) = found.origins
    assert {origin.operator.name, *(each.name for each in origin.among)} >= {"one"}
    assert {row.operand: row.reference for row in found.rows}["2"] == "2x"


def calls_of(*rows):
    return [ReferenceOperator(n, k, given, made, dict) for n, k, given, made in rows]


def test_a_scale_that_a_normalization_hides(make_pair):
    """The norm divides by it, so what follows agrees; the reference shows the linear layer."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 8)).astype("f4")
    weight = rng.standard_normal((8, 8)).astype("f4")
    size = "(6,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        "nn.Linear fc 1 1 0 1 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        f"#1={size}",
        "nn.LayerNorm norm 1 1 1 2 elementwise_affine=False eps=0.0 normalized_shape=(8) "
        f"#2={size}",
        f"F.tanh act 1 1 2 3 $input=2 #3={size}",
        "pnnx.Output out 1 0 3",
        weights={"fc.weight": 1.5 * weight},
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    y = x @ weight.T
    z = (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True)
    theirs = reference(
        {"a": x, "b": y, "c": z, "d": np.tanh(z)}, ["xa"], ["xd"],
        calls_of(
            ("mm", "mm", ("xa",), ("xb",)), ("norm", "norm", ("xb",), ("xc",)),
            ("tanh", "tanh", ("xc",), ("xd",)),
        ),
    )  # fmt: skip
    found = engine.compare(session, theirs)
    assert origins(found) == ["fc"]
    assert found.origins[0].reasons[0].kind == "scale"


@pytest.mark.parametrize("rows", [6, 4])
def test_another_permutation_is_an_origin(make_pair, rows):
    """Its elements are the reference's in another order; what reads them shows the fault."""
    x = np.random.default_rng(4).standard_normal((4, 5, rows)).astype("f4")
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0=(4,5,{rows})f32",
        f"Tensor.permute turn 1 1 0 1 dims=(2,1,0) $input=0 #1=({rows},5,4)f32",
        f"F.sigmoid act 1 1 1 2 $input=1 #2=({rows},5,4)f32",
        "Tensor.select one 1 1 2 3 dim=0 index=1 $input=2 #3=(5,4)f32",
        "pnnx.Output out 1 0 3",
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    turned = x.transpose(1, 0, 2)  # dims=(1,0,2)
    act = 1 / (1 + np.exp(-turned))
    theirs = reference({"a": x, "b": turned, "c": act, "d": act[1]}, ["xa"], ["xd"])
    found = engine.compare(session, theirs)
    assert origins(found) == ["turn"]
    assert found.origins[0].reasons[0].kind in {"axis", "parameter"}


def test_an_operator_that_is_refused_is_an_origin_if_explained(make_pair):
    """The weight is one of two groups, the file says one; nothing can run it so."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 4, 5, 5)).astype("f4")
    weight = rng.standard_normal((6, 2, 1, 1)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,5,5)f32",
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=4 "
        "kernel_size=(1,1) out_channels=6 padding=(0,0) padding_mode=zeros stride=(1,1) "
        "@weight=(6,2,1,1)f32 #1=(1,6,5,5)f32",
        "F.relu act 1 1 1 2 $input=1 #2=(1,6,5,5)f32",
        "pnnx.Output out 1 0 2",
        weights={"conv.weight": weight},
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    halves = [np.einsum("oc,nchw->nohw", weight[i : i + 3, :, 0, 0], x[:, j : j + 2])
              for i, j in ((0, 0), (3, 2))]  # fmt: skip
    made = np.concatenate(halves, 1)
    theirs = reference({"0": x, "1": made, "2": np.maximum(made, 0)}, ["x0"], ["x2"])
    found = engine.compare(session, theirs)
    assert (found.verdict, origins(found)) == ("differs", ["conv"])
    assert found.origins[0].reasons[0].kind == "groups"


def test_an_activation_behind_the_last_operator_is_an_origin(make_pair):
    """Its input is the reference's output, which its own output must be."""
    x = np.random.default_rng(6).standard_normal((3, 7)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(3,7)f32",
        "F.tanh act 1 1 0 1 $input=0 #1=(3,7)f32",
        "F.relu extra 1 1 1 2 $input=1 #2=(3,7)f32",
        "pnnx.Output out 1 0 2",
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    found = engine.compare(session, reference({"a": x, "b": np.tanh(x)}, ["xa"], ["xb"]))
    assert (found.verdict, origins(found)) == ("differs", ["extra"])
    assert found.origins[0].reasons[0].kind == "activation_extra"


def test_a_join_along_another_axis_is_an_origin_of_the_same_names(make_pair):
    """Both have the same elements in another shape."""
    x = np.random.default_rng(7).standard_normal((1, 2, 3, 3)).astype("f4")

    def run(axis, shape, name):
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(1,2,3,3)f32",
            "F.tanh act 1 1 0 1 $input=0 #1=(1,2,3,3)f32",
            f"torch.cat cat 2 1 0 1 2 dim={axis} #2={shape}f32",
            f"F.relu last 1 1 2 3 $input=2 #3={shape}f32",
            "pnnx.Output out 1 0 3",
            name=name,
        )
        session = engine.Session(engine.load(path), backend="numpy")
        session.feed([x])
        return session

    found = engine.compare(run(0, "(2,2,3,3)", "ours"), run(1, "(1,4,3,3)", "theirs"))
    assert origins(found) == ["cat"]
    assert found.origins[0].reasons[0].kind == "axis"


ENDS = {
    "one output": ("3", "2", []),
    "a member of a list": (
        "4", "4", ["prim::TupleConstruct pair 2 1 1 {last} 4"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("written", [False, True], ids=["session", "dump"])
def test_a_lost_last_activation_is_an_origin(make_pair, tmp_path, kind, written):
    """Our result is a tensor of the reference, of the same name even, but not its output."""
    x = np.random.default_rng(8).standard_normal((1, 2, 3, 3)).astype("f4")
    full, short, lists = ENDS[kind]

    def run(*, with_last):
        last = "3" if with_last else "2"
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(1,2,3,3)f32",
            "F.silu first 1 1 0 1 $input=0 #1=(1,2,3,3)f32",
            "F.tanh second 1 1 1 2 $input=1 #2=(1,2,3,3)f32",
            *["F.sigmoid last 1 1 2 3 $input=2 #3=(1,2,3,3)f32"][: int(with_last)],
            *[line.format(last=last) for line in lists],
            f"pnnx.Output out 1 0 {full if with_last else short}",
            name=f"m{last}",
        )
        session = engine.Session(engine.load(path), backend="numpy")
        session.feed([x])
        session.run()
        return session

    theirs = run(with_last=True)
    if written:
        engine.write_dump(theirs, tmp_path / "dump")
    found = engine.compare(run(with_last=False), tmp_path / "dump" if written else theirs)
    assert (found.verdict, origins(found)) == ("differs", ["second"])
    assert found.origins[0].reasons[0].kind == "activation_missing"
    row = {row.operand: row for row in found.rows}["2"]
    assert (row.reference, row.matched_by, found.missing_outputs) == ("3", "output", ())


def test_outputs_in_another_order_are_no_origin(make_pair):
    x = np.random.default_rng(9).standard_normal((1, 2, 3, 3)).astype("f4")

    def run(order, name):
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(1,2,3,3)f32",
            "F.silu first 1 1 0 1 $input=0 #1=(1,2,3,3)f32",
            "F.tanh second 1 1 1 2 $input=1 #2=(1,2,3,3)f32",
            f"prim::TupleConstruct pair 2 1 {order} 3",
            "pnnx.Output out 1 0 3",
            name=name,
        )
        session = engine.Session(engine.load(path), backend="numpy")
        session.feed([x])
        return session

    found = engine.compare(run("1 2", "ours"), run("2 1", "theirs"))
    assert (found.verdict, origins(found), found.missing_outputs) == ("same", [], ())


def test_the_reference_may_reshape_its_output(make_pair):
    x = np.random.default_rng(10).standard_normal((1, 2, 3, 3)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,3,3)f32",
        "F.silu act 1 1 0 1 $input=0 #1=(1,2,3,3)f32",
        "pnnx.Output out 1 0 1",
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    y = (x / (1 + np.exp(-x.astype("f8")))).astype("f4")
    calls = [
        ReferenceOperator("silu", "silu", ("xa",), ("xb",)),
        ReferenceOperator("flatten", "flatten", ("xb",), ("xc",)),
    ]
    theirs = reference({"a": x, "b": y, "c": y.reshape(1, -1)}, ["xa"], ["xc"], calls)
    found = engine.compare(session, theirs)
    assert (found.verdict, origins(found)) == ("same", [])


def test_a_linear_layer_whose_bias_is_zero_gives_a_tensor_of_the_reference(make_pair):
    """The reference adds the bias in a call of its own, before an addition of ours."""
    random = np.random.default_rng(11)
    x = random.standard_normal((6, 5)).astype("f4")
    weight, bias = random.standard_normal((5, 5)).astype("f4"), np.full(5, 0.02, "f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(6,5)f32",
        "nn.Linear fc 1 1 0 1 bias=True in_features=5 out_features=5 @weight=(5,5)f32 "
        "@bias=(5)f32 #1=(6,5)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #2=(6,5)f32",
        "F.tanh last 1 1 2 3 $input=2 #3=(6,5)f32",
        "pnnx.Output out 1 0 3",
        weights={"fc.weight": weight, "fc.bias": np.zeros(5, "f4")},
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    product = (x.astype("f8") @ weight.T).astype("f4")
    total = x + (product + bias)
    arrays = {"0": x, "1": product, "2": product + bias, "3": total, "4": np.tanh(total)}
    calls = [
        ReferenceOperator("mm", "mm", ("x0",), ("x1",)),
        ReferenceOperator("add", "add", ("x1",), ("x2",)),
        ReferenceOperator("sum", "add", ("x0", "x2"), ("x3",)),
        ReferenceOperator("tanh", "tanh", ("x3",), ("x4",)),
    ]
    found = engine.compare(session, reference(arrays, ["x0"], ["x4"], calls))
    assert (found.verdict, origins(found)) == ("differs", ["fc"])
    assert found.origins[0].reasons[0].kind == "bias"


def test_a_normalization_of_what_is_normalized_already_confirms_nothing(make_pair):
    """The reference normalises, then scales: normalised again, the first result is the same."""
    x = np.random.default_rng(12).standard_normal((1, 4, 6, 6)).astype("f4") * 3
    weight, bias = np.float32([0.5, 1, 2, 3]), np.float32([0, 1, -1, 2])
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,6,6)f32",
        "F.silu act 1 1 0 1 $input=0 #1=(1,4,6,6)f32",
        "nn.GroupNorm norm 1 1 1 2 affine=True eps=1e-5 num_channels=4 num_groups=2 "
        "@weight=(4)f32 @bias=(4)f32 #2=(1,4,6,6)f32",
        "F.relu last 1 1 2 3 $input=2 #3=(1,4,6,6)f32",
        "pnnx.Output out 1 0 3",
        weights={"norm.weight": weight, "norm.bias": bias},
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    y = x / (1 + np.exp(-x.astype("f8")))
    inner = (y - y.mean((2, 3), keepdims=True)) / np.sqrt(y.var((2, 3), keepdims=True) + 1e-5)
    outer = inner * weight.reshape(1, 4, 1, 1) + bias.reshape(1, 4, 1, 1)
    values = (x, y, inner, outer, np.maximum(outer, 0))
    arrays = {str(place): value.astype("f4") for place, value in enumerate(values)}
    calls = [
        ReferenceOperator(f"call{place}", kind, (f"x{place}",), (f"x{place + 1}",))
        for place, kind in enumerate(["silu", "instance_norm", "affine", "relu"])
    ]
    found = engine.compare(session, reference(arrays, ["x0"], ["x4"], calls))
    assert (found.verdict, origins(found)) == ("differs", ["norm"])


def test_an_extra_activation_before_one_that_the_reference_repeats(make_pair):
    """The second of them agrees with a tensor further on, too."""
    x = np.random.default_rng(13).standard_normal((2, 3, 5, 5)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(2,3,5,5)f32",
        "F.tanh first 1 1 0 1 $input=0 #1=(2,3,5,5)f32",
        "F.relu extra 1 1 1 2 $input=1 #2=(2,3,5,5)f32",
        "F.silu one 1 1 2 3 $input=2 #3=(2,3,5,5)f32",
        "pnnx.Expression wave 1 1 3 4 expr=cos(@0) #4=(2,3,5,5)f32",
        "F.silu two 1 1 4 5 $input=4 #5=(2,3,5,5)f32",
        "pnnx.Output out 1 0 5",
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])

    def silu(values):
        return values / (1 + np.exp(-values))

    first = np.tanh(x.astype("f8"))
    wave = np.cos(silu(first))
    values = (x, first, silu(first), wave, silu(wave))
    arrays = {str(place): value.astype("f4") for place, value in enumerate(values)}
    calls = [
        ReferenceOperator(f"call{place}", kind, (f"x{place}",), (f"x{place + 1}",))
        for place, kind in enumerate(["tanh", "silu", "cos", "silu"])
    ]
    found = engine.compare(session, reference(arrays, ["x0"], ["x4"], calls))
    assert (found.verdict, origins(found)) == ("differs", ["extra"])
    assert found.origins[0].reasons[0].kind == "activation_extra"


FALLING = (
    "pnnx.Input a 0 1 0 #0=(1,100)f32",
    "pnnx.Input b 0 1 1 #1=(1,100)f32",
    "my.Strange strange 2 1 0 1 2 #2=(1,100)f32",  # only its result is given
    "pnnx.Output out 1 0 2",
)


@pytest.mark.parametrize(
    ("wrong_before", "wrong_behind", "status"),
    [(0, 60, Status.ORIGIN), (20, 60, Status.NOT_COMPARED), (0, 30, Status.NOT_COMPARED)],
)
def test_what_nothing_can_compute_is_an_origin_if_its_elements_stop_agreeing(
    make_pair, wrong_before, wrong_behind, status
):
    """From more than 90 of 100 elements of both inputs that agree to less than 60."""
    x = np.linspace(1, 2, 100, dtype=np.float32).reshape(1, 100)
    before, behind = x.copy(), 3 * x
    before[0, :wrong_before] += 0.5
    behind[0, :wrong_behind] += 0.5
    session = engine.Session(engine.load(make_pair(*FALLING)), backend="numpy")
    session.feed([x, x + 2])
    session.override("2", 3 * x)
    theirs = reference({"0": before, "1": x + 2, "2": behind}, ["0", "1"], prefix="")
    assert statuses(engine.compare(session, theirs))["2"] is status


def test_a_reference_at_another_size_of_the_input(make_session, tensors):
    """No operator is to blame where the inputs cannot be compared."""
    rows = tensors["0"].shape[-2]
    larger = np.pad(tensors["0"], [(0, 0), (0, 0), (0, 2), (0, 2)])
    found = engine.compare(make_session(), reference({**tensors, "0": larger, "1": larger}))
    (origin,) = found.origins
    assert (origin.operator.type, origin.reference) == ("pnnx.Input", "x0")
    assert f"×{rows}×" in origin.text
    assert f"the reference's {'×'.join(map(str, larger.shape))}" in origin.text
    assert origin.reasons[0].text.startswith("The reference was computed for an input of")
    assert origin.reasons[0].changes[0].value == larger.shape
    assert statuses(found)["0"] is Status.ORIGIN
    assert next(iter(statuses(found))) == "0"
    assert Status.ORIGIN not in list(statuses(found).values())[1:]
    assert "0" not in [each.operand for each in found.unmatched.ours]


def test_another_size_of_an_input_that_is_named_like_its_operator(make_pair, tmp_path):
    pair = make_pair(
        "pnnx.Input image 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU act 1 1 0 1",
        "torch.mean mean 1 1 1 2 dim=(2,3) keepdim=False",
        "pnnx.Output out 1 0 2",
    )
    rng = np.random.default_rng(4)
    large = rng.standard_normal((1, 3, 12, 12)).astype(np.float32)
    act = np.maximum(large, 0)
    np.savez(tmp_path / "r.npz", image=large, act=act, mean=act.mean((2, 3)))
    session = engine.Session(engine.load(pair))
    session.feed([large[:, :, 2:10, 2:10]])
    session.run()
    (origin,) = engine.compare(session, tmp_path / "r.npz").origins
    assert origin.text == "pnnx.Input 'image' is 1×3×8×8, the reference's 1×3×12×12"
