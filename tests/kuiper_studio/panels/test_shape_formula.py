"""Expected sizes are worked out by hand from PyTorch's formulas, or counted by a slow loop."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuiper_studio.panels.shape_formula import size_formulas


def operator(kind: str, weight: tuple[int, ...] | None = None, **params: object):
    attributes = {"weight": SimpleNamespace(shape=weight)} if weight is not None else {}
    return SimpleNamespace(type=kind, params=params, attributes=attributes, inputs=())


def spelled(kind: str, shape, weight=None, **params) -> list[tuple[tuple[str, ...], str, int]]:
    return [
        (formula.axes, formula.expression, formula.size)
        for formula in size_formulas(operator(kind, weight, **params), shape)
    ]


def test_the_picture() -> None:
    conv = {"kernel_size": (3, 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1)}
    assert spelled("nn.Conv2d", (1, 64, 56, 56), **conv) == [
        (("H", "W"), "⌊(56 + 2·1 − 1·(3−1) − 1) / 1⌋ + 1", 56)
    ]


@pytest.mark.parametrize(
    ("kind", "shape", "params", "sizes"),
    [
        # ⌊(224 + 6 − 6 − 1) / 2⌋ + 1 = 112
        ("nn.Conv2d", (1, 3, 224, 224), {"kernel_size": (7, 7), "stride": (2, 2),
         "padding": (3, 3)}, [112]),
        # H: ⌊(10 − 4 − 1) / 1⌋ + 1 = 6, W: ⌊(9 + 2 − 2 − 1) / 2⌋ + 1 = 5
        ("nn.Conv2d", (1, 1, 10, 9), {"kernel_size": (3, 3), "stride": (1, 2),
         "padding": (0, 1), "dilation": (2, 1)}, [6, 5]),
        ("nn.Conv1d", (1, 4, 100), {"kernel_size": (5,), "stride": (1,), "padding": (2,)},
         [100]),
        ("nn.Conv3d", (1, 1, 4, 6, 8), {"kernel_size": (3, 3, 3), "stride": (1, 1, 1),
         "padding": (1, 0, 1)}, [4, 4, 8]),
        ("F.conv2d", (1, 1, 8, 8), {"weight": (2, 1, 5, 5), "stride": 1, "padding": 0}, [4]),
        ("nn.Conv2d", (1, 1, 8, 8), {"kernel_size": (3, 3), "padding": "same"}, [8]),
        ("nn.Conv2d", (1, 1, 8, 8), {"kernel_size": (3, 3), "padding": "valid"}, [6]),
        # A pooling without a stride steps by its window: ⌊(9 − 2) / 3⌋ + 1 = 3
        ("F.max_pool2d", (1, 1, 9, 9), {"kernel_size": 3}, [3]),
        ("F.avg_pool2d", (1, 1, 9, 9), {"kernel_size": (2, 2), "stride": None}, [4]),
        ("nn.MaxPool2d", (1, 1, 10, 10), {"kernel_size": 3, "stride": 2, "ceil_mode": True},
         [5]),
        # (4 − 1)·2 − 2·1 + 1·(4 − 1) + 0 + 1 = 8
        ("nn.ConvTranspose2d", (1, 8, 4, 4), {"kernel_size": (4, 4), "stride": (2, 2),
         "padding": (1, 1)}, [8]),
        # (5 − 1)·2 − 2·1 + 1·(3 − 1) + 1 + 1 = 10
        ("F.conv_transpose1d", (1, 8, 5), {"weight": (8, 4, 3), "stride": 2, "padding": 1,
         "output_padding": 1}, [10]),
    ],
)  # fmt: skip
def test_sizes(kind, shape, params, sizes) -> None:
    found = size_formulas(operator(kind, **params), shape)
    by_axis = {axis: formula.size for formula in found for axis in formula.axes}
    expected = sizes if len(sizes) > 1 else sizes * len(by_axis)
    assert list(by_axis.values()) == expected


def test_ceil_mode_drops_a_window_that_begins_behind_the_input() -> None:
    # ⌈(3 + 2 − 1 − 1) / 2⌉ + 1 = 3, but the third window would begin at 4 ≥ 3 + 1.
    ((_, text, size),) = spelled(
        "nn.MaxPool2d", (1, 1, 3, 3), kernel_size=2, stride=2, padding=1, ceil_mode=True
    )
    assert text == "⌈(3 + 2·1 − 1·(2−1) − 1) / 2⌉ + 1 − 1"
    assert size == 2


@pytest.mark.parametrize(
    ("kind", "shape", "params"),
    [
        ("nn.ReLU", (1, 3, 8, 8), {}),
        ("nn.AdaptiveAvgPool2d", (1, 3, 8, 8), {"output_size": (1, 1)}),
        ("nn.Conv2d", None, {"kernel_size": (3, 3)}),
        ("nn.Conv2d", (1, 3, None, "%w"), {"kernel_size": (3, 3)}),
        ("nn.Conv2d", (1, 3, 8, 8), {}),
        ("nn.Conv2d", (1, 3, 8, 8), {"kernel_size": (3, 3), "stride": (0, 0)}),
        ("nn.Conv2d", (1, 3, 8, 8), {"kernel_size": (2, 2), "padding": "same"}),
        ("nn.Conv2d", (1, 3, 8, 8), {"kernel_size": "%k"}),
        ("F.conv2d", (1, 3, 8, 8), {}),
    ],
)
def test_no_formula_without_the_facts(kind, shape, params) -> None:
    assert size_formulas(operator(kind, **params), shape) == ()


def windows(size, kernel, stride, padding, dilation) -> int:
    """Count the places where a window fits, one by one."""
    reach = dilation * (kernel - 1)
    start, count = -padding, 0
    while start + reach < size + padding:
        count += 1
        start += stride
    return count


@given(
    size=st.integers(1, 30),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 4),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 3),
)
def test_against_counting(size, kernel, stride, padding, dilation) -> None:
    expected = windows(size, kernel, stride, padding, dilation)
    ((_, _, found),) = spelled(
        "nn.Conv1d", (1, 1, size), kernel_size=(kernel,), stride=(stride,),
        padding=(padding,), dilation=(dilation,),
    )  # fmt: skip
    assert max(0, found) == expected
