"""Matches by content: what merely looks alike is no match."""

from __future__ import annotations

import numpy as np
import pytest
from ncnn_files import f32, tagged, write_pair

import engine
from array_reference import compare
from array_reference import reference_of as weighted_reference
from engine.comparison.aligning.state import Sides
from engine.comparison.aligning.tools import Tools
from engine.comparison.fingerprints import FingerprintIndex, is_telling, positions_of
from engine.comparison.matching import Matcher
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.runtime.executor import run_kernel


def reference_of(arrays, calls, outputs):
    """A reference of arrays by key, and of calls: type, inputs and outputs."""
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    operators = [
        ReferenceOperator(f"{kind}{place}", kind, given, made)
        for place, (kind, given, made) in enumerate(calls)
    ]
    return Reference("theirs", tensors, operators, tuple(arrays)[:1], outputs)


def run(path, *inputs, **options):
    session = engine.Session(engine.load(path), **options)
    session.feed(inputs)
    session.run()
    return session


def by_operand(comparison):
    return {row.operand: row for row in comparison.rows}


def normalize(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def test_a_copy_is_not_matched_with_a_similar_tensor(make_pair):
    """As in a transformer: the sum that a residual branch copies is like its own summand."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 50, 16)).astype("f4")
    places = 0.03 * rng.standard_normal((1, 50, 16)).astype("f4")
    size = "(1,50,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"pnnx.Attribute places 0 1 1 @data={size} #1={size}",
        f"pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #2={size}",
        f"nn.Identity branch 1 1 2 3 #3={size}",
        f"F.tanh act 1 1 3 4 $input=3 #4={size}",
        "nn.LayerNorm norm 1 1 3 5 elementwise_affine=False eps=0.0 normalized_shape=(16) "
        f"#5={size}",
        f"pnnx.Expression end 2 1 4 5 6 expr=add(@0,@1) #6={size}",
        "pnnx.Output out 1 0 6",
        weights={"places.data": places},
    )
    y = x + places
    arrays = {"image": x, "sum": y, "tanh": np.tanh(y), "norm": normalize(y),
              "end": np.tanh(y) + normalize(y)}  # fmt: skip
    calls = (
        ("add", ("image",), ("sum",)), ("tanh", ("sum",), ("tanh",)),
        ("norm", ("sum",), ("norm",)), ("add", ("tanh", "norm"), ("end",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("end",)))
    assert (found.verdict, found.origins) == ("same", ())
    rows = by_operand(found)
    assert {name: rows[name].reference for name in "2456"} == {
        "2": "sum", "4": "tanh", "5": "norm", "6": "end",
    }  # fmt: skip
    assert rows["3"].reference == "sum"


def test_sparse_tensors_are_distinguished_by_all_elements(make_pair):
    """Their fingerprints are those of zeros, and so are the ones of a mask beside them."""
    count = 64 * 64
    hidden = np.setdiff1d(np.arange(count), positions_of(count))
    x = np.full((1, 64, 64), -1.0, np.float32)
    x.reshape(-1)[hidden[7]] = 3.0
    size = "(1,64,64)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"nn.ReLU act 1 1 0 1 #1={size}",
        f"pnnx.Expression more 1 1 1 2 expr=add(@0,0.5) #2={size}",
        "pnnx.Output out 1 0 2",
    )
    y = np.maximum(x, 0)
    assert not is_telling(y)
    arrays = {"in": x, "mask": np.zeros_like(x), "act": y, "more": y + np.float32(0.5)}
    calls = (
        ("zeros", ("in",), ("mask",)), ("relu", ("in",), ("act",)),
        ("add", ("act",), ("more",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("more",)))
    assert (found.verdict, found.origins) == ("same", ())
    rows = by_operand(found)
    assert (rows["1"].reference, rows["2"].reference) == ("act", "more")


def test_a_constant_elsewhere_is_no_match(make_pair):
    """A fault makes the result constant; the reference has such a tensor at another place."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 40, 40)).astype("f4")
    size = "(1,40,40)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"pnnx.Expression scale 1 1 0 1 expr=mul(@0,0.0) #1={size}",
        f"F.tanh act 1 1 1 2 $input=1 #2={size}",
        f"pnnx.Expression more 1 1 2 3 expr=add(@0,@0) #3={size}",
        "pnnx.Output out 1 0 3",
    )
    y = 2 * x
    arrays = {"in": x, "scale": y, "act": np.tanh(y), "more": 2 * np.tanh(y),
              "zeros": np.zeros_like(x)}  # fmt: skip
    calls = (
        ("mul", ("in",), ("scale",)), ("tanh", ("scale",), ("act",)),
        ("add", ("act",), ("more",)), ("zeros", (), ("zeros",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("more",)))
    assert [origin.operator.name for origin in found.origins] == ["scale"]
    assert by_operand(found)["1"].reference == "scale"


@pytest.mark.parametrize("options", ["exact", "bf16,packing"])
def test_layers_of_ncnn_compute_with_the_options_of_the_session(tmp_path, options):
    """So nothing is born where both runs are the same."""
    pytest.importorskip("ncnn")
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((8, 8, 3, 3)).astype("f4")
    path = write_pair(
        tmp_path,
        [
            "Input in 0 1 x",
            "Convolution one 1 1 x a 0=8 1=3 4=1 5=1 6=576",
            "ReLU act 1 1 a b",
            "Convolution two 1 1 b c 0=8 1=3 4=1 5=1 6=576",
        ],
        2 * (tagged(weights) + f32(np.ones(8))),
        blobs=4,
    )
    x = rng.standard_normal((8, 12, 12)).astype("f4")
    session, other = (run(path, x, ncnn_options=options) for _ in range(2))
    found = engine.compare(session, other)
    assert (found.verdict, found.origins) == ("same", ())
    assert {row.born for row in found.rows} == {0.0}


LINES = (
    "pnnx.Input in 0 1 0 #0=(4,60)f32",
    "F.tanh one 1 1 0 1 $input=0 #1=(4,60)f32",
    "pnnx.Expression two 1 1 1 2 expr=mul(@0,3.0) #2=(4,60)f32",
    "F.sigmoid three 1 1 2 3 $input=2 #3=(4,60)f32",
    "pnnx.Output out 1 0 3",
)


def chain(x):
    one = np.tanh(x)
    return {"a": x, "b": one, "c": 3 * one, "d": 1 / (1 + np.exp(-3 * one))}


CALLS = (("tanh", ("a",), ("b",)), ("mul", ("b",), ("c",)), ("sigmoid", ("c",), ("d",)))


@pytest.fixture
def computed(monkeypatch):
    """Names of the operators that a comparison computes."""
    names = []

    def note(operator, *arguments):
        names.append(operator.name)
        return run_kernel(operator, *arguments)

    monkeypatch.setattr("engine.comparison.computing.run_kernel", note)
    return names


def test_operators_that_agree_do_not_compute_again(make_pair, computed):
    x = np.random.default_rng(3).standard_normal((4, 60)).astype("f4")
    true = reference_of(chain(x), CALLS, ("d",))
    found = engine.compare(run(make_pair(*LINES), x), true)
    assert (found.verdict, computed) == ("same", [])
    assert all(row.born <= 1e-6 for row in found.rows)
    faulty = [line.replace("3.0", "2.0") for line in LINES]
    found = engine.compare(run(make_pair(*faulty, name="faulty"), x), true)
    assert [origin.operator.name for origin in found.origins] == ["two"]
    assert by_operand(found)["2"].born == pytest.approx(1 / 3, rel=1e-5)
    assert "one" not in computed
    assert "three" in computed  # from the reference's values


def test_an_overridden_value_does_not_hide_its_operator(make_pair, computed):
    x = np.random.default_rng(3).standard_normal((4, 60)).astype("f4")
    arrays = chain(x)
    faulty = [line.replace("3.0", "2.0") for line in LINES]
    session = run(make_pair(*faulty), x)
    session.override("2", arrays["c"])
    session.run()
    found = engine.compare(session, reference_of(arrays, CALLS, ("d",)))
    assert [origin.operator.name for origin in found.origins] == ["two"]
    assert "two" in computed


def test_what_is_fused_upstream_is_not_born_downstream(make_pair):
    """Our run is off by less than the tolerance at an input, and by more at the output."""
    x = np.random.default_rng(6).standard_normal((4, 60)).astype("f4")
    near = (x * np.float32(1 + 6e-5)).astype("f4")  # is fed instead
    lines = [line.replace("mul(@0,3.0)", "mul(@0,mul(@0,@0))") for line in LINES]
    lines[3:4] = ["pnnx.Expression three 1 1 2 3 expr=mul(@0,@0) #3=(4,60)f32"]
    lines[1] = "pnnx.Expression one 1 1 0 1 expr=mul(@0,2.0) #1=(4,60)f32"
    arrays = {"a": x, "d": (8 * x**3) ** 2}  # the reference fuses all three
    calls = (("fused", ("a",), ("d",)),)
    found = engine.compare(run(make_pair(*lines), near), reference_of(arrays, calls, ("d",)))
    rows = by_operand(found)
    assert rows["3"].measures.relative == pytest.approx(3.6e-4, rel=0.01)
    assert rows["3"].born < 1e-6
    assert found.origins == ()


def test_a_tensor_that_is_alike_needs_a_known_place(make_pair):
    """Arrays without calls or order show the norm, and a tensor that only resembles the sum."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 60)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(4,60)f32",
        "pnnx.Expression sum 1 1 0 1 expr=add(@0,mul(@0,@0)) #1=(4,60)f32",
        "nn.LayerNorm norm 1 1 1 2 elementwise_affine=False eps=0.0 normalized_shape=(60) "
        "#2=(4,60)f32",
        "pnnx.Output out 1 0 2",
    )
    y = x + x * x
    alike = y + 0.02 * rng.standard_normal(y.shape).astype("f4")
    arrays = {"image": x, "other": alike, "norm": normalize(y)}
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    theirs = Reference("theirs", tensors, inputs=("image",), outputs=("norm",), ordered=False)
    found = engine.compare(run(path, x), theirs)
    assert (found.verdict, found.origins) == ("same", ())
    assert {row.operand: row.reference for row in found.rows} == {"0": "image", "2": "norm"}


def test_an_operator_that_only_moves_elements_gives_no_others(make_pair):
    """The reference shows no transposed tensor; the next one is of the missing sigmoid."""
    x = np.random.default_rng(8).standard_normal((4, 60)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(4,60)f32",
        "Tensor.permute moved 1 1 0 1 $input=0 dims=(1,0) #1=(60,4)f32",
        "nn.Identity act 1 1 1 2 #2=(60,4)f32",
        "F.tanh last 1 1 2 3 $input=2 #3=(60,4)f32",
        "pnnx.Output out 1 0 3",
    )
    sigmoid = 1 / (1 + np.exp(-x.T))
    arrays = {"a": x, "b": sigmoid, "c": np.tanh(sigmoid)}
    calls = (("sigmoid", ("a",), ("b",)), ("tanh", ("b",), ("c",)))
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("c",)))
    assert [origin.operator.name for origin in found.origins] == ["act"]
    assert found.origins[0].reasons[0].kind == "activation_missing"
    assert by_operand(found)["2"].reference == "b"


def test_a_reshape_is_not_what_a_layer_is_fused_with(make_pair):
    """The reference shows no reshape, and what unbinds its rows tells nothing of the layer."""
    rng = np.random.default_rng(9)
    x, weight = rng.standard_normal((4, 8)).astype("f4"), rng.standard_normal((12, 8))
    true, rounded = weight.astype("f4"), np.round(weight, 1).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(4,8)f32",
        "nn.Linear qkv 1 1 0 1 bias=False in_features=8 out_features=12 @weight=(12,8)f32 "
        "#1=(4,12)f32",
        "Tensor.reshape heads 1 1 1 2 shape=(4,2,6) $input=1 #2=(4,2,6)f32",
        "torch.unbind parts 1 2 2 3 4 dim=1 $input=2 #3=(4,6)f32 #4=(4,6)f32",
        "F.elu a 1 1 3 5 alpha=1.0 $input=3 #5=(4,6)f32",
        "pnnx.Expression end 2 1 5 4 6 expr=mul(@0,@1) #6=(4,6)f32",
        "pnnx.Output out 1 0 6",
        weights={"qkv.weight": rounded},
    )
    y = x @ true.T
    one, two = y[:, :6], y[:, 6:]
    elu = np.where(one > 0, one, np.expm1(one))
    arrays = {"in": x, "mm": y, "one": one, "two": two, "elu": elu, "mul": elu * two}
    calls = (
        ("mm", ("in",), ("mm",)), ("unbind", ("mm",), ("one", "two")),
        ("elu", ("one",), ("elu",)), ("mul", ("elu", "two"), ("mul",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("mul",)))
    assert [origin.operator.name for origin in found.origins] == ["qkv"]
    assert found.origins[0].among == ()


def test_a_sum_along_a_wrong_axis_of_a_square(make_pair):
    """Ours has the tensor's elements in another shape, as if the input were transposed."""
    x = 1.0 + (np.random.default_rng(10).random((1, 20, 20)) > 0.7).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,20,20)f32",
        "torch.sum total 1 1 0 1 dim=(1) keepdim=True $input=0 #0=(1,20,20)f32 #1=(1,20,1)f32",
        "pnnx.Expression root 1 1 1 2 expr=rsqrt(@0) #1=(1,20,1)f32 #2=(1,20,1)f32",
        "torch.transpose turn 1 1 2 3 dim0=-1 dim1=-2 $input=2 #2=(1,20,1)f32 #3=(1,1,20)f32",
        "pnnx.Expression end 3 1 0 2 3 4 expr=mul(mul(@0,@1),@2) #4=(1,20,20)f32",
        "pnnx.Output out 1 0 4",
    )
    total = x.sum(2, keepdims=True)
    root = 1 / np.sqrt(total)
    turned = root.swapaxes(1, 2)
    arrays = {"in": x, "sum": total, "root": root, "turned": turned, "mul": x * root * turned}
    calls = (
        ("sum", ("in",), ("sum",)), ("rsqrt", ("sum",), ("root",)),
        ("transpose", ("root",), ("turned",)), ("mul", ("in", "root", "turned"), ("mul",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("mul",)))
    assert [origin.operator.name for origin in found.origins] == ["total"]
    assert found.origins[0].reasons[0].kind == "axis"
    assert "dim=(2,)" in found.origins[0].reasons[0].text


@pytest.mark.parametrize("seed", [11, 28])
def test_a_layer_with_the_weights_of_its_tensor_keeps_it(make_pair, seed):
    """Gates of four numbers, which tell little; those of the next block agree as well."""

    def linear(name, source, made, size, wanted):
        return (
            f"nn.Linear {name} 1 1 {source} {made} bias=True in_features={size} "
            f"out_features={wanted} @bias=({wanted})f32 @weight=({wanted},{size})f32 "
            f"#{made}=(1,{wanted})f32"
        )

    def normal(number, *shape):
        return np.random.default_rng(10 * seed + number).standard_normal(shape).astype("f4")

    path_lines, weights, calls = ["pnnx.Input in 0 1 0 #0=(1,16)f32"], {}, []
    x = np.random.default_rng(seed + 777).standard_normal((1, 16)).astype("f4")
    arrays, last, given = {"in": x}, "in", 0
    for block, k in enumerate(("", "2")):
        first = given + 1
        path_lines += [
            linear(f"a{k}", given, first, 16, 4),
            f"F.relu r{k} 1 1 {first} {first + 1} $input={first}",
            linear(f"b{k}", first + 1, first + 2, 4, 16),
            f"F.sigmoid s{k} 1 1 {first + 2} {first + 3} $input={first + 2}",
            f"pnnx.Expression m{k} 2 1 {given} {first + 3} {first + 4} expr=mul(@0,@1)",
        ]
        own = {
            f"a{k}.weight": normal(2 * block, 4, 16) / 4,
            f"a{k}.bias": normal(2 * block + 5, 4) / 4,
            f"b{k}.weight": normal(2 * block + 1, 16, 4) / 4,
            f"b{k}.bias": normal(2 * block + 6, 16) / 4,
        }
        weights |= own
        a = arrays[last] @ own[f"a{k}.weight"].T + own[f"a{k}.bias"]
        b = np.maximum(a, 0) @ own[f"b{k}.weight"].T + own[f"b{k}.bias"]
        gate = 1 / (1 + np.exp(-b))
        arrays |= {
            f"a{k}": a, f"r{k}": np.maximum(a, 0), f"b{k}": b, f"s{k}": gate,
            f"m{k}": arrays[last] * gate,
        }  # fmt: skip
        of_a, of_b = ({n: w for n, w in own.items() if n[0] == each} for each in "ab")
        calls += [
            ("addmm", (last,), f"a{k}", of_a), ("relu", (f"a{k}",), f"r{k}", {}),
            ("addmm", (f"r{k}",), f"b{k}", of_b), ("sigmoid", (f"b{k}",), f"s{k}", {}),
            ("mul", (last, f"s{k}"), f"m{k}", {}),
        ]  # fmt: skip
        last, given = f"m{k}", first + 4
    wrong = weights["b.bias"] + np.eye(16, dtype="f4")[3]
    path = make_pair(
        *path_lines, f"pnnx.Output out 1 0 {given}", weights={**weights, "b.bias": wrong}
    )
    found = compare(path, weighted_reference(arrays, calls), x)
    assert [origin.operator.name for origin in found.origins] == ["b"]


WINDOWS = (
    "pnnx.Input in 0 1 0 #0=(1,8,8,6)f32",
    "nn.LayerNorm norm1 1 1 0 1 elementwise_affine=False eps=0.0 normalized_shape=(6)",
    "Tensor.reshape split 1 1 1 2 shape=(1,2,4,2,4,6)",
    "Tensor.permute windows 1 1 2 3 dims=(0,1,3,2,4,5)",
    "Tensor.reshape rows 1 1 3 4 shape=(4,16,6)",
    "nn.Softmax soft 1 1 4 5 dim=1",
    "Tensor.reshape unrows 1 1 5 6 shape=(1,2,2,4,4,6)",
    "Tensor.permute unwindows 1 1 6 7 dims=(0,1,3,2,4,5)",
    "Tensor.reshape unsplit 1 1 7 8 shape=(1,8,8,6)",
    "pnnx.Expression add 2 1 1 8 9 expr=add(@0,@1)",
    "nn.LayerNorm norm2 1 1 9 10 elementwise_affine=False eps=0.0 normalized_shape=(6)",
    "pnnx.Output out 1 0 10",
)
"""Normalized windows of 4x4, softmax over each of them, and the normalized sum of both."""

WINDOWS_OF_NCNN = (
    "Input in 0 1 x 0=6 1=8 2=8",
    "LayerNorm norm1 1 1 x a 0=6 1=0.0 2=0",
    "Split copies 1 2 a a0 a1",
    "Reshape split 1 1 a0 b 0=24 1=2 11=4 2=2",
    "Permute windows 1 1 b c 0=2",
    "Reshape rows 1 1 c d 0=6 1=16 2=4",
    "Softmax soft 1 1 d e 0=1 1=1",
    "Reshape unrows 1 1 e f 0=24 1=4 11=2 2=2",
    "Permute unwindows 1 1 f g 0=2",
    "Reshape unsplit 1 1 g h 0=6 1=8 2=8",
    "BinaryOp add 2 1 a1 h i 0=0",
    "LayerNorm norm2 1 1 i j 0=6 1=0.0 2=0",
)
"""The same in at most 4 dimensions."""


def compare_windows(make_pair, folder, theirs, old="", new=""):
    """Compare `WINDOWS` with a change and a pair of ncnn."""
    x = np.random.default_rng(9).standard_normal((1, 8, 8, 6)).astype("f4")
    ours = make_pair(*(line.replace(old, new) for line in WINDOWS))
    reference = engine.Session(engine.load(write_pair(folder, theirs)), backend="numpy")
    reference.feed([x[0]])
    return engine.compare(run(ours, x), reference)


def test_a_permutation_of_six_dimensions_is_compared_with_one_of_four(make_pair, tmp_path):
    found = compare_windows(make_pair, tmp_path, WINDOWS_OF_NCNN)
    assert (found.verdict, found.origins) == ("same", ())
    shown = {name: row.reference for name, row in by_operand(found).items()}
    assert (shown["3"], shown["5"], shown["7"], shown["10"]) == ("c", "e", "g", "j")


@pytest.mark.parametrize("name", ["windows", "unwindows"])
@pytest.mark.parametrize("dims", ["0,1,2,3,4,5", "0,1,3,4,2,5", "0,2,1,3,4,5"])
def test_a_wrong_permutation_of_six_dimensions_is_named(make_pair, tmp_path, name, dims):
    line = next(line for line in WINDOWS if f" {name} " in line)
    wrong = line.replace("0,1,3,2,4,5", dims)
    found = compare_windows(make_pair, tmp_path, WINDOWS_OF_NCNN, line, wrong)
    assert [origin.operator.name for origin in found.origins] == [name]


def test_a_tensor_that_is_matched_already_confirms_nothing(make_pair, tmp_path):
    """The reference ends at a layer that ncnn lacks; the copy of the tensor before is left.

    Twice a tensor is normalized to what the tensor itself is normalized to.
    """
    lines = list(WINDOWS)
    lines[1:3] = [
        "F.tanh act 1 1 0 1 $input=0",
        "nn.LayerNorm norm1 1 1 1 11 elementwise_affine=False eps=0.0 normalized_shape=(6)",
        "Tensor.reshape split 1 1 11 2 shape=(1,2,4,2,4,6)",
    ]
    theirs = [
        *WINDOWS_OF_NCNN[:1],
        "TanH act 1 1 x a",
        "Split copies 1 2 a a0 a1",
        "LayerNorm norm1 1 1 a0 n 0=6 1=0.0 2=0",
        "Tensor.reshape split 1 1 n b",
        *WINDOWS_OF_NCNN[4:],
    ]
    x = np.random.default_rng(9).standard_normal((1, 8, 8, 6)).astype("f4")
    reference = engine.Session(engine.load(write_pair(tmp_path, theirs)), backend="numpy")
    reference.feed([x[0]])
    found = engine.compare(run(make_pair(*lines), x), reference)
    assert found.origins == ()
    shown = {name: row.reference for name, row in by_operand(found).items()}
    assert shown == {"0": "x", "1": "a", "11": "n", "2": "n"}


def test_a_lost_sum_is_not_confirmed_by_what_reads_its_operand_elsewhere(make_pair):
    """Without the branch the second function gives what the first gave already."""
    x = np.random.default_rng(5).standard_normal((1, 30, 20)).astype("f4")
    size = "(1,30,20)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh start 1 1 0 1 $input=0 #1={size}",
        f"pnnx.Expression power 1 1 1 2 expr=pow(@0,2.0) #2={size}",
        f"pnnx.Expression branch 1 1 2 3 expr=mul(@0,0.5) #3={size}",
        f"nn.Identity sum 1 1 1 4 #4={size}",
        f"pnnx.Expression power2 1 1 4 5 expr=pow(@0,2.0) #5={size}",
        f"pnnx.Expression end 3 1 4 5 3 6 expr=add(add(@0,@1),mul(@2,0.1)) #6={size}",
        "pnnx.Output out 1 0 6",
    )
    a = np.tanh(x)
    b = a**2
    c = np.float32(0.5) * b
    d = a + c
    e = d**2
    arrays = {"in": x, "tanh": a, "pow": b, "mul": c, "add": d, "pow2": e,
              "end": d + e + np.float32(0.1) * c}  # fmt: skip
    calls = (
        ("tanh", ("in",), ("tanh",)), ("pow", ("tanh",), ("pow",)), ("mul", ("pow",), ("mul",)),
        ("add", ("tanh", "mul"), ("add",)), ("pow", ("add",), ("pow2",)),
        ("end", ("add", "pow2", "mul"), ("end",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("end",)))
    assert [origin.operator.name for origin in found.origins] == ["sum"]


def test_a_lost_sum_is_not_confirmed_by_a_step_of_a_normalization_upstream(make_pair):
    """Without the branch, which is small, the last norm gives what the first one multiplies."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((1, 5, 16)).astype("f4")
    sizes = (16, (16, 16), (9, 16))
    scale, weight, last = (rng.uniform(0.5, 1.5, s).astype("f4") for s in sizes)
    weight *= np.float32(0.01)
    size, norm = "(1,5,16)f32", "elementwise_affine=True eps=1e-6 normalized_shape=(16)"
    layer = "bias=False in_features=16"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh start 1 1 0 1 $input=0 #1={size}",
        f"nn.RMSNorm norm 1 1 1 2 {norm} @weight=(16)f32 #2={size}",
        f"F.sigmoid gate 1 1 2 7 $input=2 #7={size}",
        f"pnnx.Expression gated 2 1 2 7 8 expr=mul(@0,@1) #8={size}",
        f"nn.Linear fc 1 1 8 3 {layer} out_features=16 @weight=(16,16)f32 #3={size}",
        f"nn.Identity sum 1 1 1 4 #4={size}",
        f"nn.RMSNorm norm2 1 1 4 5 {norm} @weight=(16)f32 #5={size}",
        f"nn.Linear head 1 1 5 6 {layer} out_features=9 @weight=(9,16)f32 #6=(1,5,9)f32",
        "pnnx.Output out 1 0 6",
        weights={
            "norm.weight": scale, "fc.weight": weight, "norm2.weight": np.ones(16, "f4"),
            "head.weight": last,
        },
    )  # fmt: skip

    def divided(a):
        return a / np.sqrt(np.square(a).mean(-1, keepdims=True) + np.float32(1e-6))

    a = np.tanh(x)
    b = divided(a)
    gate = 1 / (1 + np.exp(-b * scale))
    c = (b * scale * gate) @ weight.T
    d = a + c
    e = divided(d)
    arrays = {"in": x, "tanh": a, "inner": b, "norm": b * scale, "gate": gate,
              "gated": b * scale * gate, "fc": c, "add": d,
              "inner2": e, "norm2": e * np.float32(1), "head": e @ last.T}  # fmt: skip
    calls = (
        ("tanh", ("in",), ("tanh",)), ("mul", ("tanh",), ("inner",)),
        ("mul", ("inner",), ("norm",)), ("sigmoid", ("norm",), ("gate",)),
        ("mul", ("norm", "gate"), ("gated",)), ("mm", ("gated",), ("fc",)),
        ("add", ("tanh", "fc"), ("add",)), ("mul", ("add",), ("inner2",)),
        ("mul", ("inner2",), ("norm2",)), ("mm", ("norm2",), ("head",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("head",)))
    assert [origin.operator.name for origin in found.origins] == ["sum"]


def test_a_scale_that_a_normalization_hides_is_no_tensor_of_the_next_block(make_pair):
    """What follows agrees of the layer's own tensor and of ours, so a trial tells nothing."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 12, 16)).astype("f4")
    keys = [rng.standard_normal((16, 16)).astype("f4") * np.float32(0.03) for _ in range(2)]
    size, norm = "(1,12,16)f32", "elementwise_affine=True eps=1e-6 normalized_shape=(16)"
    layer = "bias=False in_features=16 out_features=16 @weight=(16,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"nn.Linear key 1 1 0 1 {layer} #1={size}",
        f"nn.RMSNorm norm 1 1 1 2 {norm} @weight=(16)f32 #2={size}",
        f"F.softmax soft 1 1 2 3 dim=-1 $input=2 #3={size}",
        f"pnnx.Expression sum 2 1 0 3 4 expr=add(@0,@1) #4={size}",
        f"nn.Linear key2 1 1 4 5 {layer} #5={size}",
        f"nn.RMSNorm norm2 1 1 5 6 {norm} @weight=(16)f32 #6={size}",
        f"F.softmax soft2 1 1 6 7 dim=-1 $input=6 #7={size}",
        f"pnnx.Expression sum2 2 1 4 7 8 expr=add(@0,@1) #8={size}",
        "pnnx.Output out 1 0 8",
        weights={
            "key.weight": keys[0] * np.float32(1.5), "key2.weight": keys[1],
            "norm.weight": np.ones(16, "f4"), "norm2.weight": np.ones(16, "f4"),
        },
    )  # fmt: skip
    arrays, calls, total, before = {"in": x}, [], x, "in"
    for end, weight in zip(("", "2"), keys, strict=True):
        key = total @ weight.T
        normed = key / np.sqrt(np.square(key).mean(-1, keepdims=True) + np.float32(1e-6))
        shares = np.exp(normed) / np.exp(normed).sum(-1, keepdims=True)
        total = total + shares
        steps = {"key": key, "normed": normed, "times": normed * np.float32(1),
                 "shares": shares, "total": total}  # fmt: skip
        arrays |= {f"{name}{end}": array for name, array in steps.items()}
        calls += [
            ("mm", (before,), f"key{end}", {f"key{end}.weight": weight}),
            ("mul", (f"key{end}",), f"normed{end}", {}),
            ("mul", (f"normed{end}",), f"times{end}", {}),
            ("softmax", (f"times{end}",), f"shares{end}", {}),
            ("add", (before, f"shares{end}"), f"total{end}", {}),
        ]  # fmt: skip
        before = f"total{end}"
    found = compare(path, weighted_reference(arrays, calls), x)
    assert [origin.operator.name for origin in found.origins] == ["key"]
    assert {row.operand: row.reference for row in found.rows}["1"] == "key"
    assert found.origins[0].reasons[0].kind == "scale"


