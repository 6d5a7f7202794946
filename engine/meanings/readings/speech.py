"""Text of speech or of a picture of a line: scores of letters along time, by CTC."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from typing_extensions import override

from engine.errors import MeaningError
from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Row, Transcript
from engine.meanings.scores import are_probabilities, softmax
from engine.meanings.vocabulary import known_tokens, numbered_tokens, visible_token
from engine.text import format_share

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["Ctc"]

_FEWEST: Final = 8  # tokens, the blank among them
_MOST: Final = 8192
_SHORTEST: Final = 8  # frames
_WAVE: Final = 1000  # samples
_FEWEST_BANDS: Final = 16
_BLANKS: Final = frozenset({"<pad>", "[PAD]", "<blank>", "<blk>", "<eps>", "ε", "-", "_"})
_SPACE: Final = "|"  # between words, of wav2vec2 and those after it


@register_reading
class Ctc(OutputReading):
    """Scores of tokens at each frame: (N, frames, tokens), or (frames, 1, tokens)."""

    name: ClassVar[str] = "ctc"
    title: ClassVar[str] = "Text along time: CTC"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "vocabulary", "Vocabulary", "file", "",
            "vocab.json, tokenizer.json, or a text file with a token per line",
        ),
        Option(
            "blank", "Blank", "count", -1,
            "Number of the token that stands for none; -1 takes the vocabulary's, or else the "
            "first or the last one, whichever is best at more frames",
            low=-1, high=_MOST - 1,
        ),
        Option("step", "ms/frame", "count", 20, "Milliseconds of a frame", low=1, high=1000),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape = output.shape
        frames, tokens = (_frames(shape), shape[2]) if len(shape) == 3 else (0, 0)
        if not output.is_real or frames < _SHORTEST or not _FEWEST <= tokens <= _MOST:
            return Fit(0, "no output has scores of tokens for each of many frames")
        reason = f"an output has {tokens} scores at each of {frames} frames"
        if ends.integers:
            return Fit(0.2, reason)
        if output.ends_with("log_softmax", "logsoftmax", among=3):
            return Fit(0.85 if ends.picture is None else 0.65, reason)
        is_wave = any(_is_wave(shape) for shape in ends.inputs)
        if is_wave and output.ends_with("linear", "softmax", among=2):
            return Fit(0.8, reason)
        if _has_spectrogram(ends, frames) and output.ends_with("conv1d", among=2):
            return Fit(0.7, reason)
        return Fit(0.3 if output.ends_with("linear", "softmax", among=3) else 0.1, reason)

    @override
    def read_output(
        self, values: Array, output: OutputEnd, context: ReadingContext
    ) -> Transcript:
        if _is_time_first(output.shape):
            values = context.arrays[context.ends.outputs.index(output)][:, 0]
        tokens = values.shape[1]
        known = known_tokens(context.text("vocabulary"), context.labels, tokens)
        names = numbered_tokens(known, tokens)
        sure = np.nan_to_num(_probabilities(values))
        best = sure.argmax(1)
        blank = _find_blank(int(context.number("blank")), known, best, tokens)
        step = context.number("step") / 1000
        spans = [span for span in _runs(best) if best[span[0]] != blank]
        rows = []
        for start, stop in spans:
            entry = int(best[start])
            share = float(sure[start:stop, entry].max())
            when = f"{start * step:.2f}–{stop * step:.2f} s"
            rows.append(Row(entry, _shown(names[entry]), format_share(share), share, when))
        words = "".join(names[row.entry] for row in rows) if known else ""
        text = words.replace(_SPACE, " ") or " ".join(row.name for row in rows)
        note = f"blank is token {blank}"
        if not known:
            note += "; numbers of tokens; choose a vocabulary for their text"
        return Transcript(
            tuple(rows),
            text,
            best.astype(np.int64),
            sure.max(1).astype(np.float32),
            np.array(spans, np.int64).reshape(-1, 2),
            blank,
            step,
            note,
        )


def _frames(shape: tuple[int, ...]) -> int:
    return shape[0] if _is_time_first(shape) else shape[1]


def _is_wave(shape: tuple[int, ...]) -> bool:
    """Whether an input is one wave form; it may also be a single number."""
    return shape[-1:] >= (_WAVE,) and math.prod(shape[1:-1]) == 1


def _has_spectrogram(ends: Ends, frames: int) -> bool:
    """Whether an input is a spectrogram, (N, moments, bands), of which frames are taken."""
    return any(
        len(shape) == 3
        and shape[2] >= _FEWEST_BANDS
        and shape[1] // 16 <= frames <= shape[1] // 2
        for shape in ends.inputs
    )


def _is_time_first(shape: tuple[int, ...]) -> bool:
    return shape[1] == 1 < shape[0]


def _probabilities(values: Array) -> Array:
    """Return a probability for each token at each frame."""
    if are_probabilities(values[0]) and are_probabilities(values[-1]):
        return values.astype(np.float64)
    return softmax(values)  # of logarithms of probabilities, these again


def _find_blank(wanted: int, names: tuple[str, ...], best: Array, tokens: int) -> int:
    """Return the number of the token that stands for none."""
    if wanted >= tokens:
        raise MeaningError(f"blank must be below {tokens}, the number of tokens, not {wanted}")
    if wanted >= 0:
        return wanted
    known = [number for number, name in enumerate(names) if name in _BLANKS]
    if known:
        return known[0]
    return tokens - 1 if (best == tokens - 1).sum() > (best == 0).sum() else 0


def _runs(best: Array) -> list[tuple[int, int]]:
    """Return where the same token is best: first frame, and the one after the last."""
    edges = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist(), len(best)]
    return list(pairwise(edges))


def _shown(token: str) -> str:
    return visible_token(" " if token == _SPACE else token)
