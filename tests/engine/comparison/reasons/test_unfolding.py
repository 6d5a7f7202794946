"""Convolutions whose windows are gathered once for many weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import engine
from engine.comparison.reasons.case import DROPPED, Alternative, make_case
from engine.comparison.reasons.unfolding import unfold

RNG = np.random.default_rng(8)
CHANNELS, KERNELS = 2, 3


@pytest.fixture
def case_of(make_pair):
    """A function that makes the case of a convolution with a bias."""

    def make(rank, x, weight, bias, **params):
        kernel = ",".join(map(str, weight.shape[2:]))
        words = {
            "stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank, "groups": 1,
            "padding_mode": "zeros",
        } | params  # fmt: skip
        text = " ".join(f"{key}={str(value).replace(' ', '')}" for key, value in words.items())
        path = make_pair(
            f"pnnx.Input in 0 1 0 #0=({','.join(map(str, x.shape))})f32",
            f"nn.Conv{rank}d conv 1 1 0 1 bias=True in_channels={x.shape[1]} "
            f"out_channels={len(weight)} kernel_size=({kernel}{',' if rank == 1 else ''}) "
            f"{text.replace(',)', ')')} @weight=({','.join(map(str, weight.shape))})f32 "
            f"@bias=({len(bias)})f32",
            "pnnx.Output out 1 0 1",
            weights={"conv.weight": weight, "conv.bias": bias},
        )
        return make_case(engine.load(path).operator("conv"), [x], np.zeros(1, np.float32))

    return make


def convolved(padded, weight, bias, stride, dilation):
    """Add up the products of every window, one by one."""
    rank = padded.ndim - 2
    sizes = [
        (size - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel in zip(padded.shape[2:], weight.shape[2:], strict=True)
    ]
    result = np.zeros((1, len(weight), *sizes))
    for out, *at in itertools.product(range(len(weight)), *map(range, sizes)):
        total = float(bias[out])
        for taps in itertools.product(*map(range, weight.shape[2:])):
            place = tuple(at[i] * stride + taps[i] * dilation for i in range(rank))
            for channel in range(padded.shape[1]):
                total += float(padded[(0, channel, *place)]) * float(
                    weight[(out, channel, *taps)]
                )
        result[(0, out, *at)] = total
    return result


@pytest.mark.parametrize(
    ("sizes", "kernel", "params", "pads", "mode"),
    [
        ((9,), (3,), {"stride": (2,), "padding": (1,)}, [(1, 1)], "constant"),
        ((6, 5), (3, 3), {"padding": (1, 1)}, [(1, 1), (1, 1)], "constant"),
        ((7, 8), (2, 3), {"dilation": (2, 2)}, [(0, 0), (0, 0)], "constant"),
        ((6, 6), (3, 3), {"padding": (2, 1), "padding_mode": "reflect"},
         [(2, 2), (1, 1)], "reflect"),
        ((4, 5, 4), (2, 2, 2), {"stride": (2, 2, 2)}, [(0, 0)] * 3, "constant"),
    ],
    ids=["1d", "2d", "dilated", "reflecting", "3d"],
)  # fmt: skip
def test_other_weights_give_what_the_windows_add_up_to(
    case_of, sizes, kernel, params, pads, mode
):
    x = RNG.standard_normal((1, CHANNELS, *sizes)).astype(np.float32)
    weight, other = (
        RNG.standard_normal((KERNELS, CHANNELS, *kernel)).astype(np.float32) for _ in range(2)
    )
    bias, nothing = RNG.standard_normal(KERNELS).astype(np.float32), np.zeros(KERNELS)
    unfolded = unfold(case_of(len(sizes), x, weight, bias, **params))
    assert unfolded is not None
    padded = np.pad(x, [(0, 0), (0, 0), *pads], mode)
    steps = params.get("stride", (1,))[0], params.get("dilation", (1,))[0]
    for changes, wanted in (
        ({"weight": other}, convolved(padded, other, bias, *steps)),
        ({"bias": DROPPED}, convolved(padded, weight, nothing, *steps)),
        ({"weight": other, "bias": bias[::-1]}, convolved(padded, other, bias[::-1], *steps)),
    ):
        alternative = Alternative("", "", weights=changes)
        assert unfolded.takes(alternative)
        found = unfolded.own_result_of(alternative)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_what_follows_the_layer_follows_the_product(case_of):
    x, weight, bias = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), np.zeros(1)
    case = case_of(2, *(each.astype(np.float32) for each in (x, weight, bias)))
    doubled = Alternative("", "", weights={"weight": 2 * weight}, after=np.negative)
    np.testing.assert_array_equal(unfold(case).own_result_of(doubled), [[[[-18]]]])


def test_only_weights_of_the_same_dtype_are_taken(case_of):
    shape = (KERNELS, CHANNELS, 3, 3)
    x = RNG.standard_normal((1, CHANNELS, 6, 6)).astype(np.float32)
    weight, bias = RNG.standard_normal(shape).astype(np.float32), np.zeros(KERNELS, np.float32)
    unfolded = unfold(case_of(2, x, weight, bias))
    for refused in (
        Alternative("", ""),
        Alternative("", "", weights={"weight": weight.astype(np.float16)}),
        Alternative("", "", weights={"weight": weight, "other": bias}),
        Alternative("", "", weights={"weight": weight}, params={"stride": (2, 2)}),
        Alternative("", "", weights={"weight": weight}, inputs=(x,)),
        Alternative("", "", weights={"weight": weight}, before=(0, np.abs)),
        Alternative("", "", weights={"weight": weight}, type="nn.ConvTranspose2d"),
    ):
        assert not unfolded.takes(refused)


def test_a_border_that_the_layer_refuses_is_no_product(case_of):
    x = np.ones((1, 1, 3, 3), np.float32)
    weight, bias = np.ones((1, 1, 3, 3), np.float32), np.zeros(1, np.float32)
    params = {"padding": (3, 3), "padding_mode": "reflect"}
    assert unfold(case_of(2, x, weight, bias, **params)) is None


def test_several_images_and_groups_are_no_product(case_of):
    x = RNG.standard_normal((2, 4, 6, 6)).astype(np.float32)
    bias = np.zeros(4, np.float32)
    for batch, width, groups in ((x, 4, 1), (x[:1], 2, 2)):
        weight = RNG.standard_normal((4, width, 3, 3)).astype(np.float32)
        assert unfold(case_of(2, batch, weight, bias, groups=groups)) is None
