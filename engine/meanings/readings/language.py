"""The next token of a language model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from engine.meanings.registry import Fit, Option, OutputReading, register_reading
from engine.meanings.results import Row, Tokens
from engine.meanings.scores import are_probabilities, best_scores, softmax
from engine.meanings.vocabulary import known_tokens, numbered_tokens, visible_token

if TYPE_CHECKING:
    from engine.meanings.ends import Ends, OutputEnd
    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = ["LENS", "NextToken", "add_layers"]

_FEWEST: Final = 1000  # words of a vocabulary
_FEWEST_LETTERS: Final = 16
_MOST: Final = 1 << 20
LENS: Final = "lens"


@register_reading
class NextToken(OutputReading):
    """Scores of all tokens at each position: (N, positions, vocabulary)."""

    name: ClassVar[str] = "tokens"
    title: ClassVar[str] = "Next token"
    options: ClassVar[tuple[Option, ...]] = (
        Option("top", "Best", "count", 10, "How many tokens are shown", low=1, high=100),
        Option(
            "position", "Position", "count", -1,
            "After which token; -1 is the last one", low=-1, high=1_000_000,
        ),
        Option(
            "vocabulary", "Vocabulary", "file", "",
            "tokenizer.json, vocab.json, or a text file with a token per line",
        ),
        Option(
            LENS, "Logit lens", "choice", "off",
            "The likeliest token after each layer: the sum there goes through the last norm "
            "and the head",
            ("off", "on"),
        ),
    )  # fmt: skip

    @override
    def fits_output(self, output: OutputEnd, ends: Ends) -> Fit:
        shape = output.shape
        is_text = ends.integers and output.has_vocabulary  # such as of letters
        fewest = _FEWEST_LETTERS if is_text else _FEWEST
        if len(shape) != 3 or not output.is_real or not fewest <= shape[2] <= _MOST:
            return Fit(0, "no output has scores of a vocabulary for each position")
        reason = f"an output has {shape[2]} scores at each of {shape[1]} positions"
        if ends.integers:
            return Fit(0.95 if shape[2] > 5000 else 0.7, reason)
        ends_well = output.ends_with("linear", "softmax", "log_softmax", "matmul", among=2)
        return Fit(0.55 if ends_well else 0.3, reason)

    @override
    def read_output(self, values: Array, output: OutputEnd, context: ReadingContext) -> Tokens:
        positions, words = values.shape
        wanted = int(context.number("position"))
        position = positions - 1 if wanted < 0 else min(wanted, positions - 1)
        scores = values[position]
        known = known_tokens(context.text("vocabulary"), context.labels, words)
        names = numbered_tokens(known, words)
        sure = scores if are_probabilities(scores) else softmax(scores)
        raw: Array | None = None if sure is scores else scores
        top = int(context.number("top"))
        rows = best_scores(sure, names, top, as_percentages=True, raw=raw)
        note = "" if known else "numbers of tokens; choose a vocabulary for their text"
        shown = tuple(
            Row(row.entry, visible_token(row.name), row.text, row.share, row.detail)
            for row in rows
        )
        return Tokens(shown, position, positions, words, note)


def add_layers(
    result: Tokens, layers: list[tuple[str, Array]], known: tuple[str, ...]
) -> Tokens:
    """Add the likeliest token after each layer to those at the end.

    Parameters
    ----------
    result : Tokens
    layers : list of (str, ndarray of shape (vocabulary,))
        Operands and scores, the earliest first; empty if the model has no lens.
    known : tuple of str
        Text of the first tokens.
    """
    if not layers:
        note = "the model does not end with a norm and a head, so there is no logit lens"
        return replace(result, note="; ".join(filter(None, (result.note, note))))
    names, rows = numbered_tokens(known, result.words), []
    for operand, scores in layers:
        (best,) = best_scores(softmax(scores), names, 1, as_percentages=True) or (None,)
        if best is not None:
            detail = f"after operand {operand}"
            rows.append(
                Row(best.entry, visible_token(best.name), best.text, best.share, detail)
            )
    note = f"logit lens: the last {len(rows)} rows, the earliest layer first"
    return replace(
        result,
        rows=(*result.rows, *rows),
        note="; ".join(filter(None, (result.note, note))),
    )
