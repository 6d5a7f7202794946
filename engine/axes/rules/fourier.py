"""Fourier transforms along a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule
from engine.axes.rules.elementwise import keep

if TYPE_CHECKING:
    from engine.axes.call import Call, Results

__all__: list[str] = []


@rule("fft.rfft")
def transform(call: Call) -> Results:
    """Replace a signal by its frequencies."""
    return _replace(call, Kind.TIME, Kind.FREQUENCY)


@rule("fft.irfft")
def invert(call: Call) -> Results:
    """Replace frequencies by a signal."""
    return _replace(call, Kind.FREQUENCY, Kind.TIME)


def _replace(call: Call, given: Kind, result: Kind) -> Results:
    """Replace one dimension; what is called time may also be another order of positions."""
    dims, shape = call.first, call.shape
    place = call.place("dim", len(dims), -1) if dims else None
    if dims is None or shape is None or place is None or len(shape) != len(dims):
        return []
    made = (call.factors.make(shape[place]),)
    for dim, kind in ((dims[place], given), (made, result)):
        is_time = kind is Kind.TIME
        call.factors.claim(dim, kind, Rank.DERIVED if is_time else Rank.EXPECTED)
    return [call.fit((*dims[:place], made, *dims[place + 1 :]))]


@rule("stft")
def follow(call: Call) -> Results:
    """Replace a signal by the frequencies of each of its frames."""
    dims, shape = call.first, call.shape
    if not dims or shape is None or len(shape) < len(dims) + 1:
        return []
    call.factors.claim(dims[-1], Kind.TIME, Rank.EXPECTED)
    made = call.factors.make_dims(shape[len(dims) - 1 :])
    parts = (Kind.PART,) * (len(made) - 2)
    call.claim(made, (Kind.FREQUENCY, Kind.TIME, *parts), Rank.EXPECTED)
    return [call.fit((*dims[:-1], *made))]


@rule("istft")
def join_frames(call: Call) -> Results:
    """Replace the frequencies of frames by the signal that they overlap to."""
    dims, shape = call.first, call.shape
    if dims is None or len(dims) < 2 or shape is None or len(shape) != len(dims) - 1:
        return []
    call.claim(dims[-2:], (Kind.FREQUENCY, Kind.TIME), Rank.EXPECTED)
    window = call.input("window", len(call.inputs))
    made = (call.factors.make(shape[-1]),)
    for dim in (made, *(window or ())):
        call.factors.claim(dim, Kind.TIME, Rank.EXPECTED)
    return [call.fit((*dims[:-2], made))]


@rule("viewasreal")
def split_complex(call: Call) -> Results:
    """Make the real and the imaginary parts a last dimension."""
    if call.first is None:
        return []
    parts = (call.factors.make(2),)
    call.factors.claim(parts, Kind.PART, Rank.EXPECTED)
    return [call.fit((*call.first, parts))]


@rule("viewascomplex")
def join_complex(call: Call) -> Results:
    """Join real and imaginary parts."""
    if not call.first:
        return []
    call.factors.claim(call.first[-1], Kind.PART, Rank.EXPECTED)
    return [call.fit(call.first[:-1])]


rule("real", "imag", "abs", "angle", "conj")(keep)
