"""Raw ``aten::`` operators against PyTorch: operands only, in the order of the schema."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(20)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


LINE, IMAGE, VOLUME = floats(2, 4, 9), floats(2, 4, 7, 8), floats(1, 2, 5, 6, 5)
MATRIX, VECTOR, FOUR = floats(5, 4), floats(4), floats(4) + 3
COMPLEX = (3 * floats(3, 4) + 3j * floats(3, 4)).astype(np.complex64)
INDICES = np.array([[2, 0], [1, 4]])
ZERO = np.zeros((), np.float32)

CONVOLUTIONS = [
    ("conv1d", LINE, floats(6, 2, 3), None, (2,), (1,), (1,), 2),
    ("conv2d", IMAGE, floats(6, 4, 3, 2), floats(6), (2, 1), (1, 0), (1, 2), 1),
    ("conv2d", IMAGE, floats(6, 4, 3, 3), None, (1, 1), "same", (1, 1), 1),
    ("conv3d", VOLUME, floats(3, 2, 2, 2, 2), floats(3), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ("_convolution_mode", IMAGE, floats(6, 4, 3, 3), None, (1, 1), "same", (1, 1), 1),
    ("convolution", LINE, floats(6, 4, 3), None, (1,), (0,), (1,), False, (0,), 1),
    ("convolution", LINE, floats(4, 3, 3), None, (2,), (1,), (1,), True, (1,), 2),
    ("_convolution", IMAGE, floats(6, 4, 3, 3), VECTOR[[0] * 6], (1, 1), (1, 1), (1, 1), False,
     (0, 0), 1, False, False, True, True),
    ("conv_transpose1d", LINE, floats(4, 3, 3), floats(6), (2,), (1,), (1,), 2, (1,)),
    ("conv_transpose2d", IMAGE, floats(4, 3, 3, 3), None, (2, 2), (1, 1), (0, 0), 1, (1, 1)),
    ("linear", MATRIX, floats(3, 4), floats(3)),
    ("linear", MATRIX, floats(3, 4), None),
]  # fmt: skip

POOLS = [
    ("max_pool1d", LINE, (3,), (2,), (1,), (1,), True),
    ("max_pool2d", IMAGE, (3, 2), (), (1, 0), (1, 1), False),
    ("max_pool3d", VOLUME, (2, 2, 2), (1, 2, 1), (0, 0, 0), (1, 1, 2), False),
    ("max_pool2d_with_indices", IMAGE, (2, 2), (2, 2), (0, 0), (1, 1), True),
    ("avg_pool1d", LINE, (3,), (2,), (1,), True, False),
    ("avg_pool2d", IMAGE, (7, 8), (), (0, 0), False, True, None),
    ("avg_pool2d", IMAGE, (3, 3), (2, 2), (1, 1), True, False, 5),
    ("avg_pool3d", VOLUME, (2, 2, 2), (1, 1, 1), (0, 0, 0), False, True, None),
    ("adaptive_avg_pool1d", LINE, (4,)),
    ("adaptive_avg_pool2d", IMAGE, (3, 1)),
    ("adaptive_avg_pool3d", VOLUME, (2, 1, 3)),
    ("adaptive_max_pool1d", LINE, (4,)),
    ("adaptive_max_pool2d", IMAGE, (3, 2)),
]

NORMALIZATIONS = [
    ("batch_norm", IMAGE, FOUR, VECTOR, VECTOR, FOUR, False, 0.1, 1e-3, True),
    ("batch_norm", IMAGE, None, VECTOR, None, None, True, 0.1, 1e-5, False),
    ("instance_norm", IMAGE, FOUR, VECTOR, None, None, True, 0.1, 1e-3, True),
    ("group_norm", IMAGE, 2, FOUR, VECTOR, 1e-3, False),
    ("layer_norm", MATRIX, (4,), FOUR, VECTOR, 1e-3, False),
    ("rms_norm", MATRIX, (4,), FOUR, 1e-3),
    ("native_layer_norm", MATRIX, (4,), FOUR, VECTOR, 1e-3),
    ("native_group_norm", IMAGE, FOUR, VECTOR, 2, 4, 56, 2, 1e-3),
    ("softmax", MATRIX, -1, None),
    ("softmax", MATRIX, 0, "torch.float64"),
    ("_softmax", MATRIX, 1, False),
    ("special_softmax", MATRIX, 1, None),
    ("log_softmax", MATRIX, 0, None),
    ("_log_softmax", MATRIX, 1, False),
    ("special_log_softmax", MATRIX, 1, None),
]

ACTIVATIONS = [
    ("hardtanh", MATRIX, -0.5, 0.75),
    ("threshold", MATRIX, 0.1, 7.0),
    ("leaky_relu", MATRIX, 0.3),
    ("elu", MATRIX, 1.5, 1, 1),
    ("elu", MATRIX, 1.5, 2.0, 0.5),
    ("celu", MATRIX, 1.5),
    ("softplus", MATRIX, 2, 1),
    ("hardshrink", MATRIX, 0.3),
    ("softshrink", MATRIX, 0.3),
    ("gelu", MATRIX, "none"),
    ("gelu", MATRIX, "tanh"),
    ("glu", MATRIX, 1),
    ("prelu", MATRIX, VECTOR),
    *((name, MATRIX) for name in ("relu", "relu6", "selu", "sigmoid", "log_sigmoid", "tanh")),
    *((name, MATRIX) for name in ("hardsigmoid", "silu", "hardswish", "mish")),
]

ELEMENTWISE = [
    ("logit", MATRIX, None),
    ("logit", MATRIX, 0.1),
    ("special_logit", MATRIX, 0.1),
    ("special_round", MATRIX, 1),
    ("special_xlogy", MATRIX, MATRIX),
    *((f"special_{n}", MATRIX) for n in ("erf", "erfc", "exp2", "expm1", "gammaln", "log1p")),
    ("special_sinc", MATRIX),
    *((name, COMPLEX) for name in ("conj", "_conj", "conj_physical", "resolve_conj")),
    ("logaddexp", COMPLEX, COMPLEX[::-1]),
]

SIGNAL = floats(2, 40)
WINDOW = np.abs(floats(8))
SPECTRUM = (floats(2, 5, 11) + 1j).astype(np.complex64)
FRAMES = [
    ("stft", SIGNAL, 8, 4, 8, WINDOW, False, True, True, None),
    ("stft", SIGNAL, 8, 4, 8, WINDOW, True, "reflect", True, None, False, None),
    ("istft", SPECTRUM, 8, 4, 8, WINDOW, True, False, None, None, False),
]

REDUCTIONS = [
    ("sum", MATRIX, None),
    ("sum", INDICES, "torch.float64"),
    ("sum", MATRIX, (0,), True, "torch.float64"),
    ("mean", INDICES, "torch.float32"),
    ("prod", MATRIX, 1, False, None),
    *((name, MATRIX, False) for name in ("std", "var", "std_mean", "var_mean")),
    *((name, MATRIX, (1,), True, True) for name in ("std", "var", "std_mean", "var_mean")),
    *((name, MATRIX, (0, 1), 0, False) for name in ("std", "var", "std_mean", "var_mean")),
    ("logcumsumexp", COMPLEX, 1),
    ("logcumsumexp", COMPLEX, 0),
    ("logsumexp", COMPLEX, (0,), False),
    ("sort", MATRIX, 0, True),
    ("sort", INDICES, True, -1, True),
    ("argsort", MATRIX, 0, True),
    ("argsort", INDICES, True, -1, True),
    ("pairwise_distance", INDICES, INDICES[::-1], 2.0, 1e-6, False),
]

PLACES = np.array([3, 7]).reshape(1, 2, 1, 1, 1)
RESAMPLING = [
    ("upsample_nearest1d", LINE, (7,), None),
    ("upsample_nearest1d", LINE, None, (1.7,)),
    ("upsample_nearest2d", IMAGE, (5, 9), None),
    ("upsample_nearest2d", IMAGE, (5, 9), None, None),
    ("upsample_nearest3d", VOLUME, None, (2.0, 1.0, 0.5)),
    ("_upsample_nearest_exact2d", IMAGE, (5, 9), None),
    ("upsample_linear1d", LINE, (12,), True, None),
    ("upsample_bilinear2d", IMAGE, None, False, (1.5, 0.7)),
    ("upsample_bilinear2d", IMAGE, (10, 5), False, 1.5, 0.7),
    ("upsample_trilinear3d", VOLUME, (3, 7, 4), False, None),
    ("upsample_bicubic2d", IMAGE, (9, 4), True, None),
    ("_upsample_bilinear2d_aa", IMAGE, (3, 4), False, None),
    ("_upsample_bicubic2d_aa", IMAGE, (3, 4), False, None),
    ("grid_sampler_2d", IMAGE, floats(2, 3, 4, 2), 0, 1, False),
    ("grid_sampler_3d", VOLUME, floats(1, 2, 3, 4, 3), 1, 0, True),
    ("constant_pad_nd", LINE, (1, 2, 0, -1), 1.5),
    ("reflection_pad1d", LINE, (1, 2)),
    ("reflection_pad2d", IMAGE, (1, 2, 0, 3)),
    ("reflection_pad3d", VOLUME, (1, 2, 0, 3, 1, 1)),
    ("replication_pad1d", LINE, (1, 2)),
    ("replication_pad2d", IMAGE, (1, 2, 0, 3)),
    ("replication_pad3d", VOLUME, (1, 2, 0, 3, 1, 1)),
    ("max_unpool2d", IMAGE[:, :, :1, :2], np.arange(16).reshape(2, 4, 1, 2), (4, 5)),
    ("max_unpool3d", VOLUME[:, :, :1, :1, :1], PLACES, (2, 2, 2), (1, 1, 1), (0, 0, 0)),
]

JOINTS = [
    ("meshgrid", (VECTOR, FOUR[:3])),
    ("meshgrid", (VECTOR, FOUR[:3]), "xy"),
    ("cartesian_prod", (VECTOR, FOUR[:3])),
    ("combinations", VECTOR, 3, True),
    ("block_diag", (MATRIX, VECTOR)),
    ("atleast_3d", VECTOR),
    ("atleast_2d", (VECTOR, MATRIX)),
    ("hsplit", MATRIX, 2),
    ("vsplit", MATRIX, (1, 3)),
    ("dsplit", IMAGE, 7),
    ("tril_indices", 3, 4, -1, None, None, None, None),
    ("triu_indices", 3, 4, 1, "torch.int32", None, None, None),
    ("mT", IMAGE),
    ("mH", COMPLEX),
    ("matrix_H", COMPLEX),
    ("adjoint", COMPLEX),
    ("moveaxis", IMAGE, (0, 1), (2, 0)),
    ("diff", MATRIX, 2, 0, None, None),
    ("diff", MATRIX, 1, -1, MATRIX[:, :1], INDICES.repeat(5, 1)[[0] * 5]),
    ("diff", MATRIX > 0, 1, 0, None, None),
    ("trapezoid", MATRIX, FOUR, 1),
    ("trapezoid", INDICES, 0.5, 0),
    ("trapz", MATRIX, FOUR, 1),
    ("trapz", MATRIX, 0.5, 0),
    ("cumulative_trapezoid", MATRIX, FOUR, 1),
    ("gradient", MATRIX, 0.5, None, 1),
    ("gradient", MATRIX, (0, 1), 2),
    ("gradient", MATRIX, (0.5, 2.0), (0, 1), 1),
    ("gradient", MATRIX, (np.sort(FOUR),), (1,), 2),
    ("gradient", IMAGE.astype(int), None, 3, 1),
]

HOLES = np.where(MATRIX > 0.3, np.nan, MATRIX)
DIGITS = RNG.integers(0, 4, (5, 3))
HOWS = ("prod", "mean", "amax", "amin")
PARTS = [
    ("linalg_diagonal", IMAGE, 1, -1, 0),
    ("diag_embed", MATRIX, -2, 0, 1),
    ("diagflat", MATRIX, 1),
    ("diagonal_scatter", IMAGE, floats(7, 8, 2), 1, 0, 1),
    ("as_strided_scatter", MATRIX, floats(2, 3), (2, 3), (1, 4), 3),
    ("sum_to_size", IMAGE, (4, 1, 8)),
    ("logspace", -1, 2, 5, 3.0, None, None, None, None),
    ("ravel", IMAGE),
]

STATISTICS = [
    ("isclose", HOLES, MATRIX, 1e-5, 1e-8, True),
    ("allclose", MATRIX, MATRIX, 1e-5, 1e-8, False),
    ("equal", MATRIX, MATRIX[:3]),
    ("isin", DIGITS, INDICES, False, True),
    ("isin", DIGITS, 2, False, False),
    ("isreal", COMPLEX),
    ("_unique2", DIGITS, True, True, True),
    ("unique_dim", DIGITS, 1, True, True, True),
    ("unique_consecutive", DIGITS, True, True, None),
    ("unique_consecutive", DIGITS, False, False, 0),
    *(("quantile", MATRIX, q, 1, True, "linear") for q in (0.3, VECTOR[:3] ** 2 / 99)),
    *(("nanquantile", HOLES, 0.7, 0, False, how) for how in ("linear", "nearest", "midpoint")),
    ("nanmedian", HOLES),
    ("nanmedian", HOLES, 0, True),
    ("mode", DIGITS, 0, False),
    ("aminmax", MATRIX, 1, True),
    ("count_nonzero", DIGITS, None),
    ("count_nonzero", DIGITS, (0, 1)),
    ("histc", MATRIX, 7, -1.0, 1.5),
    ("histogram", MATRIX, 7, None, None, False),
    ("histogram", MATRIX, np.sort(VECTOR), MATRIX**2, True),
    ("renorm", MATRIX, 1.5, 1, 2.0),
    ("index_copy", MATRIX, 1, np.array([2, 0]), MATRIX[:, :2]),
    *(("index_reduce", MATRIX, 1, np.array([2, 2]), MATRIX[:, :2], how, False) for how in HOWS),
    ("put", MATRIX, INDICES, VECTOR.reshape(2, 2), True),
]

COPIES = [
    ("to", MATRIX, "torch.float64", False, True, None),
    ("to", MATRIX, INDICES, False, False, None),
    ("to", MATRIX, "cpu", "torch.int32", False, False, None),
    ("to", MATRIX, "torch.int32", None, "cpu", None, False, True, None),
    ("_to_copy", MATRIX, "torch.float64", None, "cpu", None, False, None),
    ("scalar_tensor", 3, None, None, None, None),
    ("scalar_tensor", 2.5, "torch.int64", None, None, None),
    ("eye", 3, "torch.int64", None, None, None),
    ("eye", 3, 2, None, None, None, None),
    ("linspace", 0, 1.5, 4, None, None, "cpu", False),
    ("embedding_renorm", MATRIX, INDICES, 1.5, 2.0),
    ("einsum", "ij,kj->ik", (MATRIX, COMPLEX.real), None),
    ("embedding", MATRIX, INDICES, -1, False, False),
    ("pad", LINE, (1, 2), "reflect", None),
    ("pad", LINE, (1, -2, 0, 1), "constant", 2.5),
    ("cat", (MATRIX, MATRIX[:2], INDICES.repeat(2, 1)), 0),
    ("stack", (MATRIX, MATRIX), -1),
    ("gather", VECTOR, 0, np.zeros((2, 0), np.int64), False),
    ("masked_scatter", VECTOR, MATRIX > 0, MATRIX),
    ("index_add", VECTOR, 0, np.zeros(1, np.int64), VECTOR[:1], -1),
    ("index_fill", ZERO, 0, np.zeros(1, np.int64), 3.5),
]


@pytest.mark.parametrize(
    "case",
    [
        *(*CONVOLUTIONS, *POOLS, *NORMALIZATIONS, *ACTIVATIONS, *ELEMENTWISE, *REDUCTIONS),
        *(*FRAMES, *RESAMPLING, *JOINTS, *PARTS, *STATISTICS, *COPIES),
    ],
    ids=lambda case: case[0],
)
def test_operators(agree, case):
    name, *operands = case
    agree(f"aten::{name}", *operands, function=partial(in_order, name), loose=8)


def in_order(name, *operands):
    """What PyTorch's operator gives for all arguments of one of its overloads, in order."""
    operands = [getattr(torch, o[6:]) if str(o).startswith("torch.") else o for o in operands]
    packet = getattr(torch.ops.aten, name)
    refusals = []
    for overload in packet.overloads():
        arguments = getattr(packet, overload)._schema.arguments
        if len(arguments) != len(operands):
            continue
        pairs = list(zip(arguments, operands, strict=True))
        by_name = {argument.name: value for argument, value in pairs if argument.kwarg_only}
        by_position = (value for argument, value in pairs if not argument.kwarg_only)
        try:
            return getattr(packet, overload)(*by_position, **by_name)
        except (RuntimeError, TypeError) as exc:
            refusals.append(exc)
    raise AssertionError(f"no overload of {name} takes {len(operands)} such: {refusals}")
