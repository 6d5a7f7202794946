"""Terms of elements that indices and boxes lead to, of cells, and of weights of keys."""

from __future__ import annotations

import numpy as np
import pytest
from provenance.campaign import Findings, try_operator

import engine
from engine.provenance.backward import go_back
from engine.provenance.call import Call
from engine.provenance.records import Kind

_DTYPES = {"f": "f32", "i": "i64"}
ENDS = np.array([2, 2, 5])  # of three groups; the second one is empty
RNG = np.random.default_rng(11)


@pytest.fixture
def run(make_pair):
    """Run one operator on arrays, by a line with ``{}`` for its operands."""

    def run(line, arrays, weights=None, outputs="y"):
        kind, _, arguments = line.partition(" ")
        names = [f"x{at}" for at in range(len(arrays))]
        texts = [
            f"pnnx.Input in{at} 0 1 x{at} "
            f"#x{at}=({','.join(map(str, each.shape))}){_DTYPES[each.dtype.kind]}"
            for at, each in enumerate(arrays)
        ]
        given = weights or {}
        attributes = " ".join(
            f"@{name}=({','.join(map(str, each.shape))})f32" for name, each in given.items()
        )
        count = len(outputs.split())
        path = make_pair(
            *texts,
            f"{kind} op {len(arrays)} {count} {' '.join(names)} {outputs} "
            f"{arguments} {attributes}",
            f"pnnx.Output out {count} 0 {outputs}",
            weights={f"op.{name}": each for name, each in given.items()},
        )
        session = engine.Session(engine.load(path), "numpy")
        session.feed(arrays)
        session.run()
        return session

    return run


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def check(session, elements=12):
    """Terms agree with the engine, and noise outside of the regions changes nothing."""
    findings, rng = Findings(), np.random.default_rng(3)
    try_operator("op", session, session.graph.operator("op"), findings, rng, elements)
    assert findings.wrong == []
    assert findings.unexplained.total() == 0
    assert findings.explained >= elements


def terms_of(session, index, operand="y"):
    """Return the products by the index of their first factor, and the breakdown."""
    found = engine.explain_element(session, operand, index)
    terms = found.breakdown.terms
    places = [tuple(each) for each in terms.factors[0].indices.tolist()]
    return dict(zip(places, terms.products.tolist(), strict=True)), found.breakdown


def test_added_elements_by_their_own_indices(run):
    x, source = floats(3, 4), floats(3, 6)
    index = np.array([[0, 1, 1, 3, 3, 3], [2, 2, 2, 2, 2, 0], [1, 0, 3, 0, 1, 0]])
    line = "torch.scatter_add dim=1 $input=x0 $index=x1 $src=x2"
    session = run(line, [x, index, source])
    check(session)
    terms, found = terms_of(session, (0, 3))
    assert terms == {(0, at): float(source[0, at]) for at in (3, 4, 5)}
    assert (found.offset, found.offset_name) == (float(x[0, 3]), "x0[0, 3]")
    terms, _ = terms_of(session, (0, 2))
    assert terms == {}


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("keeps", [True, False])
def test_elements_that_are_combined(run, reduce, keeps):
    index = np.array([[0, 1, 1], [2, 2, 0]])
    line = (
        f"torch.scatter_reduce dim=0 reduce={reduce} include_self={keeps} "
        "$input=x0 $index=x1 $src=x2"
    )
    check(run(line, [floats(3, 4), index, floats(2, 3)]))


def test_added_slices(run):
    x, source = floats(2, 4, 3), floats(2, 5, 3)
    session = run(
        "torch.index_add dim=1 alpha=0.5 $input=x0 $index=x1 $source=x2",
        [x, np.array([3, 0, 3, 3, 1]), source],
    )
    check(session)
    terms, found = terms_of(session, (1, 3, 2))
    assert terms == {(1, at, 2): float(source[1, at, 2]) * 0.5 for at in (0, 2, 3)}
    assert found.offset == float(x[1, 3, 2])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(run, mode):
    table = floats(7, 3)
    session = run(
        f"nn.EmbeddingBag mode={mode} embedding_dim=3 num_embeddings=7",
        [np.array([[0, 3, 3], [6, 1, 2]])],
        {"weight": table},
    )
    check(session)
    found = engine.explain_element(session, "y", (0, 1)).breakdown
    assert found.terms.factors[0].indices.tolist() == [[0, 1], [3, 1], [3, 1]]
    column = table[[0, 3, 3], 1].astype(np.float64)
    expected = {"sum": column.sum(), "mean": column.mean(), "max": column.max()}
    assert found.total == pytest.approx(expected[mode])


