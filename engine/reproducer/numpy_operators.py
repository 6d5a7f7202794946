"""The common operators in plain NumPy, with the argument names of PyTorch.

`writing` pastes this text into ``check.py``, which so can compute without any other library.
It is written apart from the layers, so that a mistake of theirs shows.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

NUMPY_DTYPES = {
    "torch.float": "f4", "torch.float32": "f4", "torch.double": "f8", "torch.float64": "f8",
    "torch.half": "f2", "torch.float16": "f2", "torch.int": "i4", "torch.int32": "i4",
    "torch.long": "i8", "torch.int64": "i8", "torch.short": "i2", "torch.int16": "i2",
    "torch.int8": "i1", "torch.uint8": "u1", "torch.bool": "?",
}  # fmt: skip
PAD_MODES = {
    "zeros": "constant", "constant": "constant", "reflect": "reflect", "replicate": "edge",
    "circular": "wrap",
}  # fmt: skip


class Extremes(NamedTuple):
    """What max and min along a dimension return."""

    values: np.ndarray
    indices: np.ndarray


def each(value, count):
    """Return a value for each dimension."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def axes(dim):
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


# Convolution and pooling


def pad_ends(x, pairs, mode="constant", value=0):
    """Pad the last dimensions by (before, after); negative numbers remove elements."""
    first = x.ndim - len(pairs)
    grown = [(0, 0)] * first + [(max(a, 0), max(b, 0)) for a, b in pairs]
    fill = {"constant_values": value} if mode == "constant" else {}
    x = np.pad(x, grown, mode=mode, **fill)
    cut = [slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(pairs, x.shape[first:])]
    return x[(..., *cut)]


def met_by(place, sizes, stride, dilation):
    """Return the index of the elements that one place of a moving kernel meets."""
    steps = zip(place, sizes, stride, dilation)
    return (..., *(slice(p * d, p * d + (n - 1) * s + 1, s) for p, n, s, d in steps))


def convolution(
    count, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
    padding_mode="zeros", kernel_size=None,
):  # fmt: skip
    """Sum weight times input over the places of the kernel."""
    kernel = weight.shape[2:]
    stride, dilation = each(stride, count), each(dilation, count)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
    if padding == "valid":
        padding = 0
    if padding == "same":
        pairs = [(r // 2, r - r // 2) for r in reach]
    else:
        pairs = [(p, p) for p in each(padding, count)]
    x = pad_ends(input, pairs, PAD_MODES[padding_mode])
    sizes = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[-count:], reach, stride)]
    before = x.shape[: -count - 1]
    split = weight.reshape(groups, -1, *weight.shape[1:])  # groups, out, in, *kernel
    result = 0
    for place in np.ndindex(*kernel):
        part = x[met_by(place, sizes, stride, dilation)]
        part = part.reshape(*before, groups, split.shape[2], -1)
        result = result + split[(..., *place)] @ part
    result = result.reshape(*before, len(weight), *sizes)
    return result if bias is None else result + bias.reshape(-1, *[1] * count)


def transposed_convolution(
    count, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1,
    dilation=1, padding_mode="zeros", kernel_size=None,
):  # fmt: skip
    """Add weight times input to the places of the kernel."""
    kernel, sizes = weight.shape[2:], input.shape[-count:]
    stride, dilation = each(stride, count), each(dilation, count)
    before = input.shape[: -count - 1]
    split = weight.reshape(groups, -1, *weight.shape[1:])  # groups, in, out, *kernel
    channels = groups * split.shape[2]
    extra = each(output_padding, count)
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(sizes, stride, dilation, kernel, extra)
    ]
    result = np.zeros((*before, channels, *full), np.result_type(input, weight))
    x = input.reshape(*before, groups, split.shape[1], -1)
    for place in np.ndindex(*kernel):
        part = np.swapaxes(split[(..., *place)], 1, 2) @ x
        met = met_by(place, sizes, stride, dilation)
        result[met] += part.reshape(*before, channels, *sizes)
    result = pad_ends(result, [(-p, -p) for p in each(padding, count)])
    return result if bias is None else result + bias.reshape(-1, *[1] * count)


