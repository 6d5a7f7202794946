"""What readings give: plain values that a window, a script or a terminal can show."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from engine.text import format_brief

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Boxes",
    "Classes",
    "Embedding",
    "Field",
    "FlowField",
    "KeyPoints",
    "LabelMap",
    "Picture",
    "Result",
    "Row",
    "Spectrogram",
    "Tokens",
    "Transcript",
]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a result.

    Attributes
    ----------
    entry : int
        Number of its class, point or token.
    name : str
    text : str
        The formatted score or value.
    share : float
        Length of its bar, 0 to 1; negative for no bar.
    detail : str
        What else is known, such as the corners of a box.
    """

    entry: int
    name: str
    text: str
    share: float = -1.0
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The best classes.

    Attributes
    ----------
    rows : tuple of Row
        Best first.
    count : int
        Of all classes.
    note : str
        What the scores are.
    """

    rows: tuple[Row, ...]
    count: int
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Detected objects, the surest first.

    Attributes
    ----------
    corners : ndarray of shape (B, 4)
        Left, top, right and bottom in pixels of the model's input.
    scores : ndarray of shape (B,)
    classes : ndarray of shape (B,), int64
    names : tuple of str
        Of the class of each box.
    size : (int, int)
        Height and width of the model's input.
    candidates : int
        How many boxes the model gave.
    passed : int
        How many of them had at least the threshold.
    masks : ndarray of shape (B, h, w), bool, or None
        Over the whole input, at a resolution of their own.
    points : ndarray of shape (B, K, 3) or None
        x, y and score of key points.
    turned : ndarray of shape (B, 5) or None
        Centre x and y, width, height and angle in radians of turned boxes; `corners` hold them.
    note : str
    """

    corners: npt.NDArray[np.float64] = field(repr=False)
    scores: npt.NDArray[np.float64] = field(repr=False)
    classes: npt.NDArray[np.int64] = field(repr=False)
    names: tuple[str, ...]
    size: tuple[int, int]
    candidates: int
    passed: int
    masks: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    points: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    turned: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """One per box."""
        return tuple(
            Row(entry, name, f"{score:.3f}", min(max(score, 0.0), 1.0), place)
            for entry, name, score, place in zip(
                self.classes.tolist(),
                self.names,
                self.scores.tolist(),
                self._places(),
                strict=True,
            )
        )

    def _places(self) -> list[str]:
        """Return where each box is: its edges, or centre, size and angle."""
        if self.turned is None:
            return [
                " ".join(f"{edge:.0f}" for edge in edges) for edges in self.corners.tolist()
            ]
        return [
            f"{x:.0f} {y:.0f} {width:.0f}×{height:.0f} {math.degrees(angle):.0f}°"
            for x, y, width, height, angle in self.turned.tolist()
        ]