def test_bags_with_offsets_factors_and_padding(run):
    table, factors = floats(5, 2), floats(6)
    session = run(
        "F.embedding_bag mode=sum padding_idx=4 $input=x0 $weight=x1 $offsets=x2 "
        "$per_sample_weights=x3",
        [np.array([1, 4, 2, 0, 0, 3]), table, np.array([0, 3, 3]), factors],
    )
    check(session)
    terms, _ = terms_of(session, (2, 1))
    expected = {}
    for at, row in ((3, 0), (4, 0), (5, 3)):
        expected[row, 1] = float(factors[at]) * float(table[row, 1])
    assert terms.keys() == expected.keys()
    assert engine.explain_element(session, "y", (1, 0)).value == 0  # an empty bag
    assert engine.receptive_field(session, "y", (0, 1)).guessed == ()


@pytest.mark.parametrize(("ratio", "aligned"), [(2, True), (-1, False), (3, False)])
def test_parts_of_boxes(run, ratio, aligned):
    image = floats(2, 3, 9, 8)
    boxes = np.array(
        [[0, 1.3, 2.1, 9.7, 12.4], [1, -3, -2.5, 6, 7], [1, 3, 3, 15, 17]], np.float32
    )
    session = run(
        f"torchvision.ops.RoIAlign output_size=(3,2) spatial_scale=0.5 sampling_ratio={ratio} "
        f"aligned={aligned}",
        [image, boxes],
    )
    check(session)
    part = engine.explain_element(session, "y", (1, 2, 1, 0)).breakdown
    assert {tuple(each) for each in part.terms.factors[0].indices[:, :2].tolist()} == {(1, 2)}
    assert engine.receptive_field(session, "y", (1, 2, 1, 0)).guessed == ()


def test_slopes_of_pixels_in_a_box(run):
    """The mean of samples is linear in the pixels: images of one pixel show the slopes."""
    boxes = np.array([[0, 1.3, 2.1, 4.7, 5.4], [0, -3, -2.5, 3, 4]], np.float32)
    session = run(
        "torchvision.ops.RoIAlign output_size=(2,2) sampling_ratio=2 aligned=True",
        [floats(1, 2, 6, 6), boxes],
    )
    operator = session.graph.operator("op")
    gradient = np.zeros((2, 2, 2, 2))
    gradient[1, 1, 0, 1], gradient[0, 0, 1, 0] = 1.0, 2.0
    back = go_back(Call.of(session, operator, 0), gradient)
    assert set(back) == {"x0"}
    for place in np.ndindex(1, 2, 6, 6):
        pixel = np.zeros((1, 2, 6, 6))
        pixel[place] = 1
        (result,) = operator.forward([pixel, boxes])
        slope = result[1, 1, 0, 1] + 2 * result[0, 0, 1, 0]
        assert back["x0"][place] == pytest.approx(slope, abs=1e-12)


def test_a_constant_image_shares_all_of_its_weight(run):
    boxes = np.array([[0, 1.2, 2.3, 5.9, 6.1]], np.float32)
    session = run(
        "torchvision.ops.RoIAlign output_size=(2,2) sampling_ratio=2 aligned=True",
        [np.ones((1, 1, 8, 8), np.float32), boxes],
    )
    found = engine.explain_element(session, "y", (0, 0, 1, 1)).breakdown
    assert found.terms.factors[1].values.sum() == pytest.approx(1)


_CELLS = {"nn.RNNCell": 1, "nn.GRUCell": 3, "nn.LSTMCell": 4}


