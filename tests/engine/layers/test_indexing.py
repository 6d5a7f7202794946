"""Taking and replacing elements by tensors of indices, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
INDEX = np.array([[[2, 0, 1, 1], [0, 0, 2, 1]], [[1, 1, 1, 1], [2, 0, 0, 2]]])


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("[[1,0]]", X[[1, 0]]),
        ("[[1,0],[2,2]]", X[[1, 0], [2, 2]]),
        ("[None,None,[3,0,0]]", X[:, :, [3, 0, 0]]),
        ("[[True,False]]", X[[True, False]]),
        ("[[True,False],[False,True,True]]", X[[0, 0], [1, 2]]),
        ("[[0],[-1],[-1]]", X[[0], [-1], [-1]]),
        pytest.param(("[1", "0]", "[2", "2]"), X[[1, 0], [2, 2]], id="as a list of words"),
    ],
)
def test_index_by_constants(run, expr, expected):
    np.testing.assert_array_equal(run("Tensor.index", X, expr=expr), expected)


def test_index_by_operands(run):
    places = (None, np.array([2, 0]), np.array([3, 1]))
    np.testing.assert_array_equal(run("Tensor.index", X, places), X[:, [2, 0], [3, 1]])
    mask = X[0] > 5
    np.testing.assert_array_equal(run("Tensor.index", X, (None, mask)), X[:, mask])


@pytest.mark.parametrize("places", [(np.array([2]),), (np.array([0.5]),), (np.ones(3, bool),)])
def test_index_beyond(run, places):
    with pytest.raises((LayerError, IndexError)):
        run("Tensor.index", X, places)


def test_index_that_is_no_expression(run):
    with pytest.raises(ParameterError) as caught:
        run("Tensor.index", X, expr="[[1,0]")
    assert caught.value.parameter == "expr"


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(run, accumulate):
    places = (np.array([0, 1, 0]), np.array([2, 0, 2]))
    result = run("Tensor.index_put", X, places, np.array(5.0), accumulate=accumulate)
    expected = X.copy()
    for i, j in ((0, 2), (1, 0), (0, 2)):
        expected[i, j] = expected[i, j] + 5 if accumulate else 5
    np.testing.assert_array_equal(result, expected)
    by_parameter = run(
        "Tensor.index_put", X, places, names=("input", "indices"), values=5.0,
        accumulate=accumulate,
    )  # fmt: skip
    np.testing.assert_array_equal(by_parameter, expected)


def test_index_put_of_nothing(run):
    nowhere = (np.zeros(0, np.int64),)
    np.testing.assert_array_equal(run("Tensor.index_put", X, nowhere, np.array(1.0)), X)


def test_index_put_that_does_not_fit(run):
    with pytest.raises(LayerError):
        run("Tensor.index_put", X, (np.array([0, 1]),), np.zeros((3, 3, 4)))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_index_select(run, dim):
    places = np.array([1, 0, 1])
    expected = np.stack([np.take(X, p, dim) for p in places], dim if dim >= 0 else dim + 3)
    np.testing.assert_array_equal(run("torch.index_select", X, dim, places), expected)


def test_gather_and_scatter(run):
    gathered = run("torch.gather", X, INDEX, names=("input", "index"), dim=1)
    src = np.arange(100, 116, dtype=np.float32).reshape(INDEX.shape)
    added = run("torch.scatter_add", X, INDEX, src, names=("input", "index", "src"), dim=1)
    expected, total = np.empty(INDEX.shape), X.copy()
    for (i, j, k), place in np.ndenumerate(INDEX):
        expected[i, j, k] = X[i, place, k]
        total[i, place, k] += src[i, j, k]
    np.testing.assert_array_equal(gathered, expected)
    np.testing.assert_array_equal(added, total)


def test_scatter(run):
    index = np.array([[[0, 1, 2, 0]]])
    expected = X.copy()
    for k, place in enumerate([0, 1, 2, 0]):
        expected[0, place, k] = -k
    src = -np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    np.testing.assert_array_equal(run("torch.scatter", X, 1, index, src), expected)
    ones = run("torch.scatter", X, index, names=("input", "index"), dim=1, value=1)
    assert ones[0, 2, 2] == 1
    with pytest.raises(LayerError, match="reduce is 'xor'"):
        run("torch.scatter", X, 1, index, src, reduce="xor")


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("sum", True, [13, 25, 3]),
        ("sum", False, [12, 23, 3]),
        ("prod", True, [20, 720, 3]),
        ("prod", False, [20, 360, 3]),
        ("amax", True, [10, 12, 3]),
        ("amax", False, [10, 12, 3]),
        ("amin", True, [1, 2, 3]),
        ("amin", False, [2, 5, 3]),
        ("mean", True, [13 / 3, 25 / 4, 3]),
        ("mean", False, [6, 23 / 3, 3]),
    ],
)
def test_scatter_reduce(run, reduce, include_self, expected):
    x, src = np.array([1, 2, 3], np.float32), np.array([2, 6, 10, 12, 5], np.float32)
    index = np.array([0, 1, 0, 1, 1])
    result = run("torch.scatter_reduce", x, 0, index, src, reduce, include_self=include_self)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("operator_type", "index"),
    [
        ("torch.gather", np.zeros((3, 1, 1), np.int64)),
        ("torch.gather", np.zeros((1, 1), np.int64)),
        ("torch.gather", np.zeros((1, 1, 1))),
        ("torch.scatter_add", np.zeros((2, 2, 5), np.int64)),
    ],
)
def test_an_index_that_does_not_fit(run, operator_type, index):
    more = () if operator_type == "torch.gather" else (X,)
    with pytest.raises(LayerError):
        run(operator_type, X, 1, index, *more)


def test_places_of_a_dimension(run):
    places, row = np.array([1, 1]), np.full((2, 2, 4), 10, np.float32)
    added = run("torch.index_add", X, 1, places, row, alpha=0.5)
    np.testing.assert_array_equal(added[:, 1], X[:, 1] + 10)
    np.testing.assert_array_equal(added[:, 0], X[:, 0])
    filled = run("torch.index_fill", X, -1, np.array([0]), 7)
    np.testing.assert_array_equal(filled[..., 0], np.full((2, 3), 7))


def test_take(run):
    assert run("torch.take", X, np.array([[0, 23], [-1, 5]])).tolist() == [[0, 23], [23, 5]]
    along = run("torch.take_along_dim", X[0], np.array([[1, 0, 2, 1]]), dim=0)
    assert along.tolist() == [[4, 1, 10, 7]]


def test_places_of_a_tensor_without_dimensions(run):
    x, first = np.array(2, np.float32), np.array([0])
    assert run("torch.index_add", x, 0, first, np.array([5.0], np.float32), -1).item() == -3
    assert run("torch.index_fill", x, 0, first, 7).item() == 7
    assert x.item() == 2


def test_gather_by_no_indices(run):
    result = run("torch.gather", np.ones(4), 0, np.zeros((2, 0), int))
    assert (result.shape, result.dtype) == ((2, 0), np.float64)


def test_scatter_reduce_as_torchscript_calls_it(run):
    x, index, src = np.array([1, 2]), np.array([0, 0, 1]), np.array([5, 3, 1])
    assert run("aten::scatter_reduce", x, 0, index, src, "amax", True).tolist() == [5, 2]
    assert run("aten::scatter_reduce", x, 0, index, src, "sum", False).tolist() == [8, 1]


def test_index_copy(run):
    x, places = np.zeros((2, 3)), np.array([2, 0])
    result = run("torch.index_copy", x, 1, places, np.array([[1.0, 2], [3, 4]]))
    assert result.tolist() == [[2, 0, 1], [4, 0, 3]]


@pytest.mark.parametrize(
    ("reduce", "include_self", "expected"),
    [
        ("prod", True, [[2, 2], [90, 120]]),
        ("prod", False, [[2, 2], [45, 60]]),
        ("mean", True, [[2, 2], [16 / 3, 6]]),
        ("mean", False, [[2, 2], [7, 8]]),
        ("amax", True, [[2, 2], [9, 10]]),
        ("amin", True, [[2, 2], [2, 2]]),
        ("amin", False, [[2, 2], [5, 6]]),
    ],
)
def test_index_reduce(run, reduce, include_self, expected):
    x, source = np.full((2, 2), 2.0), np.array([[5.0, 6], [9, 10]])
    result = run("aten::index_reduce", x, 0, np.array([1, 1]), source, reduce, include_self)
    np.testing.assert_allclose(result, expected)


def test_put(run):
    x = np.arange(6).reshape(2, 3)
    places, values = np.array([-1, 1, 1]), np.array([7, 8, 9])
    assert run("torch.put", x, places, values).tolist() == [[0, 9, 2], [3, 4, 7]]
    added = run("torch.put", x, places, values, accumulate=True)
    assert added.tolist() == [[0, 18, 2], [3, 4, 12]]
    with pytest.raises(LayerError, match="3 places do not take 2 elements"):
        run("torch.put", x, places, values[:2])


def test_bytes_are_taken_away(run):
    x, source = np.array([5, 1], np.uint8), np.array([2, 1], np.uint8)
    result = run("aten::index_add", x, 0, np.array([0, 0]), source, -1)
    np.testing.assert_array_equal(result, np.array([2, 1], np.uint8), strict=True)


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [("amax", [True, False]), ("amin", [False, False]), ("prod", [False, False])],
)
def test_bools_are_joined(run, reduce, expected):
    x, index = np.array([False, True]), np.array([0, 0, 1])
    source = np.array([True, False, False])
    assert run("aten::scatter_reduce", x, 0, index, source, reduce, False).tolist() == expected


def expected_places(x, lists):
    """``x[lists]`` by a loop, for lists of integers that come first."""
    lists = np.broadcast_arrays(*lists)
    result = np.empty(lists[0].shape + x.shape[len(lists) :], x.dtype)
    for place in np.ndindex(lists[0].shape):
        result[place] = x[tuple(int(each[place]) for each in lists)]
    return result


@pytest.mark.parametrize("count", [1, 1000, 1001, 4096])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_an_operand_of_indices_is_used_as_it_is(run, count, dtype):
    """It was written as text, which NumPy cuts above 1000 elements, and read again."""
    rng = np.random.default_rng(count)
    table = rng.standard_normal((50, 3)).astype(np.float32)
    places = rng.integers(-50, 50, count).astype(dtype)
    result = run("Tensor.index", table, (places,), names=("input", "expr"))
    np.testing.assert_array_equal(result, expected_places(table, [places]))
    grid = places.reshape(-1, 1)
    result = run("Tensor.index", table, (grid, places[:3] % 3), names=("input", "expr"))
    np.testing.assert_array_equal(result, expected_places(table, [grid, places[:3] % 3]))


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_an_operand_of_a_mask_is_used_as_it_is(run, dtype):
    table = np.arange(3600).reshape(60, 60)
    mask = table % 7 == 3
    result = run("Tensor.index", table, (mask.astype(dtype),), names=("input", "expr"))
    assert result.tolist() == list(range(3, 3600, 7))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ((np.array([0, 2]),), "index 2 is out of bounds for axis 0 with size 2"),
        ((None, np.array([[-4]])), "index -4 is out of bounds for axis 1 with size 3"),
        ((np.array([0]), np.array([3])), "index 3 is out of bounds for axis 1 with size 3"),
        ((np.ones((2, 4), bool),), "size of axis is 3 but size of corresponding boolean"),
        ((np.zeros(1, int),) * 4, "too many indices"),
    ],
)
def test_what_is_not_there_is_named(run, places, said):
    with pytest.raises(IndexError, match=said):
        run("Tensor.index", X, places, names=("input", "expr"))


def test_a_view_is_indexed_without_a_copy_of_it(run):
    spread = np.broadcast_to(np.arange(3.0), (1 << 40, 3))  # 24 TiB, were it copied
    call = OperatorCall("op", "Tensor.index", {}, input_names=("input", "expr"))
    result = build_layer(call).forward(spread, (np.array([5, 1 << 39]),))
    assert result.tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("expr", "shape", "expected"),
    [
        ("[[1,0]]", (2, 1, 3, 4), X[[[1], [0]]]),
        ("[None,None,[3,0,0,1]]", (2, 3, 2, 2), X[:, :, [[3, 0], [0, 1]]]),
        ("[[1,0]]", (2, 3, 4), X[[1, 0]]),
        ("[[1,0]]", (None, None, None), X[[1, 0]]),
    ],
)
def test_constant_indices_get_their_dimensions_back(expr, shape, expected):
    """pnnx writes a tensor of constants as if it had one dimension."""
    call = OperatorCall(
        "op", "Tensor.index", {"expr": expr}, input_names=("",), output_shapes=(shape,)
    )
    np.testing.assert_array_equal(build_layer(call).forward(X), expected)


@pytest.mark.parametrize("shape", [(1, 1, 2, 3), (1, 1, 1, 2, 3)])
def test_ranges_of_which_the_exporter_kept_the_start(shape):
    """Masks of transformers are indexed by ranges of all positions."""
    call = OperatorCall(
        "op", "Tensor.index", {"expr": "[[0],[0]]"}, input_names=("",), output_shapes=(shape,)
    )
    mask = X[:, :, 0]
    found = build_layer(call).forward(mask)
    np.testing.assert_array_equal(found, mask.reshape(shape))
    assert not np.shares_memory(found, mask)


@pytest.mark.parametrize(
    ("expr", "shape"),
    [
        ("[[0],[0],[1]]", (1, 2, 3, 4)),  # no ranges of all positions
        ("[[0],[0],[0]]", (1, 4, 3, 2)),
        ("[[0,1]]", (2, 2, 3, 4)),  # of [[0, 1], [1, 0]]
        ("[[0,1],[0]]", (2, 3, 4)),  # of [[0], [1]] and [[0, 1, 2]]
        ("[[True,False]]", (3, 4)),  # of a mask of 2 x 3
        ("[[0,1]]", (None, 2, 3, 4)),
    ],
)
def test_constant_indices_that_the_exporter_cut(expr, shape):
    call = OperatorCall(
        "op", "Tensor.index", {"expr": expr}, input_names=("",), output_shapes=(shape,)
    )
    with pytest.raises(LayerError, match=r"the exporter wrote a part of a table of several"):
        build_layer(call).forward(X)


@pytest.mark.parametrize("shape", [(6, 5, 4), (6, 1, 4), (600, 7, 5)])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_many_are_joined_in_order(run, shape, dim):
    """Above the number of elements whose positions are worked out at once, too."""
    rng = np.random.default_rng(dim)
    x = rng.integers(-9, 9, shape)
    source = rng.integers(-9, 9, tuple(n * 20 if d == dim else n for d, n in enumerate(shape)))
    index = rng.integers(-shape[dim], shape[dim], source.shape)
    line = rng.integers(-shape[dim], shape[dim], source.shape[dim])
    added, largest, rows = x.copy(), x.copy(), x.copy()
    for place in np.ndindex(source.shape):
        to, row = (
            (*place[:dim], int(p), *place[dim + 1 :]) for p in (index[place], line[place[dim]])
        )
        added[to] += source[place]
        largest[to] = max(largest[to], source[place])
        rows[row] += source[place]
    summed = run("torch.scatter_reduce", x, dim, index, source, "sum")
    np.testing.assert_array_equal(summed, added)
    np.testing.assert_array_equal(
        run("torch.scatter_reduce", x, dim, index, source, "amax"), largest
    )
    np.testing.assert_array_equal(run("torch.index_add", x, dim, line, source), rows)


def test_rows_are_added_by_several_lists(run):
    rng = np.random.default_rng(0)
    x, values = rng.integers(0, 9, (4, 5, 3)), rng.integers(0, 9, (40, 3))
    first, second = rng.integers(-4, 4, 40), rng.integers(-5, 5, 40)
    expected = x.copy()
    for i, j, value in zip(first, second, values, strict=True):
        expected[i, j] += value
    result = run("Tensor.index_put", x, (first, second), values, accumulate=True)
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(LayerError, match="index 5 is not in dim 1 of size 5"):
        run("Tensor.index_put", x, (first, second * 0 + 5), values, accumulate=True)
    with pytest.raises(LayerError, match="4 lists of indices are too many for 3 dimensions"):
        run("Tensor.index_put", x, (first,) * 4, np.array(1), accumulate=True)


def test_a_source_that_does_not_fit_its_places(run):
    with pytest.raises(LayerError, match="2 indices of dim 1 take a source of 2×2×4, not"):
        run("torch.index_add", X, 1, np.array([0, 1]), np.ones((2, 3, 4), np.float32))


@pytest.mark.parametrize("operator_type", ["torch.gather", "torch.scatter_add"])
@pytest.mark.parametrize("place", [3, -4])
def test_an_index_beyond_the_dimension_is_named(run, operator_type, place):
    more = () if operator_type == "torch.gather" else (X,)
    with pytest.raises(LayerError, match=f"index {place} is not in dim 1 of size 3"):
        run(operator_type, X, 1, np.full((1, 1, 1), place), *more)