def pooled_sizes(x, count, kernel, stride, padding, dilation, ceil_mode):
    """Return how many windows there are, and the padding that they need."""
    sizes, pairs = [], []
    for n, k, s, p, d in zip(x.shape[-count:], kernel, stride, padding, dilation):
        room, reach = n + 2 * p, d * (k - 1) + 1
        number = (room - reach) // s + 1
        if ceil_mode:
            number = -((reach - room) // s) + 1
            if (number - 1) * s >= n + p:  # a window must not start in the padding
                number -= 1
        sizes.append(number)
        pairs.append((p, p + max((number - 1) * s + reach - room, 0)))
    return sizes, pairs


def max_pool(
    count, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False,
):  # fmt: skip
    if return_indices:
        raise ValueError("it returns indices")
    kernel = each(kernel_size, count)
    stride, dilation = each(stride or kernel, count), each(dilation, count)
    padding = each(padding, count)
    sizes, pairs = pooled_sizes(input, count, kernel, stride, padding, dilation, ceil_mode)
    x = pad_ends(input, pairs, value=-np.inf)
    places = np.ndindex(*kernel)
    result = x[met_by(next(places), sizes, stride, dilation)]
    for place in places:
        result = np.maximum(result, x[met_by(place, sizes, stride, dilation)])
    return result


def avg_pool(
    count, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):  # fmt: skip
    kernel = each(kernel_size, count)
    stride, padding, once = each(stride or kernel, count), each(padding, count), (1,) * count
    sizes, pairs = pooled_sizes(input, count, kernel, stride, padding, once, ceil_mode)
    x = pad_ends(input, pairs)
    counted = np.ones(input.shape[-count:], input.dtype)
    given = [(p, p) for p in padding]
    counted = pad_ends(counted, given, value=1 if count_include_pad else 0)
    counted = pad_ends(counted, [(0, b - p) for (_, b), p in zip(pairs, padding)])
    total = number = 0
    for place in np.ndindex(*kernel):
        met = met_by(place, sizes, stride, once)
        total, number = total + x[met], number + counted[met]
    return total / (divisor_override or number)


def adaptive_pool(count, reduce, input, output_size, return_indices=False):
    """Reduce windows that share out each dimension."""
    if return_indices:
        raise ValueError("it returns indices")
    for axis, wanted in zip(range(-count, 0), each(output_size, count)):
        size = input.shape[axis]
        wanted = wanted or size  # pnnx writes 0 for None
        bounds = [(i * size // wanted, -(-(i + 1) * size // wanted)) for i in range(wanted)]
        parts = [np.take(input, range(start, end), axis) for start, end in bounds]
        input = np.concatenate([reduce(p, axis=axis, keepdims=True) for p in parts], axis)
    return input


# Normalization


def scaled(x, weight, bias, shape):
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def standard(x, dims, eps):
    """Subtract the mean and divide by the standard deviation."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(dims, keepdims=True)
    variance = (centred**2).mean(dims, keepdims=True)
    return (centred / np.sqrt(variance + eps)).astype(x.dtype)


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, eps=1e-5, momentum=0.1,
    training=False,
):  # fmt: skip
    if training:
        raise ValueError("it is in training")
    shape = (1, -1, *[1] * (input.ndim - 2))
    mean, deviation = running_mean.reshape(shape), np.sqrt(running_var.reshape(shape) + eps)
    return scaled((input - mean) / deviation, weight, bias, shape)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    shape = each(normalized_shape, 1)
    dims = tuple(range(-len(shape), 0))
    return scaled(standard(input, dims, eps), weight, bias, shape)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    groups = input.reshape(len(input), num_groups, -1)
    shape = (1, -1, *[1] * (input.ndim - 2))
    return scaled(standard(groups, -1, eps).reshape(input.shape), weight, bias, shape)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.1, eps=1e-5, track_running_stats=False,
):  # fmt: skip
    if track_running_stats or not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps)
    return group_norm(input, input.shape[1], weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    dims = tuple(range(-len(each(normalized_shape, 1)), 0))
    eps = np.finfo(input.dtype).eps if eps is None else eps
    result = input / np.sqrt((input**2).mean(dims, keepdims=True) + eps)
    return result if weight is None else result * weight


def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / np.maximum(norm(input, p, dim, keepdim=True), eps)


def norm(input, p=2, dim=None, keepdim=False):
    if not isinstance(p, (int, float)) and p != "fro":
        raise ValueError(f"norm {p}")
    size, dim = np.abs(input), axes(dim)
    p = 2 if p == "fro" else p
    if math.isinf(p):
        return (size.max if p > 0 else size.min)(axis=dim, keepdims=keepdim)
    return (size**p).sum(dim, keepdims=keepdim) ** (1 / p)


# Activations


def sigmoid(input):
    return 1 / (1 + np.exp(-input))


def erf(input):
    values = [math.erf(x) for x in np.ravel(input).tolist()]
    return np.array(values, np.result_type(input, np.float16)).reshape(np.shape(input))


def gelu(input, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * input**3)
        return 0.5 * input * (1 + np.tanh(inner))
    return 0.5 * input * (1 + erf(input / math.sqrt(2)))


def hardsigmoid(input):
    return np.clip(input + 3, 0, 6) / 6


def hardtanh(input, min_val=-1.0, max_val=1.0):
    return np.clip(input, min_val, max_val)


def leaky_relu(input, negative_slope=0.01):
    return np.where(input > 0, input, negative_slope * input)


def prelu(input, weight):
    channels = (1, -1, *[1] * (input.ndim - 2)) if input.ndim > 1 else -1
    return np.where(input > 0, input, weight.reshape(channels) * input)


def elu(input, alpha=1.0):
    return np.where(input > 0, input, alpha * np.expm1(np.minimum(input, 0)))


def celu(input, alpha=1.0):
    return np.where(input > 0, input, alpha * np.expm1(np.minimum(input, 0) / alpha))


def selu(input):
    return 1.0507009873554805 * elu(input, 1.6732632423543772)


def softplus(input, beta=1.0, threshold=20.0):
    return np.where(input * beta > threshold, input, np.logaddexp(0, input * beta) / beta)


def shrink(input, lambd=0.5, hard=False):
    kept = input if hard else input - np.sign(input) * lambd
    return np.where(np.abs(input) > lambd, kept, 0)


def glu(input, dim=-1):
    half, gate = np.split(input, 2, dim)
    return half * sigmoid(gate)


def softmax(input, dim, dtype=None):
    powers = np.exp(input - input.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


def log_softmax(input, dim, dtype=None):
    lower = input - input.max(dim, keepdims=True)
    return lower - np.log(np.exp(lower).sum(dim, keepdims=True))


def unchanged(input, p=0.5, training=False):
    if training:
        raise ValueError("it is in training")
    return input


# Arithmetic


def clamp(input, min=None, max=None):
    input = input if min is None else np.maximum(input, min)
    return input if max is None else np.minimum(input, max)


def add(input, other, alpha=1):
    return input + alpha * other


def subtract(input, other, alpha=1):
    return input - alpha * other


def divide(input, other, rounding_mode=None):
    if rounding_mode == "floor":
        return np.floor_divide(input, other)
    return np.trunc(input / other) if rounding_mode == "trunc" else input / other


def linear(input, weight, bias=None):
    result = input @ weight.T
    return result if bias is None else result + bias


def matmul(input, other=None, mat2=None, vec=None):
    return input @ next(x for x in (other, mat2, vec) if x is not None)


def addmm(input, mat1=None, mat2=None, batch1=None, batch2=None, beta=1, alpha=1):
    one, two = (mat1, mat2) if batch1 is None else (batch1, batch2)
    return beta * input + alpha * (one @ two)


def embedding(input, weight, padding_idx=None):
    return weight[input]


def extreme(reduce, find, input, dim=None, keepdim=False, other=None):
    if other is not None:
        return (np.maximum if reduce is np.max else np.minimum)(input, other)
    if dim is None:
        return reduce(input)
    indices = np.expand_dims(find(input, dim), dim)
    values = np.take_along_axis(input, indices, dim)
    return Extremes(*(x if keepdim else np.squeeze(x, dim) for x in (values, indices)))


def position(find, input, dim=None, keepdim=False):
    found = find(input, dim)
    return np.expand_dims(found, dim) if keepdim and dim is not None else found


def reduced(reduce, input, dim=None, keepdim=False):
    return reduce(input, axis=axes(dim), keepdims=keepdim)


def spread_of(reduce, input, dim=None, unbiased=None, correction=1, keepdim=False):
    less = correction if unbiased is None else int(unbiased)
    return reduce(input, axis=axes(dim), ddof=less, keepdims=keepdim)


# Attention and recurrence


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
    enable_gqa=False,
):  # fmt: skip
    if enable_gqa:
        raise ValueError("its heads are grouped")
    return attention(query, key, value, attn_mask, is_causal, scale)[0]


def attention(query, key, value, mask=None, is_causal=False, scale=None):
    """Return the weighted values, and the weights."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = scale * (query @ np.swapaxes(key, -1, -2))
    if is_causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    unseeing = np.isneginf(scores).all(-1, keepdims=True)  # as in PyTorch, their results are 0
    weights = np.where(unseeing, 0, softmax(np.where(unseeing, 0, scores), -1))
    return weights @ value, weights


def multihead_attention(
    input, key=None, value=None, attn_mask=None, *, embed_dim, num_heads, batch_first=False,
    add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, in_proj_bias=None, **weights,
):  # fmt: skip
    """Project query, key and value, attend by heads, and project the result."""
    if add_bias_kv or add_zero_attn:
        raise ValueError("it adds keys")
    key = input if key is None else key
    sources = [input, key, key if value is None else value]
    if input.ndim == 3 and not batch_first:
        sources = [x.swapaxes(0, 1) for x in sources]
    if "in_proj_weight" in weights:
        matrices = np.split(weights["in_proj_weight"], 3)
    else:
        matrices = [weights[f"{name}_proj_weight"] for name in "qkv"]
    offsets = [None] * 3 if in_proj_bias is None else np.split(in_proj_bias, 3)
    parts = [linear(x, w, b) for x, w, b in zip(sources, matrices, offsets)]
    heads = [p.reshape(*p.shape[:-1], num_heads, -1).swapaxes(-2, -3) for p in parts]
    if attn_mask is not None and attn_mask.dtype == bool:
        attn_mask = ~attn_mask  # here true means to leave out
    if attn_mask is not None and attn_mask.ndim == 3:
        attn_mask = attn_mask.reshape(*heads[0].shape[:-2], *attn_mask.shape[1:])
    result, shares = attention(*heads, attn_mask)
    result = result.swapaxes(-2, -3).reshape(*parts[0].shape[:-1], -1)
    result = linear(result, weights["out_proj.weight"], weights.get("out_proj.bias"))
    if input.ndim == 3 and not batch_first:
        result = result.swapaxes(0, 1)
    return result, shares.mean(-3)


def lstm_step(x, state, weights):
    hidden, memory = state
    gates = linear(x, *weights[0]) + linear(hidden, *weights[1])
    taken, kept, new, shown = np.split(gates, 4, -1)
    memory = sigmoid(kept) * memory + sigmoid(taken) * np.tanh(new)
    return sigmoid(shown) * np.tanh(memory), memory


def gru_step(x, state, weights):
    from_input = np.split(linear(x, *weights[0]), 3, -1)
    from_hidden = np.split(linear(state[0], *weights[1]), 3, -1)
    reset, kept = (sigmoid(a + b) for a, b in zip(from_input[:2], from_hidden[:2]))
    new = np.tanh(from_input[2] + reset * from_hidden[2])
    return ((1 - kept) * new + kept * state[0],)


def rnn_step(x, state, weights):
    return (np.tanh(linear(x, *weights[0]) + linear(state[0], *weights[1])),)


def recurrent(
    step, input, h_0=None, c_0=None, *, input_size, hidden_size, num_layers=1,
    bidirectional=False, batch_first=False, proj_size=0, nonlinearity="tanh", **weights,
):  # fmt: skip
    """Return the outputs of the last layer, and the last states of all."""
    if proj_size or input.ndim != 3 or nonlinearity != "tanh":
        raise ValueError("a projection, another activation, or no batch")
    x = input.swapaxes(0, 1) if batch_first else input
    directions = ("", "_reverse") if bidirectional else ("",)
    kinds = 2 if step is lstm_step else 1
    shape = (num_layers * len(directions), x.shape[1], hidden_size)
    first = [np.zeros(shape, x.dtype) if s is None else s for s in (h_0, c_0)[:kinds]]
    last = [[] for _ in range(kinds)]
    for layer in range(num_layers):
        results = []
        for place, direction in enumerate(directions):
            suffix = f"_l{layer}{direction}"
            used = [
                (weights[f"weight_{kind}{suffix}"], weights.get(f"bias_{kind}{suffix}"))
                for kind in ("ih", "hh")
            ]
            state = tuple(s[layer * len(directions) + place] for s in first)
            outputs = []
            for now in x[::-1] if direction else x:
                state = step(now, state, used)
                outputs.append(state[0])
            results.append(np.stack(outputs[::-1] if direction else outputs))
            for kept, value in zip(last, state):
                kept.append(value)
        x = np.concatenate(results, -1)
    return (x.swapaxes(0, 1) if batch_first else x, *(np.stack(kept) for kept in last))


# Shapes


def reshape(input, shape=None, size=None):
    return input.reshape(shape if size is None else size)


def flatten_dims(input, start_dim=0, end_dim=-1):
    if not input.ndim:
        return input.reshape(1)
    start, end = start_dim % input.ndim, end_dim % input.ndim
    return input.reshape(*input.shape[:start], -1, *input.shape[end + 1 :])


def unflatten(input, dim, sizes=None, unflattened_size=None):
    dim = dim % input.ndim
    sizes = each(unflattened_size if sizes is None else sizes, 1)
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


def squeeze(input, dim=None):
    dims = range(input.ndim) if dim is None else each(dim, 1)
    dims = tuple(d for d in dims if input.shape[d] == 1)
    return np.squeeze(input, dims)


def expand(input, sizes=None, size=None):
    sizes = each(size if sizes is None else sizes, 1)
    old = (1,) * (len(sizes) - input.ndim) + input.shape
    return np.broadcast_to(input, [o if s == -1 else s for s, o in zip(sizes, old)])


def repeat(input, sizes=None, dims=None, repeats=None):
    times = next(x for x in (sizes, dims, repeats) if x is not None)
    return np.tile(input, times)


def chunk(input, chunks, dim=0):
    return split(input, -(-input.shape[dim] // chunks), dim)


def split(tensor, split_size_or_sections, dim=0):
    size, length = split_size_or_sections, tensor.shape[dim]
    ends = range(size, length, size) if isinstance(size, int) else np.cumsum(size)[:-1]
    return np.split(tensor, list(ends), dim)


def tensor_split(input, indices=None, sections=None, indices_or_sections=None, dim=0):
    given = (indices, sections, indices_or_sections)
    return np.array_split(input, next(x for x in given if x is not None), dim)


def unbind(input, dim=0):
    return [np.take(input, index, dim) for index in range(input.shape[dim])]


def select(input, dim, index):
    return np.take(input, index, dim)


def narrow(input, dim, start, length):
    return np.take(input, range(start, start + length), dim)


def size(input, dim=None):
    return list(input.shape) if dim is None else input.shape[dim]


def pad(input, pad=None, padding=None, mode="constant", value=0):
    ends = each(pad if padding is None else padding, 0)
    pairs = list(zip(ends[::2], ends[1::2]))[::-1]  # the last dimension comes first
    return pad_ends(input, pairs, PAD_MODES[mode], value)


def pad_like(count, mode, input, padding, value=0):
    return pad(input, padding=each(padding, 2 * count), mode=mode, value=value)


def pixel_shuffle(input, upscale_factor):
    *before, channels, height, width = input.shape
    r = upscale_factor
    x = input.reshape(-1, channels // r**2, r, r, height, width).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*before, channels // r**2, height * r, width * r)


def pixel_unshuffle(input, downscale_factor):
    *before, channels, height, width = input.shape
    r = downscale_factor
    x = input.reshape(-1, channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*before, channels * r**2, height // r, width // r)


def channel_shuffle(input, groups):
    x = input.reshape(len(input), groups, -1, *input.shape[2:])
    return x.swapaxes(1, 2).reshape(input.shape)


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=False,
    recompute_scale_factor=False,
):  # fmt: skip
    """Resize one dimension after the other."""
    if mode not in ("nearest", "nearest-exact", "linear", "bilinear", "trilinear"):
        raise ValueError(f"mode {mode}")
    count = input.ndim - 2
    for axis in range(count):
        old = input.shape[axis + 2]
        if size is not None:
            new = each(size, count)[axis]
            ratio = old / new
        else:
            factor = each(scale_factor, count)[axis]
            new = math.floor(old * factor)
            ratio = old / new if recompute_scale_factor else 1 / factor
        places = np.arange(new)
        if mode.startswith("nearest"):
            places = (places + (0.5 if mode == "nearest-exact" else 0)) * ratio
            places = np.minimum(places.astype(int), old - 1)
            input = np.take(input, places, axis + 2)
            continue
        if align_corners:
            places = places * ((old - 1) / max(new - 1, 1))
        else:
            places = np.clip((places + 0.5) * ratio - 0.5, 0, None)
        low = np.minimum(places.astype(int), old - 1)
        share = (places - low).astype(input.dtype).reshape(-1, *[1] * (count - axis - 1))
        one = np.take(input, low, axis + 2)
        input = one + share * (np.take(input, np.minimum(low + 1, old - 1), axis + 2) - one)
    return input


def cast(input, dtype, **_):
    return input.astype(NUMPY_DTYPES[dtype])


# By the names of modules, functions and methods, in small letters without underscores: so
# nn.LayerNorm and F.layer_norm are one.
ELEMENTWISE = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": erf, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "fmod": np.fmod, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logaddexp": np.logaddexp,
    "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative,
    "negative": np.negative, "reciprocal": lambda x: 1 / x, "remainder": np.mod,
    "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid,
    "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square,
    "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
BINARY = {
    "bitwiseand": np.bitwise_and, "bitwiseor": np.bitwise_or, "bitwisexor": np.bitwise_xor,
    "eq": np.equal, "floordivide": np.floor_divide, "ge": np.greater_equal,
    "gt": np.greater, "le": np.less_equal, "logicaland": np.logical_and,
    "logicalor": np.logical_or, "logicalxor": np.logical_xor, "lt": np.less, "mul": np.multiply,
    "ne": np.not_equal, "atan2": np.arctan2, "fmod": np.fmod, "logaddexp": np.logaddexp,
    "maximum": np.maximum, "minimum": np.minimum, "remainder": np.mod,
}  # fmt: skip
NUMPY_FUNCTIONS = {
    **{
        key: lambda input, function=function: function(input)
        for key, function in ELEMENTWISE.items()
    },
    **{
        key: lambda input, other, function=function: function(input, other)
        for key, function in BINARY.items()
    },
    "add": add,
    "addmm": addmm,
    "all": partial(reduced, np.all),
    "alphadropout": unchanged,
    "amax": partial(reduced, np.max),
    "amin": partial(reduced, np.min),
    "any": partial(reduced, np.any),
    "argmax": partial(position, np.argmax),
    "argmin": partial(position, np.argmin),
    "baddbmm": addmm,
    "bmm": matmul,
    "cat": lambda tensors, dim=0: np.concatenate(tensors, dim),
    "celu": celu,
    "channelshuffle": channel_shuffle,
    "chunk": chunk,
    "clamp": clamp,
    "clone": unchanged,
    "contiguous": unchanged,
    "cumsum": lambda input, dim: np.cumsum(input, dim),
    "div": divide,
    "dropout": unchanged,
    "elu": elu,
    "embedding": embedding,
    "expand": expand,
    "expandas": lambda input, other: np.broadcast_to(input, other.shape),
    "flatten": flatten_dims,
    "flip": lambda input, dims: np.flip(input, axes(dims)),
    "gather": lambda input, dim, index: np.take_along_axis(input, index, dim),
    "gelu": gelu,
    "glu": glu,
    "groupnorm": group_norm,
    "gru": partial(recurrent, gru_step),
    "hardshrink": partial(shrink, hard=True),
    "hardsigmoid": hardsigmoid,
    "hardswish": lambda input: input * hardsigmoid(input),
    "hardtanh": hardtanh,
    "identity": lambda input: input,
    "indexselect": lambda input, dim, index: np.take(input, index, dim),
    "instancenorm": instance_norm,
    "interpolate": interpolate,
    "layernorm": layer_norm,
    "leakyrelu": leaky_relu,
    "linear": linear,
    "logicalnot": lambda input: np.logical_not(input),
    "logsigmoid": lambda input: -np.logaddexp(0, -input),
    "logsoftmax": log_softmax,
    "lstm": partial(recurrent, lstm_step),
    "maskedfill": lambda input, mask, value: np.where(mask, value, input),
    "matmul": matmul,
    "max": partial(extreme, np.max, np.argmax),
    "mean": partial(reduced, np.mean),
    "min": partial(extreme, np.min, np.argmin),
    "mish": lambda input: input * np.tanh(np.logaddexp(0, input)),
    "mm": matmul,
    "movedim": lambda input, source, destination: np.moveaxis(
        input, axes(source), axes(destination)
    ),
    "multiheadattention": multihead_attention,
    "mv": matmul,
    "narrow": narrow,
    "norm": norm,
    "normalize": normalize,
    "pad": pad,
    "permute": lambda input, dims: np.transpose(input, dims),
    "pixelshuffle": pixel_shuffle,
    "pixelunshuffle": pixel_unshuffle,
    "pow": lambda input, exponent: np.power(input, exponent),
    "prelu": prelu,
    "prod": partial(reduced, np.prod),
    "relu": lambda input: np.maximum(input, 0),
    "relu6": lambda input: np.clip(input, 0, 6),
    "repeat": repeat,
    "reshape": reshape,
    "reshapeas": lambda input, other: input.reshape(other.shape),
    "rmsnorm": rms_norm,
    "rnn": partial(recurrent, rnn_step),
    "roll": lambda input, shifts, dims=None: np.roll(input, axes(shifts), axes(dims)),
    "rsub": lambda input, other, alpha=1: other - alpha * input,
    "scaleddotproductattention": scaled_dot_product_attention,
    "select": select,
    "selu": selu,
    "silu": lambda input: input * sigmoid(input),
    "size": size,
    "softmax": softmax,
    "softmin": lambda input, dim: softmax(-input, dim),
    "softplus": softplus,
    "softshrink": shrink,
    "softsign": lambda input: input / (1 + np.abs(input)),
    "split": split,
    "squeeze": squeeze,
    "stack": lambda tensors, dim=0: np.stack(tensors, dim),
    "std": partial(spread_of, np.std),
    "sub": subtract,
    "sum": partial(reduced, np.sum),
    "t": lambda input: input.T,
    "tanhshrink": lambda input: input - np.tanh(input),
    "tensorsplit": tensor_split,
    "threshold": lambda input, threshold, value: np.where(input > threshold, input, value),
    "tile": repeat,
    "to": cast,
    "transpose": lambda input, dim0, dim1: np.swapaxes(input, dim0, dim1),
    "tril": lambda input, diagonal=0: np.tril(input, diagonal),
    "triu": lambda input, diagonal=0: np.triu(input, diagonal),
    "typeas": lambda input, other: input.astype(other.dtype),
    "unbind": unbind,
    "unflatten": unflatten,
    "unsqueeze": lambda input, dim: np.expand_dims(input, dim),
    "upsample": interpolate,
    "upsamplebilinear": partial(interpolate, mode="bilinear", align_corners=True),
    "upsamplenearest": interpolate,
    "var": partial(spread_of, np.var),
    "view": reshape,
    "where": lambda condition, input, other: np.where(condition, input, other),
}
for n in (1, 2, 3):
    NUMPY_FUNCTIONS.update({
        f"adaptiveavgpool{n}d": partial(adaptive_pool, n, np.mean),
        f"adaptivemaxpool{n}d": partial(adaptive_pool, n, np.max),
        f"avgpool{n}d": partial(avg_pool, n), f"batchnorm{n}d": batch_norm,
        f"constantpad{n}d": partial(pad_like, n, "constant"),
        f"conv{n}d": partial(convolution, n), f"dropout{n}d": unchanged,
        f"convtranspose{n}d": partial(transposed_convolution, n),
        f"instancenorm{n}d": instance_norm, f"maxpool{n}d": partial(max_pool, n),
        f"reflectionpad{n}d": partial(pad_like, n, "reflect"),
        f"replicationpad{n}d": partial(pad_like, n, "replicate"),
        f"zeropad{n}d": partial(pad_like, n, "constant"),
    })  # fmt: skip
NUMPY_FUNCTIONS["batchnorm"] = batch_norm
NUMPY_FUNCTIONS["upsamplingbilinear2d"] = NUMPY_FUNCTIONS["upsamplebilinear"]
NUMPY_FUNCTIONS["upsamplingnearest2d"] = interpolate

# Parameters of modules that their weights tell again, and some without effect on numbers.
TOLD_BY_WEIGHTS = frozenset(
    """
    affine copy device elementwise_affine embedding_dim in_channels in_features inplace
    max_norm memory_format non_blocking norm_type num_channels num_embeddings num_features
    num_parameters out_channels out_features scale_grad_by_freq sparse
    """.split()
)


def numpy_function(name):
    """Return a function of this list, or None."""
    return NUMPY_FUNCTIONS.get(name.lower().replace("_", ""))