@pytest.mark.parametrize("between", [False, True], ids=["read", "an activation between"])
def test_a_mean_that_keeps_its_axes_is_named(make_pair, between):
    """The layer that reads it fails, for it takes 6 features and not 1."""
    rng = np.random.default_rng(6)
    x, weight = (rng.standard_normal(s).astype("f4") for s in ((1, 6, 4, 4), (5, 6)))
    act = "F.tanh act 1 1 1 2 $input=1 #2=(1,6,1,1)f32"
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,6,4,4)f32",
        "torch.mean pool 1 1 0 1 dim=(2,3) keepdim=True $input=0 #1=(1,6,1,1)f32",
        *([act] if between else []),
        f"nn.Linear fc 1 1 {1 + between} 3 bias=False in_features=6 out_features=5 "
        "@weight=(5,6)f32 #3=(1,5)f32",
        "pnnx.Output out 1 0 3",
        weights={"fc.weight": weight},
    )
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed([x])
    y = x.mean((2, 3))
    arrays, calls = {"in": x, "mean": y}, [("mean", ("in",), ("mean",))]
    if between:
        y = arrays["tanh"] = np.tanh(y)
        calls.append(("tanh", ("mean",), ("tanh",)))
    arrays["fc"] = y @ weight.T
    calls.append(("mm", (calls[-1][2][0],), ("fc",)))
    with pytest.raises(engine.errors.EngineError):
        session.run()
    (origin,) = engine.compare(session, reference_of(arrays, calls, ("fc",))).origins
    assert origin.operator.name == "pool"
    assert "it gives 1×6×1×1 instead of 1×6" in origin.text
    assert [reason.kind for reason in origin.reasons] == ["parameter"]
    assert "keepdim=False" in origin.reasons[0].text


