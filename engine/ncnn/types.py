"""The layer types of ncnn: names of their parameters, counts of operands, and weights.

Ids and defaults are those of ``load_param`` in ncnn's ``src/layer/*.cpp`` (a4d2ea1, July 2026),
the order and the sizes of weights those of ``load_model``. Weights have ncnn's names without
the ending ``_data``, and their shapes have the outermost axis first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.values import Value

__all__ = [
    "AXES",
    "MANY",
    "PERMUTE_ORDERS",
    "PREFIX",
    "TYPES",
    "UNSET",
    "LayerType",
    "Params",
    "WeightSpec",
    "has_fused_activation",
    "is_quantized",
    "may_fuse_activation",
    "param_id",
    "require_ints",
    "takes_bytes",
    "weight_specs",
]

PREFIX: Final = "ncnn."
"""Prefix of ncnn's types in a graph, which distinguishes them from PyTorch's and ONNX's."""
MANY: Final = 1 << 30
UNSET: Final = -233
"""ncnn's value for a number that is not given."""

_LARGEST_DIM: Final = 2**31 - 1


class WeightSpec(NamedTuple):
    """A weight of a layer, as its parameters describe it.

    Attributes
    ----------
    name : str
    shape : tuple of int
    tagged : bool
        Whether a tag before it gives its storage (load type 0).
    dtype : str
        PNNX's name of its storage where no tag gives it.
    """

    name: str
    shape: tuple[int, ...]
    tagged: bool = False
    dtype: str = "f32"


class Params:
    """Parameters of a layer with ncnn's defaults.

    Parameters
    ----------
    values : mapping of str to Value
        By name.
    """

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer.

        Raises
        ------
        ValueError
            If it is another kind of parameter.
        """
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(name, value, "an integer")
        return value

    def size(self, name: str, default: int = 0) -> int:
        """Return an integer that is at least 1.

        Raises
        ------
        ValueError
            If it is not.
        """
        value = self.integer(name, default)
        if value < 1:
            raise ValueError(f"parameter {name}={value} is not a positive size")
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a number.

        Raises
        ------
        ValueError
            If it is another kind of parameter.
        """
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _wrong(name, value, "a number")
        return value

    def array(self, name: str) -> tuple[float, ...]:
        """Return an array; empty if it is not given.

        Raises
        ------
        ValueError
            If it is another kind of parameter.
        """
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, tuple) or not all(isinstance(v, (int, float)) for v in value):
            raise _wrong(name, value, "an array")
        return value  # type: ignore[return-value] # of numbers


def _wrong(name: str, value: object, wanted: str) -> ValueError:
    return ValueError(f"parameter {name}={value} is not {wanted}")


@dataclass(frozen=True, slots=True)
class LayerType:
    """A type of layers.

    Attributes
    ----------
    names : mapping of int to str
        Names of the parameters by id.
    kinds : mapping of str to str
        By name: ``i`` for an integer, ``f`` for a float, ``a`` for an array, ``s`` for text.
    inputs, outputs : (int, int)
        Smallest and largest number of operands.
    weights : callable or None
        From the parameters to the weights in the order of the file; None for a type that has
        none.
    """

    names: Mapping[int, str]
    kinds: Mapping[str, str]
    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    weights: Callable[[Params], list[WeightSpec]] | None = None


def weight_specs(kind: str, params: Mapping[str, Value]) -> list[WeightSpec]:
    """Return the weights that a layer reads, in order.

    Parameters
    ----------
    kind : str
        ncnn's name of the type.
    params : mapping of str to Value
        By name.

    Raises
    ------
    ValueError
        If a parameter contradicts another or is not a size.
    """
    layer = TYPES.get(kind)
    if layer is None or layer.weights is None:
        return []
    specs = layer.weights(Params(params))
    for spec in specs:
        if math.prod(spec.shape) > _LARGEST_DIM or min(spec.shape) < 0:
            raise ValueError(f"weight {spec.name} of shape {spec.shape} is too large")
    return specs


