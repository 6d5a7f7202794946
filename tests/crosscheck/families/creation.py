"""Tensors made of a size, of a tensor's size, or of numbers."""

from __future__ import annotations

import torch

from crosscheck.draw import FLOATS, Draw
from crosscheck.specification import Case, spec, specs

DTYPES = (None, *FLOATS, torch.int64, torch.int32, torch.bool)


@specs(dict.fromkeys(("zeros", "ones", "full"), ()))
def of_a_size(draw: Draw, name: str):
    size, dtype = draw.shape(draw.integer(0, 3)), draw.one(*DTYPES)
    number = (draw.integer(0, 3),) if name == "full" else ()
    function = getattr(torch, name)
    return Case(lambda x: (function(size, *number, dtype=dtype), x * 2), draw.normal(2))


@specs(dict.fromkeys(("zeros_like", "ones_like", "full_like"), ()))
def like(draw: Draw, name: str):
    dtype = draw.one(*DTYPES)
    number = (draw.integer(0, 3),) if name == "full_like" else ()
    function = getattr(torch, name)
    x = draw.tensor(*draw.shape(draw.integer(0, 3)), dtype=draw.one(*FLOATS, torch.int64))
    return Case(lambda x: function(x, *number, dtype=dtype), x)


@specs(dict.fromkeys(("new_zeros", "new_ones", "new_full"), ()))
def by_a_tensor(draw: Draw, name: str):
    size, dtype = draw.shape(draw.integer(0, 3)), draw.one(*DTYPES)
    number = (draw.integer(0, 3),) if name == "new_full" else ()
    x = draw.tensor(2, dtype=draw.one(*FLOATS, torch.int64))
    return Case(lambda x: getattr(x, name)(size, *number, dtype=dtype), x)


@specs(dict({
        "zeros_like": ("torch.zeros_like",), "ones_like": ("torch.ones_like",),
        "full_like": ("torch.full_like",), "new_zeros": ("Tensor.new_zeros",),
        "new_ones": ("Tensor.new_ones",), "new_full": ("aten::new_full",),
        "zeros": ("torch.zeros",), "ones": ("torch.ones",), "full": ("torch.full",),
        "arange": ("torch.arange",), "linspace": (), "eye": (),
    }.items()))  # fmt: skip
def of_a_dynamic_size(draw: Draw, name: str):
    """With a second size of input nothing of it can be folded."""
    dtype = draw.one(None, torch.float64, torch.int64)
    number = (draw.integer(0, 3),) if "full" in name else ()
    rank = draw.integer(1, 3)

    def make(x):
        if name == "arange":
            return torch.arange(x.shape[0], dtype=dtype) + x.sum()
        if name == "linspace":
            return torch.linspace(0, 1, x.shape[0]) + x.sum()
        if name == "eye":
            return torch.eye(x.shape[0]) + x.sum()
        if name.endswith("_like"):
            return getattr(torch, name)(x, *number, dtype=dtype)
        if name.startswith("new"):
            return getattr(x, name)(x.shape, *number, dtype=dtype)
        return getattr(torch, name)(x.shape, *number, dtype=dtype)

    return Case(
        make, draw.normal(*draw.shape(rank, 2, 4)), other=[draw.normal(*draw.shape(rank, 5, 7))]
    )


@specs({name: (f"aten::{name}_window",) for name in (
    "hann", "hamming", "blackman", "bartlett", "kaiser",
)})  # fmt: skip
def windows(draw: Draw, name: str):
    function = getattr(torch, f"{name}_window")
    numbers = {"hamming": (0.5, 0.4), "kaiser": (draw.number(0, 14),)}.get(name, ())
    arguments = draw.one((), (draw.flag(),), (draw.flag(), *numbers))
    more = draw.keywords(dtype=draw.one(*FLOATS))
    x, other = (draw.normal(2, draw.integer(1, 9)) for _ in range(2))
    return Case(lambda x: x * function(x.shape[1], *arguments, **more), x, other=[other])


@specs({"fftfreq": ("aten::fft_fftfreq",), "rfftfreq": ("aten::fft_rfftfreq",)})
def frequencies(draw: Draw, name: str):
    function, more = getattr(torch.fft, name), draw.keywords(d=draw.number(0.1, 3))
    x, other = (draw.normal(2, draw.integer(1, 9)) for _ in range(2))
    return Case(lambda x: function(x.shape[1], **more), x, other=[other])


@spec()
def arange(draw: Draw):
    start, step = draw.integer(-3, 3), draw.one(1, 2, 0.5)
    end = start + draw.integer(1, 6)
    dtype = draw.one(None, torch.float32, torch.int64)
    return Case(lambda x: torch.arange(start, end, step, dtype=dtype) + x, draw.normal(1))