@dataclass(frozen=True, slots=True, eq=False)
class LabelMap:
    """The class of each pixel.

    Attributes
    ----------
    labels : ndarray of shape (H, W), int32
    rows : tuple of Row
        The classes that occur, the most frequent first, with their share of the pixels.
    count : int
        Of all classes.
    expected : ndarray of shape (H, W), int32, or None
        The user's mask; -1 where it says nothing.
    note : str
    """

    labels: npt.NDArray[np.int32] = field(repr=False)
    rows: tuple[Row, ...]
    count: int
    expected: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    note: str = ""

    @property
    def has_background(self) -> bool:
        """Whether class 0 occurs and is no object."""
        return any(row.entry == 0 and row.name == "background" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class KeyPoints:
    """Points of one body.

    Attributes
    ----------
    points : ndarray of shape (K, 3)
        x and y in pixels of the model's input, and a score.
    names : tuple of str
    size : (int, int)
        Height and width of the input.
    note : str
    """

    points: npt.NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...]
    size: tuple[int, int]
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """One per point."""
        return tuple(
            Row(place, name, f"{score:.3f}", min(max(score, 0.0), 1.0), f"{x:.1f} {y:.1f}")
            for place, (name, (x, y, score)) in enumerate(
                zip(self.names, self.points.tolist(), strict=True)
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A number for each pixel, such as its depth.

    Attributes
    ----------
    values : ndarray of shape (H, W), float32
    low, high : float
        Range of the finite ones.
    note : str
    """

    values: npt.NDArray[np.float32] = field(repr=False)
    low: float
    high: float
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The range."""
        return (
            Row(0, "least", format_brief(self.low)),
            Row(1, "greatest", format_brief(self.high)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FlowField:
    """How far each pixel moves.

    Attributes
    ----------
    values : ndarray of shape (2, H, W), float32
        To the right and down, in pixels of the field.
    most, mean : float
        Greatest and mean speed.
    note : str
    """

    values: npt.NDArray[np.float32] = field(repr=False)
    most: float
    mean: float
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its speeds."""
        return (
            Row(0, "greatest speed", f"{format_brief(self.most)} px"),
            Row(1, "mean speed", f"{format_brief(self.mean)} px"),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture that the model made.

    Attributes
    ----------
    pixels : ndarray of shape (H, W, 3), uint8
    low, high : float
        What became black and white.
    scale : (int, int) or None
        How many times higher and wider than the input, where that is a whole number.
    note : str
    """

    pixels: npt.NDArray[np.uint8] = field(repr=False)
    low: float
    high: float
    scale: tuple[int, int] | None = None
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its size and range."""
        height, width = self.pixels.shape[:2]
        times = f"{self.scale[0]}× {self.scale[1]}×" if self.scale is not None else ""
        shown = f"{format_brief(self.low)} … {format_brief(self.high)}"
        return (
            Row(0, "size", f"{width}×{height}", detail=times),
            Row(1, "black … white", shown),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The likeliest tokens at a position.

    Attributes
    ----------
    rows : tuple of Row
        Best first.
    position : int
    count : int
        Of positions.
    words : int
        Size of the vocabulary.
    note : str
    """

    rows: tuple[Row, ...]
    position: int
    count: int
    words: int
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrogram:
    """Which frequencies a sound has, over time.

    Attributes
    ----------
    decibels : ndarray of shape (frequencies, frames), float32
        Below the loudest; the lowest frequency first.
    samples : int
        Length of the sound.
    rate : int
        Samples per second.
    loudest : float
        The frequency with the most energy, in Hz.
    peak : float
        Greatest magnitude of a sample.
    note : str
    """

    decibels: npt.NDArray[np.float32] = field(repr=False)
    samples: int
    rate: int
    loudest: float
    peak: float
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Length, frequency and peak."""
        return (
            Row(0, "length", f"{self.samples / self.rate:.3f} s", detail=f"{self.samples}"),
            Row(1, "strongest frequency", f"{self.loudest:.0f} Hz"),
            Row(2, "peak", format_brief(self.peak)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Transcript:
    """The text that frames along time spell.

    Attributes
    ----------
    rows : tuple of Row
        A token each, in order, without repetitions and blanks.
    text : str
        All of them together.
    best : ndarray of shape (frames,), int64
        The likeliest token of each frame.
    sure : ndarray of shape (frames,), float32
        Its probability.
    spans : ndarray of shape (rows, 2), int64
        First frame of each row, and the one after its last.
    blank : int
        The token that stands for none.
    step : float
        Seconds of a frame.
    note : str
    """

    rows: tuple[Row, ...]
    text: str
    best: npt.NDArray[np.int64] = field(repr=False)
    sure: npt.NDArray[np.float32] = field(repr=False)
    spans: npt.NDArray[np.int64] = field(repr=False)
    blank: int
    step: float
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A vector that stands for the input, and how near others are.

    Attributes
    ----------
    rows : tuple of Row
        Length and spread, then the cosine to each other vector, the nearest first.
    count : int
        Of features.
    note : str
    """

    rows: tuple[Row, ...]
    count: int
    note: str = ""


Result: TypeAlias = (
    Boxes
    | Classes
    | Embedding
    | Field
    | FlowField
    | KeyPoints
    | LabelMap
    | Picture
    | Spectrogram
    | Tokens
    | Transcript
)