def param_id(kind: str, name: str) -> int:
    """Return the id of a parameter.

    Raises
    ------
    KeyError
        If the type has no parameter of that name.
    """
    return _IDS[kind][name]


def require_ints(kind: str, params: Mapping[str, Value]) -> None:
    """Check the kinds of parameters: ncnn would read the bits of a float as an integer.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    kinds = TYPES[kind].kinds
    for name, value in params.items():
        if kinds.get(name) == "i" and not isinstance(value, int):
            raise _wrong(name, value, "an integer")
        if kinds.get(name) == "a" and not isinstance(value, tuple):
            raise _wrong(name, value, "an array")
        if kinds.get(name) == "f" and not isinstance(value, (int, float)):
            raise _wrong(name, value, "a number")


def is_quantized(params: Mapping[str, Value]) -> bool:
    """Whether a layer computes with quantised numbers."""
    return bool(params.get("int8_scale_term") or params.get("quantize_term"))


def has_fused_activation(params: Mapping[str, Value]) -> bool:
    """Whether a layer applies an activation to its own result."""
    return bool(params.get("activation_type"))


def may_fuse_activation(kind: str) -> bool:
    """Whether layers of a type have a parameter for an activation of their own results."""
    return kind in TYPES and "activation_type" in TYPES[kind].kinds


# Layers that move elements of any size, and ReLU, which has code for bytes.
_TAKE_BYTES: Final = frozenset(
    {
        "Cast", "Concat", "Crop", "ExpandDims", "Flatten", "Noop", "Padding", "ReLU", "Reshape",
        "Slice", "Split", "Squeeze",
    }
)  # fmt: skip


def takes_bytes(kind: str, params: Mapping[str, Value]) -> bool:
    """Whether ncnn accepts int8 operands; other layers read float32 from them, and beyond."""
    return kind in _TAKE_BYTES or is_quantized(params)


# Weights


def _convolution(rank: int, *, group: bool = False) -> Callable[[Params], list[WeightSpec]]:
    def weights(params: Params) -> list[WeightSpec]:
        if params.integer("dynamic_weight"):
            return []
        outputs = params.size("num_output")
        width = params.size("kernel_w")
        kernel = [params.size(name, width) for name in ("kernel_d", "kernel_h")[3 - rank :]]
        specs = [_kernel(params, (outputs,), (*kernel, width))]
        specs += _bias(params, outputs)
        scales = params.integer("int8_scale_term")
        if scales:
            count = outputs
            if group:
                count = params.size("group", 1) if scales % 100 == 1 else 1
            specs.append(WeightSpec("weight_int8_scales", (count,)))
            specs.append(WeightSpec("bottom_int8_scales", (1,)))
        if scales > 100:
            specs.append(WeightSpec("top_int8_scales", (1,)))
        return specs

    return weights


def _kernel(params: Params, outer: tuple[int, ...], inner: tuple[int, ...]) -> WeightSpec:
    """Return a weight of `weight_data_size` numbers, which determines its middle axis."""
    size = params.size("weight_data_size")
    middle, rest = divmod(size, math.prod(outer) * math.prod(inner))
    if rest or not middle:
        raise ValueError(
            f"parameter weight_data_size={size} is not a multiple of "
            f"{'×'.join(map(str, (*outer, *inner)))}"
        )
    return WeightSpec("weight", (*outer, middle, *inner), tagged=True)


def _bias(params: Params, count: int) -> list[WeightSpec]:
    return [WeightSpec("bias", (count,))] if params.integer("bias_term") else []


def _inner_product(params: Params) -> list[WeightSpec]:
    outputs = params.size("num_output")
    specs = [_kernel(params, (outputs,), ()), *_bias(params, outputs)]
    if params.integer("int8_scale_term"):
        specs += [
            WeightSpec("weight_int8_scales", (outputs,)),
            WeightSpec("bottom_int8_scales", (1,)),
        ]
    return specs


def _embed(params: Params) -> list[WeightSpec]:
    outputs, rows = params.size("num_output"), params.size("input_dim")
    if params.size("weight_data_size") != outputs * rows:
        raise ValueError("parameter weight_data_size is not num_output × input_dim")
    specs = [WeightSpec("weight", (rows, outputs), tagged=True), *_bias(params, outputs)]
    if params.integer("int8_scale_term"):
        specs.append(WeightSpec("weight_int8_scale", (1,)))
    return specs


def _per_channel(*names: str, count: str = "channels") -> Callable[[Params], list[WeightSpec]]:
    return lambda params: [WeightSpec(name, (params.size(count),)) for name in names]


def _affine(*names: str, count: str) -> Callable[[Params], list[WeightSpec]]:
    def weights(params: Params) -> list[WeightSpec]:
        if not params.integer("affine", 1):
            return []
        return [WeightSpec(name, (params.size(count),)) for name in names]

    return weights


def _scale(params: Params) -> list[WeightSpec]:
    if params.integer("scale_data_size") == UNSET:  # the scale is an operand
        return []
    count = params.size("scale_data_size")
    return [WeightSpec("scale", (count,)), *_bias(params, count)]


def _scales(*names: tuple[str, int]) -> Callable[[Params], list[WeightSpec]]:
    """Return vectors whose sizes are parameters, with their defaults; a bias may be empty."""

    def weights(params: Params) -> list[WeightSpec]:
        counts = [(name, params.integer(f"{name}_data_size", count)) for name, count in names]
        return [
            WeightSpec(name, (params.size(f"{name}_data_size", count),))
            for (name, count), (_, default) in zip(counts, names, strict=True)
            if count or default
        ]

    return weights


def _padding(params: Params) -> list[WeightSpec]:
    count = params.integer("per_channel_pad_data_size")
    return [WeightSpec("per_channel_pad", (count,))] if count else []


# Of ModelBin::load in ncnn, which keeps the bytes of all but the first two as they are.
_LOAD_TYPES: Final = {0: "f32", 1: "f32", 3: "i8", 4: "i8", 6: "i8", 8: "i8"}


def _memory(params: Params) -> list[WeightSpec]:
    sides = [params.integer(name) for name in ("c", "d", "h", "w")]
    shape = tuple(side for side in sides if side)
    if any(side < 0 for side in sides) or not shape:
        raise ValueError("parameters w, h, d and c are not a shape")
    kind = params.integer("load_type", 1)
    if kind not in _LOAD_TYPES:
        raise ValueError(f"parameter load_type={kind} is none that ncnn can read")
    return [WeightSpec("data", shape, tagged=kind == 0, dtype=_LOAD_TYPES[kind])]


def _recurrent(gates: int, biases: int) -> Callable[[Params], list[WeightSpec]]:
    def weights(params: Params) -> list[WeightSpec]:
        directions = 2 if params.integer("direction") == 2 else 1
        outputs = params.size("num_output")
        hidden = params.size("hidden_size", outputs) if gates == 4 else outputs
        size = params.size("weight_data_size") // (directions * hidden * gates)
        if not size:
            raise ValueError("parameter weight_data_size is too small for one input")
        specs = [
            WeightSpec("weight_xc", (directions, gates * hidden, size), tagged=True),
            WeightSpec("bias_c", (directions, biases, hidden), tagged=True),
            WeightSpec("weight_hc", (directions, gates * hidden, outputs), tagged=True),
        ]
        if hidden != outputs:
            specs.append(WeightSpec("weight_hr", (directions, outputs, hidden), tagged=True))
        if params.integer("int8_scale_term"):
            specs += [
                WeightSpec(f"weight_{name}_int8_scales", (directions, gates * hidden))
                for name in ("xc", "hc")
            ]
        return specs

    return weights


class _Blocks(NamedTuple):
    """Quantisation of weights in blocks of a row."""

    bits: int
    size: int
    has_input_scale: bool

    @classmethod
    def read(cls, term: int) -> _Blocks | None:
        """Read a ``quantize_term``: bits, a digit for the format and one for the size."""
        bits, code = divmod(term, 100)
        form, size = divmod(code, 10)
        if bits not in {4, 6, 8} or form > 1 or size > 2:
            return None
        return cls(bits, (32, 64, 128)[size], form == 1)

    def row_bytes(self, count: int) -> int:
        return -(-count * self.bits // 8)

    def row_scales(self, count: int) -> int:
        return -(-count // self.size)


def _attention(params: Params) -> list[WeightSpec]:
    embed = params.size("embed_dim")
    query, rest = divmod(params.size("weight_data_size"), embed)
    if rest or not query:
        raise ValueError("parameter weight_data_size is not a multiple of embed_dim")
    key, value = params.size("kdim", embed), params.size("vdim", embed)
    term = params.integer("quantize_term")
    sizes = {"q": (embed, query), "k": (embed, key), "v": (embed, value), "out": (query, embed)}
    blocks = _Blocks.read(term)
    specs: list[WeightSpec] = []
    for name, (rows, columns) in sizes.items():
        width = columns if blocks is None else blocks.row_bytes(columns)
        specs.append(WeightSpec(f"{name}_weight", (rows, width), tagged=True))
        specs.append(WeightSpec(f"{name}_bias", (rows,)))
    if blocks is not None:
        specs += [
            WeightSpec(f"{name}_weight_quantize_scales", (rows, blocks.row_scales(columns)))
            for name, (rows, columns) in sizes.items()
        ]
        if blocks.has_input_scale:
            specs += [
                WeightSpec(f"{name}_weight_input_scales", (columns,))
                for name, (_, columns) in sizes.items()
            ]
    elif term:
        specs += [WeightSpec(f"{name}_weight_int8_scales", (embed,)) for name in "qkv"]
        specs.append(WeightSpec("out_weight_int8_scale", (1,)))
    return specs


def _gemm(params: Params) -> list[WeightSpec]:
    specs: list[WeightSpec] = []
    term = params.integer("quantize_term")
    blocks = _Blocks.read(term)
    rows = columns = depth = 1
    constant = {name: params.integer(f"constant{name}") == 1 for name in "ABC"}
    if constant["A"] or constant["B"]:
        depth = params.size("constantK")
    if constant["A"]:
        rows = params.size("constantM")
        shape = (depth, rows) if params.integer("transA") else (rows, depth)
        specs.append(WeightSpec("A", shape, tagged=True))
    if constant["B"]:
        columns = params.size("constantN")
        width = depth if blocks is None else blocks.row_bytes(depth)
        shape = (columns, width) if params.integer("transB") else (depth, columns)
        specs.append(WeightSpec("B", shape, tagged=True))
    form = params.integer("constant_broadcast_type_C")
    if constant["C"] and form != -1:
        if not 0 <= form <= 4:
            raise ValueError(f"parameter constant_broadcast_type_C={form} is not from -1 to 4")
        height = params.size("constantM") if form in {1, 2, 3} else 1
        width = params.size("constantN") if form in {3, 4} else 1
        shapes = ((1,), (height,), (height, 1), (height, width), (1, width))
        specs.append(WeightSpec("C", shapes[form], tagged=True))
    if blocks is not None:
        scales = (columns, blocks.row_scales(depth))
        specs.append(WeightSpec("B_quantize_scales", scales))
        if blocks.has_input_scale:
            specs.append(WeightSpec("B_input_scales", (depth,)))
    elif term:
        specs += [WeightSpec("A_int8_scales", (rows,))] if constant["A"] else []
        specs += [WeightSpec("B_int8_scale", (1,))] if constant["B"] else []
    return specs


# The table. A parameter is written name=id, followed by a letter unless it is an integer.

_SIZES_2D: Final = (
    "num_output=0 kernel_w=1 kernel_h=11 dilation_w=2 dilation_h=12 stride_w=3 stride_h=13 "
    "pad_left=4 pad_right=15 pad_top=14 pad_bottom=16"
)
_SIZES_1D: Final = "num_output=0 kernel_w=1 dilation_w=2 stride_w=3 pad_left=4 pad_right=15"
_SIZES_3D: Final = (
    f"{_SIZES_2D} kernel_d=21 dilation_d=22 stride_d=23 pad_front=24 pad_behind=17"
)
_WEIGHTED: Final = "bias_term=5 weight_data_size=6 activation_type=9 activation_params=10a"
_UNFOLDED: Final = _SIZES_2D.partition(" ")[2]
_POOL_1D: Final = (
    "pooling_type=0 kernel_w=1 stride_w=2 pad_left=3 pad_right=14 global_pooling=4 pad_mode=5 "
    "avgpool_count_include_pad=6 adaptive_pooling=7 out_w=8"
)
_POOL_2D: Final = f"{_POOL_1D} kernel_h=11 stride_h=12 pad_top=13 pad_bottom=15 out_h=18"
_POOL_3D: Final = f"{_POOL_2D} kernel_d=21 stride_d=22 pad_front=23 pad_behind=16 out_d=28"
_OUTPUT_2D: Final = "output_pad_right=18 output_pad_bottom=19 output_w=20 output_h=21"
_OUTPUT_1D: Final = "output_pad_right=18 output_w=20"
_OUTPUT_3D: Final = (
    "output_pad_right=18 output_pad_bottom=19 output_pad_behind=20 output_w=25 output_h=26 "
    "output_d=27"
)
_CORNERS: Final = "woffset=0 hoffset=1 doffset=13 coffset=2 starts=9a axes=11a"
_RECURRENT: Final = "num_output=0 weight_data_size=1 direction=2 int8_scale_term=8"
_WINDOWED: Final = "n_fft=0 hoplen=2 winlen=3 window_type=4 center=5 normalized=7"
_YOLO: Final = "num_class=0 num_box=1 confidence_threshold=2f nms_threshold=3f biases=4a"
_VARIANCES: Final = "variances_{}={}f variances_{}={}f variances_{}={}f variances_{}={}f"


def _layer(
    params: str = "",
    inputs: tuple[int, int] = (1, 1),
    outputs: tuple[int, int] = (1, 1),
    weights: Callable[[Params], list[WeightSpec]] | None = None,
) -> LayerType:
    names: dict[int, str] = {}
    kinds: dict[str, str] = {}
    for word in params.split():
        name, _, number = word.partition("=")
        kind = number[-1] if number[-1].isalpha() else "i"
        names[int(number.rstrip("afs"))] = name
        kinds[name] = kind
    return LayerType(names, kinds, inputs, outputs, weights)


_DYNAMIC: Final = (1, 3)  # the weight and the bias may be operands

TYPES: Final[Mapping[str, LayerType]] = {
    "AbsVal": _layer(),
    "ArgMax": _layer("out_max_val=0 topk=1"),
    "BNLL": _layer(),
    "BatchNorm": _layer(
        "channels=0 eps=1f", weights=_per_channel("slope", "mean", "var", "bias")
    ),
    "Bias": _layer("bias_data_size=0", weights=_per_channel("bias", count="bias_data_size")),
    "BinaryOp": _layer("op_type=0 with_scalar=1 b=2f", inputs=(1, 2)),
    "CELU": _layer("alpha=0f"),
    "Cast": _layer("type_from=0 type_to=1"),
    "Clip": _layer("min=0f max=1f"),
    "Concat": _layer("axis=0", inputs=(1, MANY)),
    "Convolution": _layer(
        f"{_SIZES_2D} {_WEIGHTED} int8_scale_term=8 pad_value=18f dynamic_weight=19",
        _DYNAMIC, weights=_convolution(2),
    ),
    "Convolution1D": _layer(
        f"{_SIZES_1D} {_WEIGHTED} pad_value=18f dynamic_weight=19",
        _DYNAMIC, weights=_convolution(1),
    ),
    "Convolution3D": _layer(
        f"{_SIZES_3D} {_WEIGHTED} pad_value=18f", weights=_convolution(3)
    ),
    "ConvolutionDepthWise": _layer(
        f"{_SIZES_2D} {_WEIGHTED} group=7 int8_scale_term=8 pad_value=18f dynamic_weight=19",
        _DYNAMIC, weights=_convolution(2, group=True),
    ),
    "ConvolutionDepthWise1D": _layer(
        f"{_SIZES_1D} {_WEIGHTED} group=7 pad_value=18f dynamic_weight=19",
        _DYNAMIC, weights=_convolution(1, group=True),
    ),
    "ConvolutionDepthWise3D": _layer(
        f"{_SIZES_3D} {_WEIGHTED} group=7 pad_value=18f", weights=_convolution(3, group=True)
    ),
    "CopyTo": _layer(_CORNERS, (2, 2)),
    "Crop": _layer(
        f"{_CORNERS} outw=3 outh=4 outd=14 outc=5 woffset2=6 hoffset2=7 doffset2=15 "
        "coffset2=8 ends=10a starts_expr=19s ends_expr=20s axes_expr=21s",
        (1, MANY),
    ),
    "CumulativeSum": _layer("axis=0"),
    "Deconvolution": _layer(
        f"{_SIZES_2D} {_WEIGHTED} {_OUTPUT_2D} dynamic_weight=28",
        _DYNAMIC, weights=_convolution(2),
    ),
    "Deconvolution1D": _layer(
        f"{_SIZES_1D} {_WEIGHTED} {_OUTPUT_1D} dynamic_weight=28",
        _DYNAMIC, weights=_convolution(1),
    ),
    "Deconvolution3D": _layer(
        f"{_SIZES_3D} {_WEIGHTED} {_OUTPUT_3D}", weights=_convolution(3)
    ),
    "DeconvolutionDepthWise": _layer(
        f"{_SIZES_2D} {_WEIGHTED} {_OUTPUT_2D} group=7 dynamic_weight=28",
        _DYNAMIC, weights=_convolution(2, group=True),
    ),
    "DeconvolutionDepthWise1D": _layer(
        f"{_SIZES_1D} {_WEIGHTED} {_OUTPUT_1D} group=7 dynamic_weight=28",
        _DYNAMIC, weights=_convolution(1, group=True),
    ),
    "DeconvolutionDepthWise3D": _layer(
        f"{_SIZES_3D} {_WEIGHTED} {_OUTPUT_3D} group=7", weights=_convolution(3, group=True)
    ),
    "DeepCopy": _layer(),
    "DeformableConv2D": _layer(
        f"{_SIZES_2D} {_WEIGHTED}", (2, 3), weights=_convolution(2)
    ),
    "Dequantize": _layer(
        "scale_data_size=0 bias_data_size=1", weights=_scales(("scale", 1), ("bias", 0))
    ),
    "DetectionOutput": _layer(
        "num_class=0 nms_threshold=1f nms_top_k=2 keep_top_k=3 confidence_threshold=4f "
        + _VARIANCES.format(0, 5, 1, 6, 2, 7, 3, 8),
        (3, 4),
    ),
    "Diag": _layer("diagonal=0"),
    "Dropout": _layer("scale=0f"),
    "ELU": _layer("alpha=0f"),
    "Einsum": _layer("equation=0a", (1, MANY)),
    "Eltwise": _layer("op_type=0 coeffs=1a", (2, MANY)),
    "Embed": _layer(
        "num_output=0 input_dim=1 bias_term=2 weight_data_size=3 int8_scale_term=18",
        weights=_embed,
    ),
    "Erf": _layer(),
    "Exp": _layer("base=0f scale=1f shift=2f"),
    "ExpandDims": _layer("axes=3a"),
    "Flatten": _layer(),
    "Flip": _layer("axes=0a"),
    "Fold": _layer(f"{_UNFOLDED} output_w=20 output_h=21"),
    "GELU": _layer("fast_gelu=0"),
    "GLU": _layer("axis=0"),
    "GRU": _layer(_RECURRENT, (1, 3), (1, 3), _recurrent(3, 4)),
    "Gemm": _layer(
        "alpha=0f beta=1f transA=2 transB=3 constantA=4 constantB=5 constantC=6 constantM=7 "
        "constantN=8 constantK=9 constant_broadcast_type_C=10 output_N1M=11 "
        "output_elempack=12 output_elemtype=13 output_transpose=14 quantize_term=18 "
        "constant_TILE_M=20 constant_TILE_N=21 constant_TILE_K=22",
        (0, 3), weights=_gemm,
    ),
    "GridSample": _layer(
        "sample_type=0 padding_mode=1 align_corner=2 permute_fusion=3", (2, 2)
    ),
    "GroupNorm": _layer(
        "group=0 channels=1 eps=2f affine=3", weights=_affine("gamma", "beta", count="channels")
    ),
    "HardSigmoid": _layer("alpha=0f beta=1f"),
    "HardSwish": _layer("alpha=0f beta=1f"),
    "InnerProduct": _layer(
        "num_output=0 bias_term=1 weight_data_size=2 int8_scale_term=8 activation_type=9 "
        "activation_params=10a",
        weights=_inner_product,
    ),
    "Input": _layer("w=0 h=1 d=11 c=2", (0, 0)),
    "InstanceNorm": _layer(
        "channels=0 eps=1f affine=2", weights=_affine("gamma", "beta", count="channels")
    ),
    "Interp": _layer(
        "resize_type=0 height_scale=1f width_scale=2f output_height=3 output_width=4 "
        "dynamic_target_size=5 align_corner=6 size_expr=9s",
        (1, MANY),
    ),
    "InverseSpectrogram": _layer(f"{_WINDOWED} returns=1"),
    "LRN": _layer("region_type=0 local_size=1 alpha=2f beta=3f bias=4f"),
    "LSTM": _layer(f"{_RECURRENT} hidden_size=3", (1, 3), (1, 3), _recurrent(4, 4)),
    "LayerNorm": _layer(
        "affine_size=0 eps=1f affine=2", weights=_affine("gamma", "beta", count="affine_size")
    ),
    "Log": _layer("base=0f scale=1f shift=2f"),
    "MVN": _layer("normalize_variance=0 across_channels=1 eps=2f"),
    "MatMul": _layer("transB=0", (2, 2)),
    "MemoryData": _layer("w=0 h=1 d=11 c=2 load_type=21", (0, 0), weights=_memory),
    "Mish": _layer(),
    "MultiHeadAttention": _layer(
        "embed_dim=0 num_heads=1 weight_data_size=2 kdim=3 vdim=4 attn_mask=5 scale=6f "
        "kv_cache=7 quantize_term=18",
        (1, 6), (1, 3), _attention,
    ),
    "Noop": _layer("", (0, MANY), (0, MANY)),
    "Normalize": _layer(
        "across_spatial=0 channel_shared=1 eps=2f scale_data_size=3 across_channel=4 "
        "eps_mode=9",
        weights=_per_channel("scale", count="scale_data_size"),
    ),
    "PReLU": _layer("num_slope=0", weights=_per_channel("slope", count="num_slope")),
    "PSROIPooling": _layer(
        "pooled_width=0 pooled_height=1 spatial_scale=2f output_dim=3", (2, 2)
    ),
    "Packing": _layer("out_elempack=0 use_padding=1 cast_type_from=2 cast_type_to=3"),
    "Padding": _layer(
        "top=0 bottom=1 left=2 right=3 type=4 value=5f per_channel_pad_data_size=6 front=7 "
        "behind=8",
        weights=_padding,
    ),
    "Permute": _layer("order_type=0"),
    "PixelShuffle": _layer("upscale_factor=0 mode=1"),
    "Pooling": _layer(_POOL_2D),
    "Pooling1D": _layer(_POOL_1D),
    "Pooling3D": _layer(_POOL_3D),
    "Power": _layer("power=0f scale=1f shift=2f"),
    "PriorBox": _layer(
        "min_sizes=0a max_sizes=1a aspect_ratios=2a "
        + _VARIANCES.format(0, 3, 1, 4, 2, 5, 3, 6)
        + " flip=7 clip=8 image_width=9 image_height=10 step_width=11f step_height=12f "
        "offset=13f step_mmdetection=14 center_mmdetection=15",
        (1, 2),
    ),
    "Proposal": _layer(
        "feat_stride=0 base_size=1 pre_nms_topN=2 after_nms_topN=3 nms_thresh=4f min_size=5",
        (3, 3), (1, 2),
    ),
    "Quantize": _layer("scale_data_size=0", weights=_scales(("scale", 1))),
    "RMSNorm": _layer(
        "affine_size=0 eps=1f affine=2", weights=_affine("gamma", count="affine_size")
    ),
    "RNN": _layer(_RECURRENT, (1, 2), (1, 2), _recurrent(1, 1)),
    "ROIAlign": _layer(
        "pooled_width=0 pooled_height=1 spatial_scale=2f sampling_ratio=3 aligned=4 version=5",
        (2, 2),
    ),
    "ROIPooling": _layer("pooled_width=0 pooled_height=1 spatial_scale=2f", (2, 2)),
    "ReLU": _layer("slope=0f"),
    "Reduction": _layer("operation=0 reduce_all=1 coeff=2f axes=3a keepdims=4 fixbug0=5"),
    "Reorg": _layer("stride=0 mode=1"),
    "Requantize": _layer(
        "scale_in_data_size=0 scale_out_data_size=1 bias_data_size=2 activation_type=3 "
        "activation_params=4a",
        weights=_scales(("scale_in", 1), ("scale_out", 1), ("bias", 0)),
    ),
    "Reshape": _layer(
        "w=0 h=1 d=11 c=2 shape_expr=6s input_batch_axis=12 output_batch_axis=13", (1, MANY)
    ),
    "RotaryEmbed": _layer("interleaved=0", (3, 3)),
    "SDPA": _layer("attn_mask=5 scale=6f kv_cache=7 int8_scale_term=18", (3, 6), (1, 3)),
    "SELU": _layer("alpha=0f lambd=1f"),
    "SPP": _layer("pooling_type=0 pyramid_height=1"),
    "Scale": _layer("scale_data_size=0 bias_term=1", (1, 2), weights=_scale),
    "Shrink": _layer("bias=0f lambd=1f"),
    "ShuffleChannel": _layer("group=0 reverse=1"),
    "Sigmoid": _layer(),
    "Slice": _layer("slices=0a axis=1 indices=2a", outputs=(1, MANY)),
    "Softmax": _layer("axis=0 fixbug0=1"),
    "Softplus": _layer(),
    "Spectrogram": _layer(f"{_WINDOWED} power=1 pad_type=6 onesided=8"),
    "Split": _layer(outputs=(1, MANY)),
    "Squeeze": _layer("squeeze_w=0 squeeze_h=1 squeeze_d=11 squeeze_c=2 axes=3a"),
    "StatisticsPooling": _layer("include_stddev=0"),
    "Swish": _layer(),
    "TanH": _layer(),
    "Threshold": _layer("threshold=0f"),
    "Tile": _layer("axis=0 tiles=1 repeats=2a"),
    "UnaryOp": _layer("op_type=0"),
    "Unfold": _layer(f"{_UNFOLDED} pad_value=18f"),
    "YoloDetectionOutput": _layer(_YOLO, (1, MANY)),
    "Yolov3DetectionOutput": _layer(f"{_YOLO} mask=5a anchors_scale=6a", (1, MANY)),
}  # fmt: skip
"""Every layer type of ncnn, by its name."""

PERMUTE_ORDERS: Final = {
    2: ("wh", "hw"),
    3: ("whc", "hwc", "wch", "cwh", "hcw", "chw"),
    4: (
        "whdc", "hwdc", "wdhc", "dwhc", "hdwc", "dhwc",
        "whcd", "hwcd", "wchd", "cwhd", "hcwd", "chwd",
        "wdch", "dwch", "wcdh", "cwdh", "dcwh", "cdwh",
        "hdcw", "dhcw", "hcdw", "chdw", "dchw", "cdhw",
    ),
}  # fmt: skip
"""Orders of Permute by rank and number: from the fastest axis of the result to the slowest."""

AXES: Final = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}
"""Names of the axes of a Mat by rank, slowest first."""

_IDS: Final = {
    kind: {name: number for number, name in layer.names.items()}
    for kind, layer in TYPES.items()
}