@pytest.mark.parametrize("kind", _CELLS)
@pytest.mark.parametrize("starts", [True, False])
def test_cells(run, kind, starts):
    torch = pytest.importorskip("torch")
    gates, count = _CELLS[kind], 2 if kind == "nn.LSTMCell" else 1
    weights = {
        "weight_ih": floats(gates * 3, 4), "weight_hh": floats(gates * 3, 3),
        "bias_ih": floats(gates * 3), "bias_hh": floats(gates * 3),
    }  # fmt: skip
    states = [floats(2, 3) for _ in range(count)] if starts else []
    names = " ".join(
        f"${n}=x{at}" for at, n in enumerate(["input", "hx", "cx"][: 1 + len(states)])
    )
    outputs = "y c" if count == 2 else "y"
    session = run(
        f"{kind} input_size=4 hidden_size=3 bias=True {names}", [floats(2, 4), *states],
        weights, outputs,
    )  # fmt: skip
    check(session)
    found = engine.explain_element(session, "y", (1, 2))
    assert found.kind is Kind.GATES
    cell = getattr(torch.nn, kind.removeprefix("nn."))(4, 3)
    cell.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    given = [torch.from_numpy(session.value(f"x{at}").copy()) for at in range(1 + len(states))]
    with torch.no_grad():
        result = cell.double()(
            given[0].double(),
            (tuple if count == 2 else lambda each: each[0])([g.double() for g in given[1:]])
            if states else None,
        )  # fmt: skip
    expected = (result[0] if count == 2 else result)[1, 2].item()
    assert found.breakdown.total == pytest.approx(expected, abs=1e-9)
    assert engine.receptive_field(session, "y", (1, 2)).guessed == ()
    assert [each.slices[0] for each in found.sources] == [slice(1, 2)] * (1 + len(states))


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("extra", [False, True])
def test_weights_of_keys(run, average, first, extra):
    torch = pytest.importorskip("torch")
    weights = {
        "in_proj_weight": floats(12, 4) / 2, "in_proj_bias": floats(12),
        "out_proj.weight": floats(4, 4), "out_proj.bias": floats(4),
    }  # fmt: skip
    x = floats(2, 5, 4)
    session = run(
        f"nn.MultiheadAttention num_heads=2 embed_dim=4 batch_first={first} bias=True "
        f"average_attn_weights={average} add_zero_attn={extra}",
        [x], weights, "y w",
    )  # fmt: skip
    check(session)
    module = torch.nn.MultiheadAttention(4, 2, batch_first=first, add_zero_attn=extra)
    module.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    with torch.no_grad():
        given = torch.from_numpy(x).double()
        _, expected = module.double()(given, given, given, average_attn_weights=average)
    shape = session.value("w").shape
    for _ in range(5):
        index = tuple(int(RNG.integers(size)) for size in shape)
        found = engine.explain_element(session, "w", index)
        assert found.kind is (Kind.SUM if average else Kind.SHARE)
        assert found.breakdown.total == pytest.approx(expected[index].item(), abs=1e-9)


UNPACKED = (
    "pnnx.Input in 0 1 x #x=(1,2,4,6)f32",
    "nn.AdaptiveMaxPool2d pool 1 1 x p output_size=(2,3) return_indices=True",
    "prim::TupleUnpack op 1 2 p y z #y=(1,2,2,3)f32 #z=(1,2,2,3)i64",
    "F.relu after 1 1 y w #w=(1,2,2,3)f32",
    "pnnx.Output out 2 0 w z",
)


def test_members_of_a_tuple_come_from_its_operator(make_pair):
    """pnnx leaves results of a pooling in a tuple, which the next operator unpacks."""
    session = engine.Session(engine.load(make_pair(*UNPACKED)), "numpy")
    x = floats(1, 2, 4, 6)
    session.feed([x])
    session.run()
    check(session)
    window = x[0, 1, 2:4, 2:4]
    row, column = np.unravel_index(window.argmax(), (2, 2))
    found = engine.explain_element(session, "y", (0, 1, 1, 1))
    assert (found.kind, found.value) == (Kind.CHOICE, float(window.max()))
    assert found.breakdown.terms.factors[0].indices.tolist() == [
        [0, 1, 2 + r, 2 + c] for r in range(2) for c in range(2)
    ]
    position = engine.explain_element(session, "z", (0, 1, 1, 1))
    assert position.breakdown.total == position.value == (2 + row) * 6 + 2 + column
    field = engine.receptive_field(session, "w", (0, 1, 1, 1))
    assert field.guessed == ()
    assert field.inputs[0].slices == (slice(0, 1), slice(1, 2), slice(2, 4), slice(2, 4))
    expected = np.zeros(x.shape)
    expected[0, 1, 2 + row, 2 + column] = window.max() > 0
    weight = engine.effective_weight(session, "w", (0, 1, 1, 1), "x")
    np.testing.assert_array_equal(weight.gradient, expected)