def test_a_mean_that_keeps_its_axes_is_named_behind_a_product_of_matrices(make_pair):
    """The reference computes the layer on rows; that is no other shape of ours."""
    rng = np.random.default_rng(6)
    x, weight = (rng.standard_normal(s).astype("f4") for s in ((1, 4, 4, 6), (5, 6)))
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,4,6)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=6 out_features=5 "
        "@weight=(5,6)f32 #1=(1,4,4,5)f32",
        "torch.mean pool 1 1 1 2 dim=(1,2) keepdim=True $input=1 #2=(1,5)f32",
        "pnnx.Output out 1 0 2",
        weights={"fc.weight": weight},
    )
    rows = x.reshape(16, 6) @ weight.T
    arrays = {"in": x, "mm": rows, "mean": rows.mean(0)[None]}
    calls = (("mm", ("in",), ("mm",)), ("mean", ("mm",), ("mean",)))
    (origin,) = engine.compare(run(path, x), reference_of(arrays, calls, ("mean",))).origins
    assert origin.operator.name == "pool"
    assert "it gives 1×1×1×5 instead of 1×5" in origin.text
    assert "keepdim=False" in origin.reasons[0].text


def test_a_wrong_axis_is_not_excused_by_a_reference_without_batch(make_pair):
    """Without the batch axis 2 is the last one, as it should be with it."""
    x = np.random.default_rng(7).standard_normal((1, 4, 12, 12)).astype("f4")
    size = "(1,4,12,12)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh start 1 1 0 1 $input=0 #1={size}",
        f"pnnx.Expression twice 1 1 1 2 expr=mul(@0,2.0) #2={size}",
        f"F.softmax share 1 1 2 3 dim=2 $input=2 #3={size}",
        f"pnnx.Expression end 2 1 3 1 4 expr=add(@0,@1) #4={size}",
        "pnnx.Output out 1 0 4",
    )
    a = np.tanh(x[0])
    e = np.exp(2 * a)
    y = e / e.sum(-1, keepdims=True)
    arrays = {"in": x[0], "tanh": a, "mul": 2 * a, "softmax": y, "add": y + a}
    calls = (
        ("tanh", ("in",), ("tanh",)), ("mul", ("tanh",), ("mul",)),
        ("softmax", ("mul",), ("softmax",)), ("add", ("softmax", "tanh"), ("add",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("add",)))
    assert [origin.operator.name for origin in found.origins] == ["share"]
    assert [reason.kind for reason in found.origins[0].reasons] == ["axis"]


def test_sums_that_add_little_are_no_other_sums(make_pair):
    """As with layer scales of a millionth: only the layers between are shown, moved."""
    rng = np.random.default_rng(0)
    x, weight = rng.standard_normal((1, 40, 16)).astype("f4"), rng.standard_normal((16, 16))
    branch, last = (4e-5 * weight).astype("f4"), weight.astype("f4")
    size, moved = "(1,40,16)f32", "(1,16,40)f32"
    shapes = "bias=False in_features=16 out_features=16 @weight=(16,16)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"nn.Tanh first 1 1 0 1 #1={size}",
        f"Tensor.permute there 1 1 1 2 dims=(0,2,1) #2={moved}",
        f"Tensor.permute back 1 1 2 3 dims=(0,2,1) #3={size}",
        f"nn.Linear small 1 1 3 4 {shapes} #4={size}",
        f"pnnx.Expression sum 2 1 3 4 5 expr=add(@0,@1) #5={size}",
        f"nn.Identity second 1 1 5 6 #6={size}",
        f"nn.Linear last 1 1 6 7 {shapes} #7={size}", "pnnx.Output out 1 0 7",
        weights={"small.weight": branch, "last.weight": last},
    )  # fmt: skip
    y = np.tanh(x)
    z = y + y @ branch.T
    # So near that it may be rounding, but beyond the tolerance.
    assert np.abs(z - y).max() / np.abs(z).max() > 1e-4
    assert np.linalg.norm(z - y) / np.linalg.norm(y) < 2e-4
    arrays = {"first": y, "small": y @ branch.T, "second": z, "last": z @ last.T}
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    found = engine.compare(run(path, x), Reference("layers", tensors))
    assert (found.verdict, found.origins) == ("same", ())
    assert by_operand(found)["2"].reference == "first"


