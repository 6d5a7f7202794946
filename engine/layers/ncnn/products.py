"""Products of matrices: fully connected layers, attention, embeddings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.arguments import require_products
from engine.layers.einsum import einsum as torch_einsum
from engine.layers.layer import Ints, Layer, NotInNumpyError, OperatorCall, Outputs
from engine.layers.matmul import matmul as torch_matmul
from engine.layers.ncnn.activations import activate, check_activation
from engine.layers.ncnn.normalization import to_int8
from engine.layers.ncnn.table import layer, require_weights
from engine.layers.windows import ready
from engine.memory_bound import require_memory
from engine.ncnn.types import Params
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLOAT: Final = np.dtype(np.float32)


def _fail(what: str, *shapes: Sequence[int]) -> LayerError:
    return LayerError(f"{what}: {describe_shapes([tuple(shape) for shape in shapes])}")


@layer("InnerProduct")
class InnerProduct(Layer):
    """Multiply by a matrix, add a bias and apply an activation.

    If the input is a matrix with rows as long as the weight's, each row is multiplied. Any
    other input counts as one vector. With `int8_scale_term` input and weight are rounded to
    int8 by their scales.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        self.activation = params.integer("activation_type"), params.array("activation_params")
        check_activation(*self.activation)
        require_weights(call)
        self.weight = call.attributes["weight"]
        self.bias = call.attributes.get("bias")
        self.int8 = bool(params.integer("int8_scale_term"))
        none = np.ones(1, np.float32)
        self._scales = call.attributes.get("weight_int8_scales", none)
        self._input_scale = call.attributes.get("bottom_int8_scales", none)

    def require_shapes(self, *shapes: tuple[int, ...]) -> None:
        """Check the operands' shapes."""
        (shape,) = shapes
        outputs, inputs = self.weight.shape
        if not self.is_rows(shape) and math.prod(shape) != inputs:
            raise _fail(f"the input does not have {inputs} numbers", shape)
        require_products(math.prod(shape) * outputs)

    def is_rows(self, shape: tuple[int, ...]) -> bool:
        """Return whether each row of an input is multiplied."""
        return len(shape) == 2 and shape[1] == self.weight.shape[1]

    @override
    def forward(self, input: Array) -> Array:
        self.require_shapes(input.shape)
        x = input if self.is_rows(input.shape) else input.reshape(1, -1)
        if self.int8:
            result = self._multiply_int8(x)
        else:
            result = np.matmul(x, ready(self.weight, _FLOAT).T)
        if self.bias is not None:
            result = result + self.bias
        result = activate(np.asarray(result), *self.activation)
        return result if self.is_rows(input.shape) else result.reshape(-1)

    def _multiply_int8(self, x: Array) -> Array:
        weight = self.weight
        if weight.dtype != np.int8:
            weight = to_int8(weight * self._scales[:, np.newaxis])
        whole = to_int8(x * self._input_scale[0]) if x.dtype != np.int8 else x
        sums = np.matmul(whole.astype(np.float64), weight.T.astype(np.float64))
        scales = np.asarray(self._scales * self._input_scale[0], np.float32)
        inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)
        return np.asarray(sums.astype(np.float32) * inverse)


