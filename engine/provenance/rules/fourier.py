"""Real results of Fourier transforms: sums of frequencies, and magnitudes of frequencies."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.layers.arguments import axes_of, axis_of
from engine.layers.fourier import points_of
from engine.layers.spectrum import (
    centre_window,
    extend_signal,
    istft,
    spectrogram,
    window_norm,
)
from engine.provenance.arithmetic import add_up, format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, take
from engine.provenance.records import Factor, Interval
from engine.provenance.table import codes_of, explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.records import Box, Breakdown
    from engine.values import Array

__all__ = [
    "TO_REAL",
    "Frames",
    "ToReal",
    "explain_magnitude",
    "explain_piece",
    "explain_real",
    "locate_magnitude",
    "locate_piece",
    "locate_real",
    "order_of_samples",
    "read_frames",
    "read_real",
    "spectrogram_scale",
]

_NAMES: Final = ("irfft", "hfft")
_CODES: Final = {
    name: codes_of(*[f"torch.fft.{name}{end}" for end in ("", "2", "n")]) for name in _NAMES
}
TO_REAL: Final = tuple([code for codes in _CODES.values() for code in codes])
"""Transforms of one half of a symmetric spectrum, whose results are real."""


class ToReal(NamedTuple):
    """The arguments of a transform to real numbers.

    Attributes
    ----------
    input : Operand
    axes, points : tuple of int
        The transformed dimensions, the halved one last, and the points along each.
    sign : int
        Of the exponent.
    scale : float
    """

    input: Operand
    axes: tuple[int, ...]
    points: tuple[int, ...]
    sign: int
    scale: float

    def used(self, place: int) -> int:
        """Return how many positions count along a transformed dimension."""
        points = self.points[place]
        most = points // 2 + 1 if place == len(self.axes) - 1 else points
        return min(self.input.shape[self.axes[place]], most)

    def counts(self, place: int) -> npt.NDArray[np.float64]:
        """Return how often each position counts: those of the half that has a mirror, twice."""
        counts = np.ones(self.used(place))
        if place == len(self.axes) - 1:
            counts[1 : (self.points[place] + 1) // 2] = 2
        return counts


def read_real(call: Call) -> ToReal:
    """Return the arguments of a transform to real numbers."""
    given, input = call.arguments, call.array("input")
    name = next(each for each in _NAMES if call.layer_code in _CODES[each])
    dim = given["dim"]
    if "n" in given:
        sizes = given["n"]
        axes: tuple[int, ...] = (axis_of(dim, input.ndim),)
    else:
        sizes = given["s"]
        axes = axes_of(dim, input.ndim)
        if sizes is not None and dim is None:
            axes = axes[len(axes) - len(sizes) :]
    points = points_of(name, input.shape, sizes, axes)
    is_inverse = name == "irfft"
    divides = {"forward": not is_inverse, "ortho": True}.get(given["norm"], is_inverse)
    power = 0.5 if given["norm"] == "ortho" else 1.0
    scale = float(np.prod(points, dtype=float)) ** -power if divides else 1.0
    return ToReal(input, axes, points, 1 if is_inverse else -1, scale)


@explains(*TO_REAL)
def explain_real(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the frequencies, times the cosines and sines at the element's place."""
    found = read_real(call)
    places: list[Sequence[int]] = [[at] for at in index]
    waves: dict[int, Array] = {}
    for number, (axis, points) in enumerate(zip(found.axes, found.points, strict=True)):
        places[axis] = range(found.used(number))
        wave = _wave(found.used(number), index[axis], points, found.sign)
        waves[axis] = wave * found.counts(number)
    axes = sorted(waves)
    weights = reduce(np.multiply.outer, [waves[axis] for axis in axes]) * found.scale
    sizes = [len(places[axis]) for axis in axes]
    names = [f"dim {axis}" for axis in axes]
    return _add_frequencies(call, index, found.input, grid(*places), weights, sizes, names)


def _wave(count: int, place: int, points: int, sign: int) -> Array:
    """Return the complex exponentials of the first frequencies at a place."""
    turns = np.arange(count) * place % points
    wave: Array = np.exp(sign * 2j * np.pi * turns / points)
    return wave


def _add_frequencies(
    call: Call,
    index: tuple[int, ...],
    input: Operand,
    places: npt.NDArray[np.int64],
    weights: Array,
    sizes: Sequence[int],
    names: Sequence[str],
) -> Breakdown:
    """Sum the real parts of products of complex numbers."""
    flat = weights.reshape(-1)
    formula = f"y{format_index(index)} = Σ Re({input.name} · weight)"
    if input.dtype.kind != "c":
        factors = take(input, "input", places), make_factor("weight", flat.real)
        return add_up(call, formula, multiply(factors, sizes, names))
    numbers = input.value[tuple(places.T)].astype(np.complex128)
    values = np.concatenate([numbers.real, numbers.imag])
    both = np.concatenate([flat.real, -flat.imag])
    # A link leads to a number, and these have two parts.
    parts = Factor(
        f"Re, Im {input.name}", is_operand=False, indices=np.tile(places, (2, 1)), values=values
    )
    terms = multiply((parts, make_factor("weight", both)), (2, *sizes), ("part", *names))
    return add_up(call, formula, terms)