@pytest.mark.parametrize("lost", [True, False])
def test_a_zero_norm_behind_a_layer_does_not_hide_a_difference(make_pair, lost):
    """The branch of a residual block that starts as zeros: the block gives its input again."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((1, 6, 8)).astype("f4")
    weight, zero = rng.standard_normal((8, 8)).astype("f4"), np.zeros(8, "f4")
    size = "(1,6,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh first 1 1 0 1 $input=0 #1={size}",
        f"{'nn.Identity' if lost else 'nn.ReLU'} act 1 1 1 2 #2={size}",
        "nn.Linear fc 1 1 2 3 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        f"#3={size}",
        "nn.LayerNorm norm 1 1 3 4 elementwise_affine=True eps=1e-5 normalized_shape=(8) "
        f"@weight=(8)f32 @bias=(8)f32 #4={size}",
        f"pnnx.Expression sum 2 1 1 4 5 expr=add(@0,@1) #5={size}",
        f"F.silu last 1 1 5 6 $input=5 #6={size}",
        "pnnx.Output out 1 0 6",
        weights={"fc.weight": weight, "norm.weight": zero, "norm.bias": zero},
    )
    first = np.tanh(x)
    arrays = {
        "x": x, "first": first, "act": np.maximum(first, 0),
        "fc": np.maximum(first, 0) @ weight.T, "norm": np.zeros_like(x), "sum": first,
        "last": first / (1 + np.exp(-first)),
    }  # fmt: skip
    calls = (
        ("tanh", ("x",), "first", {}), ("relu", ("first",), "act", {}),
        ("linear", ("act",), "fc", {"weight": weight}),
        ("norm", ("fc",), "norm", {"weight": zero, "bias": zero}),
        ("add", ("first", "norm"), "sum", {}), ("silu", ("sum",), "last", {}),
    )  # fmt: skip
    found = compare(
        path, weighted_reference({k: a.astype("f4") for k, a in arrays.items()}, calls), x
    )
    assert found.verdict == ("differs" if lost else "same")
    if lost:
        (origin,) = found.origins
        assert origin.operator.name == "act"
        assert origin.reasons[0].kind == "activation_missing"


def test_inputs_are_those_of_the_call_of_the_reference(make_pair):
    """A sum with a table is lost; the reference happens to take parts of the table, too."""
    rng = np.random.default_rng(7)
    x, table = (rng.standard_normal((1, 9, 8)).astype("f4") for _ in range(2))
    more = rng.standard_normal((1, 2, 8)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,9,8)f32",
        "pnnx.Attribute table 0 1 1 @data=(1,9,8)f32 #1=(1,9,8)f32",
        "nn.Identity lost 1 1 1 2 #2=(1,9,8)f32",
        "torch.tensor_split parts 1 2 2 3 4 dim=1 indices=(1) $input=2 #3=(1,1,8)f32 "
        "#4=(1,8,8)f32",
        "pnnx.Attribute more 0 1 5 @data=(1,2,8)f32 #5=(1,2,8)f32",
        "torch.cat joined 3 1 3 5 4 6 dim=1 #6=(1,11,8)f32",
        "F.silu act 1 1 6 7 $input=6 #7=(1,11,8)f32",
        "pnnx.Output out 1 0 7",
        weights={"table.data": table, "more.data": more},
    )
    sum_ = x + table
    joined = np.concatenate([sum_[:, :1], more, sum_[:, 1:]], 1)
    arrays = {
        "x": x, "table": table, "first of table": table[:, :1], "rest of table": table[:, 1:],
        "sum": sum_, "first": sum_[:, :1], "more": more, "rest": sum_[:, 1:], "joined": joined,
        "act": joined / (1 + np.exp(-joined)),
    }  # fmt: skip
    calls = (
        ("slice", ("table",), "first of table", {}), ("slice", ("table",), "rest of table", {}),
        ("add", ("x", "table"), "sum", {}), ("slice", ("sum",), "first", {}),
        ("slice", ("sum",), "rest", {}), ("cat", ("first", "more", "rest"), "joined", {}),
        ("silu", ("joined",), "act", {}),
    )  # fmt: skip
    found = compare(path, weighted_reference(arrays, calls), x)
    (origin,) = found.origins
    named = {origin.operator.name, *(label.name for label in origin.among)}
    assert "lost" in named
    assert "joined" not in named


@pytest.mark.parametrize("fault", ["", "weight", "name"])
def test_a_wrong_weight_before_a_zero_norm_is_seen_by_its_name(make_pair, fault):
    """Behind a layer of rows, as in LeViT; a name of another tensor alone tells nothing."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((1, 6, 8)).astype("f4")
    weight, zero = rng.standard_normal((8, 8)).astype("f4"), np.zeros(8, "f4")
    norm = np.ones(8, "f4") if fault == "name" else zero
    wrong = weight.copy()
    wrong[3] *= -1.5
    size, rows = "(1,6,8)f32", "(6,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh first 1 1 0 1 $input=0 #1={size}",
        "nn.Linear fc 1 1 1 2 bias=False in_features=8 out_features=8 @weight=(8,8)f32 "
        f"#2={size}",
        f"torch.flatten rows 1 1 2 3 start_dim=0 end_dim=1 $input=2 #3={rows}",
        "nn.BatchNorm1d norm 1 1 3 4 affine=True eps=1e-5 num_features=8 @weight=(8)f32 "
        f"@bias=(8)f32 @running_mean=(8)f32 @running_var=(8)f32 #4={rows}",
        f"Tensor.reshape_as back 2 1 4 2 5 $input=4 $other=2 #5={size}",
        f"pnnx.Expression sum 2 1 1 5 6 expr=add(@0,@1) #6={size}",
        f"F.silu last 1 1 6 7 $input=6 #7={size}",
        "pnnx.Output out 1 0 7",
        weights={
            "fc.weight": wrong if fault == "weight" else weight,
            "norm.weight": norm, "norm.bias": zero,
            "norm.running_mean": zero, "norm.running_var": np.ones(8, "f4"),
        },
    )  # fmt: skip
    first = np.tanh(x)
    product = first @ weight.T
    normed = (product / np.sqrt(1 + 1e-5) * norm).reshape(6, 8)
    total = first + normed.reshape(1, 6, 8)
    shown = 2 * product if fault == "name" else product  # as where the layer is half of ours
    arrays = {
        "x": x, "first": first, "fc": shown, "norm": normed, "sum": total,
        "last": total / (1 + np.exp(-total)),
    }  # fmt: skip
    calls = (
        ("tanh", ("x",), "first", {}), ("mm", ("first",), "fc", {"fc.weight": weight * 2}),
        ("batch_norm", ("fc",), "norm", {}), ("add", ("first", "norm"), "sum", {}),
        ("silu", ("sum",), "last", {}),
    )  # fmt: skip
    found = compare(
        path, weighted_reference({k: a.astype("f4") for k, a in arrays.items()}, calls), x
    )
    assert found.verdict == ("differs" if fault == "weight" else "same")
    assert [each.operator.name for each in found.origins] == ["fc"] * (fault == "weight")