@layer("Gemm")
class Gemm(Layer):
    """Compute ``alpha * (A @ B + beta * C)``, where each may be a weight.

    A is (M, K), or (K, M) with `transA`; B is (K, N), or (N, K) with `transB`. C is one number,
    (M,), (M, 1), (M, N) or (1, N). A C of shape (N,) counts as a row.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        if params.integer("quantize_term"):
            raise NotInNumpyError("NumPy has no code for a quantised Gemm; choose backend ncnn")
        self.alpha, self.beta = params.number("alpha", 1.0), params.number("beta", 1.0)
        self.swaps = bool(params.integer("transA")), bool(params.integer("transB"))
        self.weights = {name: call.attributes.get(name) for name in "ABC"}
        self.constant = {n: params.integer(f"constant{n}") == 1 for n in "ABC"}
        require_weights(call)
        self.form = params.integer("constant_broadcast_type_C")
        self.is_transposed = bool(params.integer("output_transpose"))
        self.has_middle = bool(params.integer("output_N1M"))

    def split(self, given: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Return A, B and C from operands and weights; None for no C."""
        left = list(given)
        found = [
            self.weights[name] if self.constant[name] else left.pop(0) if left else None
            for name in "AB"
        ]
        c = self.weights["C"] if self.constant["C"] else left.pop(0) if left else None
        if left or found[0] is None or found[1] is None:
            raise LayerError(f"{len(given)} operands do not fit the parameters")
        return found[0], found[1], c

    def require_shapes(self, *shapes: tuple[int, ...]) -> None:
        """Check the operands' shapes."""
        stand_ins = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
        a, b, c = self.split(stand_ins)
        rows, depth, columns = self.sizes(a.shape, b.shape)
        self.reshape_c(c, rows, columns)
        require_products(rows * depth * columns)
        require_memory((rows, columns), _FLOAT)

    def sizes(self, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the numbers of rows, of products in a sum, and of columns."""
        pairs = []
        for shape, swapped in zip((a, b), self.swaps, strict=True):
            sides = (shape[0], shape[2]) if len(shape) == 3 and shape[1] == 1 else shape
            if len(sides) != 2:
                raise _fail("an operand is not a matrix", a, b)
            pairs.append(sides[::-1] if swapped else sides)
        (rows, depth), (other, columns) = pairs
        if depth != other:
            raise _fail("the matrices do not fit each other", a, b)
        return rows, depth, columns

    def reshape_c(self, c: Array | None, rows: int, columns: int) -> Array | None:
        """Bring C to two dimensions."""
        if c is None:
            return None
        if self.constant["C"]:
            shapes = ((1, 1), (rows, 1), (rows, 1), (rows, columns), (1, columns))
            shape = shapes[self.form]
        else:
            known = {(1,): (1, 1), (rows,): (rows, 1), (columns,): (1, columns)}
            shape = known.get(c.shape, c.shape)
        if c.size != math.prod(shape) or shape not in {
            (1, 1), (rows, 1), (rows, columns), (1, columns)
        }:  # fmt: skip
            raise _fail(f"C does not fit a result of {rows}×{columns}", c.shape)
        return c.reshape(shape)

    @override
    def forward(self, *inputs: Array) -> Array:
        a, b, c = self.split(inputs)
        rows, depth, columns = self.sizes(a.shape, b.shape)
        require_products(rows * depth * columns)
        left, right = (ready(array, _FLOAT).reshape(-1, array.shape[-1]) for array in (a, b))
        left, right = (
            array.T if swapped else array
            for array, swapped in zip((left, right), self.swaps, strict=True)
        )
        result = np.matmul(left, right)
        c = self.reshape_c(c, rows, columns)
        if c is not None:
            result = result + np.float32(self.beta) * c
        if self.alpha != 1:
            result = result * np.float32(self.alpha)
        if self.is_transposed:
            result = result.T
        if self.has_middle:
            result = result[:, np.newaxis]
        return np.ascontiguousarray(result)


@layer("MatMul")
def matmul(a: Array, b: Array, transB: int = 0) -> Array:  # noqa: N803 - ncnn's own name
    """Multiply matrices; leading axes are broadcast.

    Parameters
    ----------
    a : ndarray of shape (..., M, K) or (K,)
    b : ndarray of shape (..., K, N) or (K,); (..., N, K) with `transB`
    transB : int

    Returns
    -------
    ndarray of shape (..., M, N), (M,), (N,) or (1,)
    """
    right = np.swapaxes(b, -1, -2) if transB and b.ndim > 1 else b
    result = np.asarray(torch_matmul(a, right))
    return result if result.ndim else result.reshape(1)


@layer("Embed")
class Embed(Layer):
    """Take a row of a table for each index, and add a bias.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        require_weights(call)
        self.weight, self.bias = call.attributes["weight"], call.attributes.get("bias")
        self.has_scale = bool(params.integer("int8_scale_term"))
        self.scale = call.attributes.get("weight_int8_scale")

    @override
    def forward(self, input: Array) -> Array:
        indexes = input if input.dtype.kind in "iu" else input.view(np.int32)
        if indexes.size != indexes.shape[-1]:  # ncnn reads the first row only
            raise _fail("the indices are not a vector", input.shape)
        indexes = indexes.reshape(-1)
        require_memory((indexes.size, self.weight.shape[1]), _FLOAT)
        rows = self.weight[np.clip(indexes, 0, len(self.weight) - 1)].astype(np.float32)
        if self.has_scale and self.scale is not None and self.weight.dtype == np.int8:
            rows = rows / self.scale[0]
        return np.asarray(rows if self.bias is None else rows + self.bias)


def _attention(
    query: Array, key: Array, value: Array, scale: float, mask: Array | None
) -> Array:
    """Mix values by ``softmax(query @ key.T * scale + mask)``.

    Parameters
    ----------
    query : ndarray of shape (H, L, E)
    key, value : ndarray of shape (H, S, E) and (H, S, V)
    scale : float
    mask : ndarray of shape (L, S), (1, L, S) or (H, L, S), optional

    Returns
    -------
    ndarray of shape (H, L, V)
    """
    shape = (query.shape[0], query.shape[1], key.shape[1])
    if mask is not None:
        _require_mask(mask, shape)
    require_memory(shape, _FLOAT)
    scores = np.matmul(query, np.swapaxes(key, 1, 2)) * np.float32(scale)
    if mask is not None:
        scores = scores + mask
    scores -= scores.max(2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(2, keepdims=True)
    return np.asarray(np.matmul(scores, value))


def _require_mask(mask: Array, shape: tuple[int, int, int]) -> None:
    """Check that ncnn, which reads a float32 for each query and key, does not read beyond."""
    if mask.dtype == np.int8:
        raise _fail(
            "the mask is stored as bytes, from which ncnn would read float32, beyond its end",
            mask.shape,
        )
    if mask.shape not in {shape[1:], (1, *shape[1:]), shape}:
        raise _fail(
            f"the mask must be {describe_shapes([shape[1:]])}, or ncnn reads beyond its end; "
            "expand it in the model",
            mask.shape,
        )


@layer("MultiHeadAttention")
class MultiHeadAttention(Layer):
    """Attend with several heads: project, mix by matching, project back.

    Operands are query, key and value; equal ones are given once. With `attn_mask` a mask
    follows. With `kv_cache` the projected keys and values of earlier calls follow, and are
    returned extended.

    Parameters
    ----------
    **given
        Parameters and weights of ncnn.
    """

    def __init__(self, call: OperatorCall, **given: Any) -> None:
        params = Params(call.params)
        if params.integer("quantize_term"):
            raise NotInNumpyError(
                "NumPy has no code for quantised attention; choose the backend ncnn"
            )
        if params.integer("kv_cache"):
            raise NotInNumpyError(
                "NumPy has no code for attention with a cache; choose the backend ncnn"
            )
        embed, self.heads = params.size("embed_dim"), params.size("num_heads", 1)
        if embed % self.heads:
            raise ParameterError("num_heads", f"{self.heads} heads cannot divide {embed}")
        self.embed = embed
        self.scale = params.number("scale", 1 / math.sqrt(embed // self.heads))
        self.has_mask = bool(params.integer("attn_mask"))
        names = ("q", "k", "v", "out")
        require_weights(call)
        self.weights = {
            name: (call.attributes[f"{name}_weight"], call.attributes[f"{name}_bias"])
            for name in names
        }

    def split(self, given: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return query, key, value and mask from the operands."""
        operands = list(given)
        if len(operands) < 1 + self.has_mask or len(operands) > 3 + self.has_mask:
            raise LayerError(f"{len(operands)} operands do not fit the parameters")
        mask = operands.pop() if self.has_mask else None
        query, key = operands[0], operands[min(1, len(operands) - 1)]
        return query, key, operands[-1], mask

    def require_shapes(self, *shapes: tuple[int, ...]) -> None:
        """Check the operands' shapes."""
        query, key, value, mask = self.split(shapes)
        for name, shape in zip("qkv", (query, key, value), strict=True):
            weight = self.weights[name][0]
            if len(shape) != 2 or shape[1] != weight.shape[1]:
                raise _fail(f"operand {name} does not have {weight.shape[1]} columns", shape)
        if key[0] != value[0]:
            raise _fail("key and value have different lengths", key, value)
        wanted = (query[0], key[0])
        if mask is not None and mask not in {wanted, (self.heads, *wanted)}:
            raise _fail("the mask does not fit", mask)
        require_products(math.prod(wanted) * self.embed)
        require_memory((self.heads, *wanted), _FLOAT)

    def project(self, x: Array, name: str) -> Array:
        """Multiply by the weights of ``q``, ``k``, ``v`` or ``out``, and add their bias."""
        weight, bias = self.weights[name]
        return np.asarray(np.matmul(x, ready(weight, _FLOAT).T) + bias)

    @override
    def forward(self, *inputs: Array) -> Array:
        self.require_shapes(*(array.shape for array in inputs))
        query, key, value, mask = self.split(inputs)
        per_head = self.embed // self.heads
        heads = [
            self.project(x, name).reshape(len(x), self.heads, per_head).swapaxes(0, 1)
            for name, x in zip("qkv", (query, key, value), strict=True)
        ]
        mixed = _attention(heads[0], heads[1], heads[2], self.scale, mask)
        rows = mixed.swapaxes(0, 1).reshape(len(query), self.embed)
        return self.project(rows, "out")


@layer("SDPA")
class SDPA(Layer):
    """Mix values by matching queries with keys: ``softmax(q @ k.T * scale + mask) @ v``.

    Keys and values may have fewer heads, each for a group of queries. With `kv_cache` the keys
    and values of earlier calls are two more operands, and are returned extended.

    Parameters
    ----------
    attn_mask, kv_cache : int
        Whether there are such operands.
    scale : float
        0 for ``1 / sqrt(E)``.
    int8_scale_term : int
    """

    def __init__(
        self,
        attn_mask: int = 0,
        scale: float = 0.0,
        kv_cache: int = 0,
        int8_scale_term: int = 0,
    ) -> None:
        if int8_scale_term:
            raise NotInNumpyError(
                "NumPy has no code for quantised attention; choose the backend ncnn"
            )
        self.has_mask, self.has_cache = bool(attn_mask), bool(kv_cache)
        self.scale = scale

    @override
    def forward(self, *inputs: Array) -> Array | Outputs:
        wanted = 3 + self.has_mask + 2 * self.has_cache
        if len(inputs) != wanted or any(array.ndim not in {2, 3} for array in inputs):
            raise _fail(f"{wanted} operands with heads are needed", *(x.shape for x in inputs))
        query, key, value = (x if x.ndim == 3 else x[np.newaxis] for x in inputs[:3])
        mask = inputs[3] if self.has_mask else None
        if self.has_cache:
            past = inputs[-2:]
            if any(a.ndim != 3 or a.shape[::2] != b.shape[::2]
                   for a, b in zip(past, (key, value), strict=True)):  # fmt: skip
                raise _fail("the cache does not fit", *(array.shape for array in inputs))
            key, value = (
                np.concatenate(pair, 1) for pair in zip(past, (key, value), strict=True)
            )
        groups, rest = divmod(len(query), len(key))
        fits = key.shape[:2] == value.shape[:2] and query.shape[2] == key.shape[2]
        if rest or not groups or not fits:
            raise _fail("the operands do not fit", *(array.shape for array in inputs))
        scale = self.scale or 1 / math.sqrt(query.shape[2])
        keys, values = (np.repeat(array, groups, 0) for array in (key, value))
        result = _attention(query, keys, values, scale, mask)
        return Outputs([result, key, value]) if self.has_cache else result


@layer("RotaryEmbed")
def rotary_embed(input: Array, cosines: Array, sines: Array, interleaved: int = 0) -> Array:
    """Rotate pairs of features by angles of their position.

    Parameters
    ----------
    input : ndarray of shape (H, L, E), or (L, E)
    cosines, sines : ndarray of shape (L, E / 2) or (1, L, E / 2)
        With E columns the other half is for the second of the pairs, if these are halves.
    interleaved : int
        Whether the pairs are neighbours, instead of the halves of E.
    """
    if input.ndim not in {2, 3} or input.shape[-1] % 2:
        raise _fail("the operand has no pairs of features", input.shape)
    length, size = input.shape[-2:]
    half = size // 2
    for table in (cosines, sines):
        rows = table.shape[1:] if table.ndim == 3 else table.shape
        if len(rows) != 2 or rows[0] < length or rows[1] not in {half, size}:
            raise _fail(f"the angles are not of {length} positions", table.shape)
    if cosines.shape[-1] != sines.shape[-1]:
        raise _fail("there are more cosines than sines, or fewer", cosines.shape, sines.shape)
    second = slice(half, size) if cosines.shape[-1] == size and not interleaved else slice(half)
    cos, sin = (table.reshape(-1, table.shape[-1])[:length] for table in (cosines, sines))
    if interleaved:
        x, y = input[..., 0::2], input[..., 1::2]
    else:
        x, y = input[..., :half], input[..., half:]
    turned = (
        x * cos[:, :half] - y * sin[:, :half],
        x * sin[:, second] + y * cos[:, second],
    )
    if interleaved:
        return np.stack(turned, -1).reshape(input.shape)
    return np.concatenate(turned, -1)


@layer("Einsum")
class Einsum(Layer):
    """Multiply operands and sum over letters that the result lacks.

    Parameters
    ----------
    equation : tuple of int
        Characters: letters ``i`` to ``x``, one for an axis; those of the result ``i`` to ``l``.
        ``ii`` alone is the trace.
    """

    def __init__(self, equation: Ints | None = None) -> None:
        codes = (equation,) if isinstance(equation, int) else equation or ()
        if not all(0 < code < 128 for code in codes):
            raise ParameterError("equation", "it has characters that are no letters")
        self.equation = "".join(map(chr, codes))
        left, arrow, right = self.equation.partition("->")
        if self.equation != "ii" and not (
            arrow
            and set(left) <= set("ijklmnopqrstuvwx,")
            and set(right) <= set(left) & set("ijkl")
        ):
            raise ParameterError("equation", f"{self.equation!r} is none that ncnn computes")

    @override
    def forward(self, *inputs: Array) -> Array:
        result = np.asarray(torch_einsum(tuple(inputs), equation=self.equation))
        return result.reshape(1) if not result.ndim else result