def test_members_that_were_packed_before(make_pair):
    lines = (
        "pnnx.Input in 0 1 x #x=(2,3)f32",
        "F.relu one 1 1 x a #a=(2,3)f32",
        "torch.split two 1 1 x s split_size_or_sections=1 dim=0 $tensor=x",
        "prim::TupleConstruct pack 2 1 a s t",
        "prim::TupleUnpack first 1 2 t b c #b=(2,3)f32",
        "prim::TupleUnpack op 1 2 s d e #d=(1,3)f32 #e=(1,3)f32",
        "pnnx.Output out 3 0 b d e",
    )
    session = engine.Session(engine.load(make_pair(*lines)), "numpy")
    session.feed([floats(2, 3)])
    session.run()
    x = session.value("x")
    found = engine.explain_element(session, "b", (1, 2))
    assert (found.value, found.kind) == (max(x[1, 2], 0), Kind.FUNCTION)
    assert found.breakdown.terms.factors[0].indices.tolist() == [[1, 2]]
    found = engine.explain_element(session, "e", (0, 2))
    assert (found.value, found.kind) == (x[1, 2], Kind.MOVE)
    assert found.breakdown.terms.factors[0].indices.tolist() == [[1, 2]]


@pytest.mark.parametrize("accumulate", [True, False])
def test_values_that_are_put_at_indices(make_pair, accumulate):
    lines = (
        "pnnx.Input in0 0 1 x #x=(3,4)f32",
        "pnnx.Input in1 0 1 r #r=(4)i64",
        "pnnx.Input in2 0 1 c #c=(4)i64",
        "pnnx.Input in3 0 1 v #v=(4)f32",
        "pnnx.Expression list 2 1 r c i expr=[@0,@1]",
        (
            f"Tensor.index_put op 3 1 x i v y accumulate={accumulate} "
            "$input=x $indices=i $values=v #y=(3,4)f32"
        ),
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(make_pair(*lines)), "numpy")
    x, values = floats(3, 4), floats(4)
    session.feed([x, np.array([2, 0, 2, 2]), np.array([1, 3, -3, 0]), values])
    session.run()
    check(session)
    found = engine.explain_element(session, "y", (2, 1)).breakdown
    weight = engine.effective_weight(session, "y", (2, 1), "v").gradient
    if accumulate:
        assert terms_of(session, (2, 1))[0] == {(0,): values[0], (2,): values[2]}
        assert (found.offset, found.offset_name) == (float(x[2, 1]), "x[2, 1]")
        assert weight.tolist() == [1, 0, 1, 0]
        field = engine.receptive_field(session, "y", (2, 1)).inputs[0]
        assert field.slices == (slice(2, 3), slice(1, 2))
        assert engine.explain_element(session, "y", (1, 1)).breakdown.total == x[1, 1]
    else:
        assert terms_of(session, (2, 1))[0] == {(2,): values[2]}
        assert weight.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("line", "shapes"),
    [
        ("torch.index_add dim=1 alpha=0.5 $input=x0 $index=x1 $source=x2",
         [(2, 4, 3), (5,), (2, 5, 3)]),
        ("torch.scatter_add dim=1 $input=x0 $index=x1 $src=x2", [(3, 4), (2, 6), (2, 6)]),
    ],
)  # fmt: skip
def test_slopes_of_added_elements_are_those_of_pytorch(run, line, shapes):
    torch = pytest.importorskip("torch")
    x, source = floats(*shapes[0]), floats(*shapes[2])
    numbers = RNG.integers(0, 4, shapes[1])
    session = run(line, [x, numbers, source])
    index = (1,) * (x.ndim - 1) + (2,)
    given = [torch.tensor(each, requires_grad=True) for each in (x, source)]
    if "index_add" in line:
        y = torch.index_add(given[0], 1, torch.tensor(numbers), given[1], alpha=0.5)
    else:
        y = torch.scatter_add(given[0], 1, torch.tensor(numbers), given[1])
    y[index].backward()
    for name, each in zip(("x0", "x2"), given, strict=True):
        weight = engine.effective_weight(session, "y", index, name).gradient
        np.testing.assert_allclose(weight, each.grad.numpy(), atol=1e-7)