def test_a_layer_of_one_head_keeps_the_shape_of_its_windows(make_pair):
    """The reference multiplies all windows as one matrix, and shows no reshape."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 8, 6)).astype("f4")
    weight = rng.standard_normal((18, 6)).astype("f4")
    mask = rng.standard_normal((1, 1, 4, 4)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,8,6)f32",
        "Tensor.reshape windows 1 1 0 1 shape=(2,2,2,6) $input=0 #1=(2,2,2,6)f32",
        "nn.Linear qkv 1 1 1 2 bias=False in_features=6 out_features=18 @weight=(18,6)f32 "
        "#2=(2,2,2,18)f32",
        "Tensor.reshape heads 1 1 2 3 shape=(2,4,1,18) $input=2 #3=(2,4,1,18)f32",
        "torch.transpose first 1 1 3 4 dim0=1 dim1=2 $input=3 #4=(2,1,4,18)f32",
        "torch.chunk parts 1 3 4 5 6 7 chunks=3 dim=3 $input=4 #5=(2,1,4,6)f32 "
        "#6=(2,1,4,6)f32 #7=(2,1,4,6)f32",
        "pnnx.Attribute mask 0 1 8 @data=(1,1,4,4)f32 #8=(1,1,4,4)f32",
        "F.scaled_dot_product_attention mix 4 1 5 6 7 8 9 dropout_p=0.0 is_causal=False "
        "$query=5 $key=6 $value=7 $attn_mask=8 #9=(2,1,4,6)f32",
        "pnnx.Output out 1 0 9",
        weights={"qkv.weight": weight, "mask.data": mask},
    )
    product = x[0] @ weight.T
    heads = product.reshape(2, 1, 4, 18)
    query, key, value = np.split(heads, 3, 3)
    scores = query @ key.swapaxes(2, 3) / np.sqrt(np.float32(6)) + mask
    shares = np.exp(scores) / np.exp(scores).sum(3, keepdims=True)
    arrays = {
        "x": x, "addmm": product, "heads": heads, "query": query, "key": key, "value": value,
        "mask": mask, "mix": shares @ value,
    }  # fmt: skip
    calls = (
        ("addmm", ("x",), ("addmm",)), ("transpose", ("addmm",), ("heads",)),
        ("split", ("heads",), ("query", "key", "value")),
        ("attention", ("query", "key", "value", "mask"), ("mix",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("mix",)))
    assert (found.verdict, found.origins) == ("same", ())
    assert by_operand(found)["2"].reference == "addmm"


def test_a_sum_with_a_lost_constant_names_the_reference_s_tensor(make_pair):
    """As where an export loses the embedding of positions."""
    rng = np.random.default_rng(8)
    x, places = (rng.standard_normal((1, 6, 8)).astype("f4") for _ in range(2))
    size = "(1,6,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh first 1 1 0 1 $input=0 #1={size}",
        f"nn.Identity sum 1 1 1 2 #2={size}",
        f"F.silu last 1 1 2 3 $input=2 #3={size}",
        "pnnx.Output out 1 0 3",
        weights={},
    )
    total = np.tanh(x) + places
    arrays = {
        "x": x, "places": places, "first": np.tanh(x), "sum": total,
        "last": total / (1 + np.exp(-total)),
    }  # fmt: skip
    calls = (
        ("tanh", ("x",), "first", {}), ("add", ("first", "places"), "sum", {}),
        ("silu", ("sum",), "last", {}),
    )  # fmt: skip
    (origin,) = compare(path, weighted_reference(arrays, calls), x).origins
    assert origin.operator.name == "sum"
    (reason, *_) = origin.reasons
    assert reason.kind == "expression"
    assert "adds its tensor 'places'" in reason.text
    np.testing.assert_array_equal(reason.changes[0].value, places)


def test_a_constant_of_the_reference_confirms_nothing(make_pair):
    """Whatever leads to small numbers leads to gates that are nearly 0.5."""
    rng = np.random.default_rng(4)
    x, other = rng.standard_normal((2, 1, 64)).astype("f4")
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,64)f32",
        "F.sigmoid gate 1 1 0 1 $input=0 #1=(1,64)f32",
        "pnnx.Output out 1 0 1",
    )
    half = np.full((1, 64), 0.5, "f4")
    arrays = {"x": x, "small": other, "gate": half, "end": x * 2}
    calls = (("norm", ("x",), ("small",)), ("sigmoid", ("small",), ("gate",)))
    reference = reference_of(arrays, calls, ("end",))
    index, session = FingerprintIndex(reference), run(path, x)
    matcher = Matcher(session.graph, reference, index, {})
    trials = Tools.of(Sides(session, reference, index, matcher, 1e-4)).trials
    nearly = 1 + np.float32(1e-3) * rng.standard_normal((1, 64)).astype("f4")
    assert not trials.is_new("1", half * nearly, "small")
    assert trials.is_new("1", x * 2 * nearly, "small")


def test_a_wrong_axis_of_a_transposition_of_six_dimensions_is_named(make_pair):
    """Of so many axes no order is tried, and the elements are read in the shape of the file."""
    x = np.random.default_rng(3).standard_normal((1, 2, 2, 3, 4, 5)).astype(np.float32)
    pair = make_pair(
        "pnnx.Input in0 0 1 0 #0=(1,2,2,3,4,5)f32",
        "torch.transpose windows 1 1 0 1 dim0=5 dim1=3 #0=(1,2,2,3,4,5)f32 #1=(1,2,3,2,4,5)f32",
        "F.softmax soft 1 1 1 2 dim=-1 #1=(1,2,3,2,4,5)f32 #2=(1,2,3,2,4,5)f32",
        "pnnx.Output out0 1 0 2 #2=(1,2,3,2,4,5)f32",
    )
    session = engine.Session(engine.load(pair), backend="numpy")
    session.feed([x])
    turned = x.transpose(0, 1, 3, 2, 4, 5)
    powers = np.exp(turned)
    arrays = {"in0x": x, "turned": turned, "soft": powers / powers.sum(-1, keepdims=True)}
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    calls = [
        ReferenceOperator("windows", "aten.transpose", ("in0x",), ("turned",), dict),
        ReferenceOperator("soft", "aten._softmax", ("turned",), ("soft",), dict),
    ]
    found = engine.compare(session, Reference("theirs", tensors, calls, ["in0x"], ["soft"]))
    assert [o.operator.name for o in found.origins] == ["windows"]
    assert "instead of 1×2×3×2×4×5" in found.origins[0].text
    assert found.origins[0].reasons[0].text == (
        "The reference has dim0=2, the file 5. Set dim0=2."
    )


def test_rows_and_columns_of_a_square_are_exchanged_in_a_small_branch(make_pair):
    """Before training, a scale of 1e-6 hides the branch of a ConvNeXt in the sum behind it."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 6, 6, 8)).astype("f4")
    y = rng.standard_normal((1, 8, 6, 6)).astype("f4")
    size = "(1,8,6,6)f32"
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,6,6,8)f32", f"pnnx.Input past 0 1 1 #1={size}",
        "pnnx.Expression scale 1 1 0 2 expr=mul(@0,1e-6) #2=(1,6,6,8)f32",
        f"Tensor.permute turn 1 1 2 3 dims=(0,3,2,1) $input=2 #3={size}",
        f"pnnx.Expression sum 2 1 1 3 4 expr=add(@0,@1) #4={size}",
        f"F.tanh act 1 1 4 5 $input=4 #5={size}", "pnnx.Output out 1 0 5",
    )  # fmt: skip
    small = np.float32(1e-6) * x
    turned = np.ascontiguousarray(small.transpose(0, 3, 1, 2))
    arrays = {"x": x, "y": y, "mul": small, "permute": turned, "add": y + turned,
              "tanh": np.tanh(y + turned)}  # fmt: skip
    calls = (
        ("mul", ("x",), ("mul",)), ("aten::permute", ("mul",), ("permute",)),
        ("add", ("y", "permute"), ("add",)), ("tanh", ("add",), ("tanh",)),
    )  # fmt: skip
    found = engine.compare(run(path, x, y), reference_of(arrays, calls, ("tanh",)))
    (origin,) = found.origins
    assert (found.verdict, origin.operator.name) == ("differs", "turn")
    assert [reason.kind for reason in origin.reasons][:1] == ["axis"]