@locates(*TO_REAL)
def locate_real(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the transformed dimensions, as far as they count."""
    found = read_real(call)
    region = list(box)
    for number, axis in enumerate(found.axes):
        region[axis] = Interval.whole(found.used(number))
    return {found.input.name: tuple(region)}


class Frames(NamedTuple):
    """How pieces of a signal lie.

    Attributes
    ----------
    hop : int
        Distance of the starts of neighbouring pieces.
    taper : ndarray of shape (N,)
        The window, centred in a piece.
    window : Operand or None
    """

    hop: int
    taper: npt.NDArray[np.float64]
    window: Operand | None

    @property
    def operands(self) -> dict[str, Box]:
        """The window as a region, if it is an operand."""
        return {} if self.window is None else {self.window.name: self.window.whole}


def read_frames(call: Call) -> Frames:
    """Return how the pieces of a call lie."""
    given = call.arguments
    window = given["window"]
    array = window.value if isinstance(window, Operand) else window
    hop, taper = centre_window(given["n_fft"], given["hop_length"], given["win_length"], array)
    if taper.dtype.kind == "c":
        raise NoBreakdownError("a complex window has no breakdown")
    return Frames(hop, taper, window if isinstance(window, Operand) else None)


def _pieces(call: Call, frames: Frames, low: int, high: int) -> range:
    """Return the pieces that overlap a range of the signal."""
    size, count = len(frames.taper), call.array("input").shape[-1]
    first = size // 2 if call.arguments["center"] else 0
    start = max(0, -(-(low + first - size + 1) // frames.hop))
    return range(start, max(start, min(count, (high - 1 + first) // frames.hop + 1)))


@explains(istft)
def explain_piece(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the frequencies of all pieces that overlap the element."""
    input, frames, given = call.array("input"), read_frames(call), call.arguments
    size = len(frames.taper)
    pieces = np.array(_pieces(call, frames, index[-1], index[-1] + 1), np.int64)
    within = index[-1] + (size // 2 if given["center"] else 0) - pieces * frames.hop
    half = min(size // 2 + 1, input.shape[-2])
    counts = np.ones(half)
    counts[1 : (size + 1) // 2] = 2
    taper = frames.taper[within]
    shares = taper / (np.square(taper).sum() or 1.0) / size
    shares = shares * (np.sqrt(size) if given["normalized"] else 1.0)
    turns = np.multiply.outer(np.arange(half), within) % size
    weights = np.exp(2j * np.pi * turns / size) * counts[:, np.newaxis] * shares
    places = grid(*[[at] for at in index[:-1]], range(half), pieces)
    sizes, names = (half, len(pieces)), ("frequency", "piece")
    return _add_frequencies(call, index, input, places, weights, sizes, names)


@locates(istft)
def locate_piece(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the pieces that overlap the region, and the window."""
    input, frames = call.array("input"), read_frames(call)
    pieces = _pieces(call, frames, box[-1].start, box[-1].stop)
    found = dict(frames.operands)
    if len(pieces):
        region = Interval.whole(input.shape[-2]), Interval(pieces.start, pieces.stop)
        found[input.name] = (*box[:-1], *region)
    return found


def order_of_samples(call: Call) -> npt.NDArray[np.int64]:
    """Return the sample at each place of the padded signal; -1 for zeros."""
    given = call.arguments
    count, pad = call.array("waveform").shape[-1], given["pad"]
    numbers = np.pad(np.arange(1, count + 1), (pad, pad))
    if given["center"]:
        numbers = extend_signal(numbers, given["n_fft"] // 2, given["pad_mode"])
    found: npt.NDArray[np.int64] = numbers - 1
    return found


def spectrogram_scale(call: Call) -> float:
    """Return what the transforms of a spectrogram are multiplied by."""
    given = call.arguments
    if not given["normalized"]:
        return 1.0
    if given["normalized"] == "frame_length":
        return 1 / math.sqrt(given["n_fft"])
    window = given["window"]
    norm: float = window_norm(window.value if isinstance(window, Operand) else window)
    return 1 / norm


@explains(spectrogram)
def explain_magnitude(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Sum the samples of a piece, times what each adds to the magnitude of a frequency."""
    input, frames = call.array("waveform"), read_frames(call)
    *lead, frequency, piece = index
    size, power = len(frames.taper), float(call.arguments["power"])
    start = piece * frames.hop
    samples = order_of_samples(call)[start : start + size]
    rows = np.full((size, input.ndim), -1, np.int64)
    rows[:, :-1] = lead
    rows[:, -1] = samples
    x = take(input, "waveform", rows)
    wave = _wave(size, frequency, size, -1) * frames.taper * spectrogram_scale(call)
    total = complex((x.values * wave).sum())
    # Each sample turns the sum by its part in the sum's direction: these parts add up.
    stretch = abs(total) ** (power - 2) if total else 0.0
    weights = make_factor("weight", (total.conjugate() * wave).real * stretch)
    terms = multiply((x, weights), (size,), ("sample",))
    text = "" if power == 1 else f" · |s|{'' if power == 2 else f'^{power - 1:g}'}"
    formula = f"y{format_index(index)} = Σ {x.name} · window · cos(angle to s){text}"
    return add_up(call, formula, terms)


@locates(spectrogram)
def locate_magnitude(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the samples of the pieces, and the window."""
    input, frames = call.array("waveform"), read_frames(call)
    start = box[-1].start * frames.hop
    stop = (box[-1].stop - 1) * frames.hop + len(frames.taper)
    samples = order_of_samples(call)[start:stop]
    inside = samples[samples >= 0]
    found = dict(frames.operands)
    if inside.size:
        found[input.name] = (*box[:-2], Interval(int(inside.min()), int(inside.max()) + 1))
    return found