def test_elements_that_are_read_by_strides(run):
    x = floats(4, 6)
    session = run("torch.as_strided size=(3,2,2) stride=(6,1,2) storage_offset=1", [x])
    check(session)
    found = engine.explain_element(session, "y", (2, 1, 1))
    assert found.kind is Kind.MOVE
    # 1 + 2 * 6 + 1 + 2 = 16
    assert found.breakdown.terms.factors[0].indices.tolist() == [[2, 4]]
    expected = np.zeros((4, 6))
    expected[2, 4] = 1
    weight = engine.effective_weight(session, "y", (2, 1, 1), "x0").gradient
    np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    ("left", "right", "is_split"),
    [
        ((6, 4), (3, 4, 5), True),
        ((3, 6, 4), (4, 7), True),
        ((3, 5), (5, 4), True),
        ((3, 2, 4), (3, 4, 5), False),
    ],
)
def test_products_in_groups(run, left, right, is_split):
    """Layers of experts: each token is multiplied by the matrix of its expert."""
    a, b = floats(*left), floats(*right)
    line = "aten::_grouped_mm $mat_a=x0 $mat_b=x1" + " $offs=x2" * is_split
    session = run(line, [a, b, ENDS] if is_split else [a, b])
    check(session)
    rows, columns = left[-2], right[-1]
    groups = [range(2), range(0), range(2, 5)]
    for index in np.ndindex(session.value("y").shape):
        row, column = index[-2:]
        if len(left) == len(right) == 3:
            pairs = [(a[index[0], row, k], b[index[0], k, column]) for k in range(4)]
        elif len(left) == len(right):
            pairs = [(a[row, k], b[k, column]) for k in groups[index[0]]]
        elif len(left) == 2:
            own = [g for g in range(3) if row in groups[g]]
            pairs = [(a[row, k], b[g, k, column]) for g in own for k in range(4)]
        else:
            own = [g for g in range(3) if column in groups[g]]
            pairs = [(a[g, row, k], b[k, column]) for g in own for k in range(4)]
        found = engine.explain_element(session, "y", index).breakdown
        products = [float(one) * float(other) for one, other in pairs]
        np.testing.assert_allclose(found.terms.products, products)
        assert found.total == pytest.approx(sum(products))
    assert (rows, columns) == session.value("y").shape[-2:]
    index = tuple([0] * session.value("y").ndim)
    slopes = engine.effective_weight(session, "y", index, "x0").gradient
    terms = engine.explain_element(session, "y", index).breakdown.terms
    assert np.count_nonzero(slopes) == len(terms.products)
    for place, value in zip(terms.factors[0].indices, terms.factors[1].values, strict=True):
        assert slopes[tuple(place)] == value


@pytest.mark.parametrize(
    ("line", "index", "part", "name"),
    [
        ("torch.real", (1, 2), 0, "Re c"),
        ("torch.imag", (1, 2), 1, "Im c"),
        ("torch.view_as_real", (1, 2, 1), 1, "Im c"),
    ],
)
def test_parts_of_complex_numbers(make_pair, line, index, part, name):
    lines = (
        "pnnx.Input in0 0 1 a #a=(2,3)f32",
        "pnnx.Input in1 0 1 b #b=(2,3)f32",
        "torch.complex join 2 1 a b c $real=a $imag=b #c=(2,3)c64",
        f"{line} op 1 1 c y $input=c",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(make_pair(*lines)), "numpy")
    given = floats(2, 3), floats(2, 3)
    session.feed(given)
    session.run()
    check(session)
    found = engine.explain_element(session, "y", index)
    assert (found.kind, found.value) == (Kind.MOVE, float(given[part][1, 2]))
    assert found.breakdown.formula == f"y{list(index)} = {name}[1, 2]"
    field = engine.receptive_field(session, "y", index)
    assert [each.slices for each in field.inputs] == [(slice(1, 2), slice(2, 3))] * 2