def test_a_mask_that_hides_nothing_is_none_of_the_next_tensors(make_pair):
    """As a mask any tensor without zeros gives the same, however far that is to see."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 25, 25)).astype("f4")
    ones, size = np.ones((1, 25), "f4"), "(1,25,25)"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}f32", "pnnx.Attribute ones 0 1 1 @data=(1,25)f32",
        "Tensor.to mask 1 1 1 2 copy=False dtype=torch.bool $input=1 #2=(1,25)bool",
        "torch.unsqueeze row 1 1 2 3 dim=1 $input=2 #3=(1,1,25)bool",
        f"Tensor.expand all 1 1 3 4 sizes=(1,25,25) $input=3 #4={size}bool",
        "Tensor.reshape again 1 1 4 5 shape=(1,25,25) $input=4",
        "pnnx.Attribute zero 0 1 8 @data=()f32 #8=()f32",
        f"torch.where fill 2 1 5 8 6 other=-3.0 $condition=5 $input=8 #6={size}f32",
        f"pnnx.Expression sum 2 1 0 6 9 expr=add(@0,@1) #9={size}f32",
        f"F.softmax soft 1 1 9 7 dim=-1 $input=9 #7={size}f32", "pnnx.Output out 1 0 7",
        weights={"ones.data": ones, "zero.data": np.zeros((), "f4")},
    )  # fmt: skip
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    arrays = {
        "x": x, "ones": ones, "where": 0 * x, "mean": x.mean(-1, keepdims=True),
        "std": x.std(-1, keepdims=True), "add": x.copy(), "shares": shares,
    }  # fmt: skip
    calls = (
        ("where", ("ones",), ("where",)), ("mean", ("x",), ("mean",)),
        ("std", ("x",), ("std",)), ("add", ("x", "where"), ("add",)),
        ("softmax", ("add",), ("shares",)),
    )  # fmt: skip
    found = engine.compare(run(path, x), reference_of(arrays, calls, ("shares",)))
    assert (found.verdict, found.origins) == ("same", ())


def test_a_sum_near_to_the_next_one_is_not_taken_for_it(make_pair):
    """Corners of boxes around points: the first is added, where the reference subtracts it.

    The result is near to the other corner, which is computed right.
    """
    rng = np.random.default_rng(12)
    sides = (1 + 0.2 * rng.random((1, 4, 30))).astype("f4")
    points = (10 * rng.random((1, 2, 30))).astype("f4")
    size = "(1,2,30)f32"
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,4,30)f32",
        f"pnnx.Attribute points 0 1 1 @data={size} #1={size}",
        f"torch.chunk sides 1 2 0 2 3 chunks=2 dim=1 $input=0 #2={size} #3={size}",
        f"pnnx.Expression low 2 1 1 2 4 expr=add(@0,@1) #4={size}",
        f"pnnx.Expression high 2 1 1 3 5 expr=add(@0,@1) #5={size}",
        f"pnnx.Expression middle 2 1 4 5 6 expr=div(add(@0,@1),2) #6={size}",
        f"pnnx.Expression extent 2 1 5 4 7 expr=mul(sub(@0,@1),0.5) #7={size}",
        "torch.cat boxes 2 1 6 7 8 dim=1 #8=(1,4,30)f32",
        "pnnx.Output out 1 0 8",
        weights={"points.data": points},
    )
    first, second = sides[:, :2], sides[:, 2:]
    low, high = points - first, points + second
    wrong = points + first
    assert np.linalg.norm(wrong - high) < 0.05 * np.linalg.norm(high)
    arrays = {
        "in": sides, "points": points, "first": first, "second": second, "low": low,
        "high": high, "sum": low + high, "middle": (low + high) / 2, "difference": high - low,
        "extent": (high - low) / 2,
    }  # fmt: skip
    arrays["boxes"] = np.concatenate([arrays["middle"], arrays["extent"]], 1)
    calls = (
        ("chunk", ("in",), ("first", "second")), ("sub", ("points", "first"), ("low",)),
        ("add", ("points", "second"), ("high",)), ("add", ("low", "high"), ("sum",)),
        ("div", ("sum",), ("middle",)), ("sub", ("high", "low"), ("difference",)),
        ("mul", ("difference",), ("extent",)), ("cat", ("middle", "extent"), ("boxes",)),
    )  # fmt: skip
    found = engine.compare(run(path, sides), reference_of(arrays, calls, ("boxes",)))
    (origin,) = found.origins
    assert (origin.operator.name, origin.among) == ("low", ())
    assert origin.reasons[0].text.endswith("Set expr=sub(@0,@1).")
    rows = by_operand(found)
    assert (rows["4"].reference, rows["5"].reference) == ("low", "high")


def test_a_scale_of_one_keeps_its_tensor_before_norms_of_ones(make_pair):
    """As before training: the norm of the next block fits behind the sum of any block."""
    rng = np.random.default_rng(13)
    x = rng.standard_normal((1, 6, 8)).astype("f4")
    first, second = (0.1 * rng.standard_normal((8, 8)).astype("f4") for _ in range(2))
    size = "(1,6,8)f32"
    norm = "elementwise_affine=True eps=0.0 normalized_shape=(8) @weight=(8)f32 @bias=(8)f32"
    linear = "bias=False in_features=8 out_features=8 @weight=(8,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"F.tanh act 1 1 0 1 $input=0 #1={size}",
        f"pnnx.Expression start 1 1 1 3 expr=mul(@0,1.0) #3={size}",
        f"nn.LayerNorm n1 1 1 3 4 {norm} #4={size}",
        f"nn.Linear fc1 1 1 4 5 {linear} #5={size}",
        f"pnnx.Expression sum1 2 1 5 3 6 expr=add(@0,@1) #6={size}",
        f"nn.LayerNorm n2 1 1 6 7 {norm} #7={size}",
        f"nn.Linear fc2 1 1 7 8 {linear} #8={size}",
        f"pnnx.Expression sum2 2 1 8 6 9 expr=add(@0,@1) #9={size}",
        "pnnx.Output out 1 0 9",
        weights={
            "fc1.weight": first, "fc2.weight": second, "n1.weight": np.ones(8, "f4"),
            "n1.bias": np.zeros(8, "f4"), "n2.weight": np.ones(8, "f4"),
            "n2.bias": np.zeros(8, "f4"),
        },
    )  # fmt: skip
    act = np.tanh(x)
    arrays = {"in": x, "act": act, "start": act, "n1": normalize(act)}
    arrays["fc1"] = arrays["n1"] @ first.T
    arrays["sum1"] = arrays["fc1"] + act
    arrays["again"] = arrays["sum1"]
    arrays["n2"] = normalize(arrays["again"])
    arrays["fc2"] = arrays["n2"] @ second.T
    arrays["sum2"] = arrays["fc2"] + arrays["sum1"]
    calls = (
        ("tanh", ("in",), "act", {}), ("mul", ("act",), "start", {}),
        ("norm", ("start",), "n1", {}), ("linear", ("n1",), "fc1", {"weight": first}),
        ("add", ("fc1", "start"), "sum1", {}), ("mul", ("sum1",), "again", {}),
        ("norm", ("again",), "n2", {}), ("linear", ("n2",), "fc2", {"weight": second}),
        ("add", ("fc2", "again"), "sum2", {}),
    )  # fmt: skip
    found = compare(path, weighted_reference(arrays, calls), x)
    assert (found.verdict, found.origins) == ("same", ())
    rows = by_operand(found)
    assert (rows["3"].reference, rows["6"].reference) == ("start", "sum1")


def test_a_reshape_is_not_taken_for_a_transposition_where_it_matters_little(make_pair):
    """Scores by relative places, as in XLNet before training: others outweigh them."""
    rng = np.random.default_rng(14)
    x, others = (rng.standard_normal(s).astype("f4") for s in ((1, 2, 4, 8), (1, 2, 4, 7)))
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,4,8)f32",
        "pnnx.Input others 0 1 1 #1=(1,2,4,7)f32",
        "F.tanh act 1 1 0 2 $input=0 #2=(1,2,4,8)f32",
        "Tensor.reshape tall 1 1 2 3 shape=(1,2,8,4) $input=2 #3=(1,2,8,4)f32",
        "Tensor.slice later 1 1 3 4 dim=2 start=1 end=2147483647 step=1 $input=3 "
        "#4=(1,2,7,4)f32",
        "Tensor.reshape wide 1 1 4 5 shape=(1,2,4,7) $input=4 #5=(1,2,4,7)f32",
        "pnnx.Expression sum 2 1 1 5 6 expr=add(@0,mul(@1,0.001)) #6=(1,2,4,7)f32",
        "pnnx.Output out 1 0 6",
    )
    act = np.tanh(x)
    tall = act.reshape(1, 2, 8, 4)
    later = tall[:, :, 1:]
    # The reference does not show views, but slices that take all. It has no batch before.
    arrays = {"in": x, "others": others, "act": act[0], "all": tall, "later": later,
              "sum": others + np.float32(0.001) * later.reshape(1, 2, 4, 7)}  # fmt: skip
    calls = (
        ("tanh", ("in",), ("act",)), ("slice", (), ("all",)),
        ("slice", ("all",), ("later",)), ("add", ("others", "later"), ("sum",)),
    )  # fmt: skip
    found = engine.compare(run(path, x, others), reference_of(arrays, calls, ("sum",)))
    assert (found.verdict, found.origins) == ("same", ())
    assert by_operand(found)["3"].reference == "all"


def test_weights_of_an_attention_to_all_alike_have_no_wrong_layout(make_pair):
    """Equal elements are at the same places in every order of the axes."""
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(shape).astype("f4") for shape in ((1, 6, 4, 5), (4, 1, 6, 5)))
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,6,4,5)f32",
        "pnnx.Input in2 0 1 5 #5=(4,1,6,5)f32",
        "pnnx.Expression none 1 1 0 1 expr=mul(@0,0.0) #1=(1,6,4,5)f32",
        "F.softmax share 1 1 1 2 dim=-1 $input=1 #2=(1,6,4,5)f32",
        "Tensor.permute turn 1 1 2 3 dims=(0,2,1,3) $input=2 #3=(1,4,6,5)f32",
        "Tensor.reshape heads 1 1 3 4 shape=(4,1,6,5) $input=3 #4=(4,1,6,5)f32",
        "pnnx.Expression end 2 1 4 5 6 expr=mul(@0,@1) #6=(4,1,6,5)f32",
        "pnnx.Output out 1 0 6",
    )
    share = np.full((1, 6, 4, 5), 0.2, "f4")
    arrays = {"in": x, "in2": y, "none": 0 * x, "share": share,
              "end": share.transpose(0, 2, 1, 3).reshape(4, 1, 6, 5) * y}  # fmt: skip
    calls = (
        ("mul", ("in",), ("none",)), ("softmax", ("none",), ("share",)),
        ("mul", ("share", "in2"), ("end",)),
    )  # fmt: skip
    found = engine.compare(run(path, x, y), reference_of(arrays, calls, ("end",)))
    assert (found.verdict, found.origins) == ("same", ())


def test_an_added_function_is_not_hidden_by_shares_that_are_divided_again(make_pair):
    """What the reference divides by its sum stays the same when that is done twice."""
    x = np.random.default_rng(4).standard_normal((1, 12, 9)).astype("f4")
    size = "(1,12,9)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"pnnx.Expression power 1 1 0 1 expr=exp(@0) #1={size}",
        f"F.silu more 1 1 1 2 $input=1 #2={size}",
        "torch.sum total 1 1 2 3 dim=(2) keepdim=True $input=2 #3=(1,12,1)f32",
        f"pnnx.Expression end 3 1 2 3 0 4 expr=mul(div(@0,@1),@2) #4={size}",
        "pnnx.Output out 1 0 4",
    )
    power = np.exp(x)
    share = power / power.sum(2, keepdims=True)
    arrays = {"in": x, "exp": power, "sum": power.sum(2, keepdims=True), "div": share,
              "mul": share * x}  # fmt: skip
    calls = (
        ("exp", ("in",), ("exp",)), ("sum", ("exp",), ("sum",)),
        ("div", ("exp", "sum"), ("div",)), ("mul", ("div", "in"), ("mul",)),
    )  # fmt: skip
    (origin,) = engine.compare(run(path, x), reference_of(arrays, calls, ("mul",))).origins
    assert origin.operator.name == "more"
    assert [reason.kind for reason in origin.reasons][:1] == ["activation_extra"]


def test_the_other_operands_tell_which_sum_has_an_exchanged_one(make_pair):
    """Each sum has an operand of the other one, and what follows fits both sums."""
    rng = np.random.default_rng(10)
    x, c = (rng.standard_normal((1, 7, 8)).astype("f4") for _ in range(2))
    weights = {name: rng.standard_normal((8, 8)).astype("f4") / 3
               for name in ("a1", "b1", "a2", "b2", "end")}  # fmt: skip
    size, layer = "(1,7,8)f32", "bias=False in_features=8 out_features=8 @weight=(8,8)f32"
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={size}",
        f"pnnx.Input in2 0 1 1 #1={size}",
        f"nn.Linear a1 1 1 0 2 {layer} #2={size}",
        f"nn.Linear b1 1 1 1 3 {layer} #3={size}",
        f"nn.Linear b2 1 1 1 4 {layer} #4={size}",
        f"F.relu c1 1 1 1 5 $input=1 #5={size}",
        f"F.sigmoid c2 1 1 1 6 $input=1 #6={size}",
        f"pnnx.Expression sum1 3 1 4 3 5 7 expr=add(add(@0,@1),@2) #7={size}",
        f"F.tanh tanh1 1 1 7 13 $input=7 #13={size}",
        f"F.sigmoid gate1 1 1 7 14 $input=7 #14={size}",
        f"pnnx.Expression act1 2 1 13 14 8 expr=mul(@0,@1) #8={size}",
        f"nn.Linear a2 1 1 8 9 {layer} #9={size}",
        f"pnnx.Expression sum2 3 1 9 2 6 10 expr=add(add(@0,@1),@2) #10={size}",
        f"F.tanh tanh2 1 1 10 15 $input=10 #15={size}",
        f"F.sigmoid gate2 1 1 10 16 $input=10 #16={size}",
        f"pnnx.Expression act2 2 1 15 16 11 expr=mul(@0,@1) #11={size}",
        f"nn.Linear end 1 1 11 12 {layer} #12={size}",
        "pnnx.Output out 1 0 12",
        weights={f"{name}.weight": each for name, each in weights.items()},
    )

    def sigmoid(array):
        return 1 / (1 + np.exp(-array))

    a1, b1, b2 = x @ weights["a1"].T, c @ weights["b1"].T, c @ weights["b2"].T
    c1, c2 = np.maximum(c, 0), sigmoid(c)
    sum1 = a1 + b1 + c1
    act1 = np.tanh(sum1) * sigmoid(sum1)
    a2 = act1 @ weights["a2"].T
    sum2 = a2 + b2 + c2
    act2 = np.tanh(sum2) * sigmoid(sum2)
    arrays = {
        "in": x, "in2": c, "a1": a1, "b1": b1, "c1": c1, "add1": a1 + b1, "sum1": sum1,
        "tanh1": np.tanh(sum1), "gate1": sigmoid(sum1), "act1": act1, "a2": a2, "b2": b2,
        "c2": c2, "add2": a2 + b2, "sum2": sum2, "tanh2": np.tanh(sum2),
        "gate2": sigmoid(sum2), "act2": act2, "end": act2 @ weights["end"].T,
    }  # fmt: skip
    calls = (
        ("mm", ("in",), ("a1",)), ("mm", ("in2",), ("b1",)), ("relu", ("in2",), ("c1",)),
        ("add", ("a1", "b1"), ("add1",)), ("add", ("add1", "c1"), ("sum1",)),
        ("tanh", ("sum1",), ("tanh1",)), ("sigmoid", ("sum1",), ("gate1",)),
        ("mul", ("tanh1", "gate1"), ("act1",)), ("mm", ("act1",), ("a2",)),
        ("mm", ("in2",), ("b2",)), ("sigmoid", ("in2",), ("c2",)),
        ("add", ("a2", "b2"), ("add2",)), ("add", ("add2", "c2"), ("sum2",)),
        ("tanh", ("sum2",), ("tanh2",)), ("sigmoid", ("sum2",), ("gate2",)),
        ("mul", ("tanh2", "gate2"), ("act2",)), ("mm", ("act2",), ("end",)),
    )  # fmt: skip
    found = engine.compare(run(path, x, c), reference_of(arrays, calls, ("end",)))
    said = [(origin.operator.name, origin.reasons[0].text) for origin in found.origins]
    assert [name for name, _ in said] == ["sum1", "sum2"]
    assert "reads 'a1' here, the file 'b2'" in said[0][1]
    assert "reads 'b2' here, the file 'a1'" in said[1][1]
