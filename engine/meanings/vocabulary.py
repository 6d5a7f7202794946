"""The text of tokens, from files of tokenizers."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from engine.atomic import format_os_error
from engine.errors import MeaningError
from engine.file_versions import read_regular

__all__ = ["known_tokens", "numbered_tokens", "read_vocabulary", "visible_token"]

_LONGEST: Final = 64 << 20  # bytes of a file
_MOST_TOKENS: Final = 1 << 20


def read_vocabulary(path: str) -> tuple[str, ...]:
    """Read the text of tokens, in order of their numbers.

    Parameters
    ----------
    path : str
        Of Hugging Face's ``tokenizer.json``, a ``vocab.json`` of numbers by token, or text with
        a token per line.

    Raises
    ------
    MeaningError
        If the file cannot be read, or has no tokens.
    """
    file = Path(path)
    try:
        stamp = file.stat().st_mtime_ns
    except (OSError, ValueError) as exc:
        raise MeaningError(f"{path} cannot be read: {exc}") from exc
    return _read(path, stamp)


def known_tokens(path: str, labels: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return the text of the first tokens: of a vocabulary, or else of labels that fit.

    Parameters
    ----------
    path : str
        See `read_vocabulary`; ``""`` for no vocabulary.
    labels : tuple of str
        Names of classes. A model may have up to twice as many tokens, for its vocabulary is
        padded; with fewer labels they name something else.
    count : int
        Of tokens that the model has.

    Returns
    -------
    tuple of str
        Empty if nothing names the tokens.
    """
    if path:
        return read_vocabulary(path)
    return labels if len(labels) <= count < 2 * len(labels) else ()


def numbered_tokens(known: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return the text of each token; its number where none is known."""
    return known + tuple(str(each) for each in range(len(known), count))


def visible_token(token: str) -> str:
    """Show white space in a token."""
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥") or "∅"


@lru_cache(maxsize=2)  # the reading is asked again at each step of a slider
def _read(path: str, _stamp: int) -> tuple[str, ...]:
    try:
        text = read_regular(Path(path), _LONGEST).decode()
    except OSError as exc:
        raise MeaningError(f"{path} cannot be read: {format_os_error(exc)}") from exc
    except UnicodeDecodeError as exc:
        raise MeaningError(f"{path} is not UTF-8 text") from exc
    if not path.lower().endswith(".json"):
        return tuple(_plain(line) for line in text.splitlines()[:_MOST_TOKENS])
    try:
        numbers = _numbers(json.loads(text))
    except (ValueError, RecursionError) as exc:
        raise MeaningError(f"{path} is no vocabulary: {exc}") from exc
    if not numbers:
        raise MeaningError(f"{path} has no tokens")
    tokens = [""] * (max(numbers.values()) + 1)
    for token, number in numbers.items():
        tokens[number] = _plain(token)
    return tuple(tokens)


def _numbers(found: object) -> dict[str, int]:
    """Return numbers by token of what a JSON file has."""
    model = found.get("model") if isinstance(found, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else found
    pairs: list[tuple[Any, Any]]
    if isinstance(vocabulary, dict):
        pairs = list(vocabulary.items())
    elif isinstance(vocabulary, list):  # of SentencePiece's unigrams: token and score
        pieces = (each[0] if isinstance(each, list) and each else each for each in vocabulary)
        pairs = [(piece, number) for number, piece in enumerate(pieces)]
    else:
        return {}
    added = found.get("added_tokens") if isinstance(found, dict) else None
    for each in added if isinstance(added, list) else ():
        if isinstance(each, dict):
            pairs.append((each.get("content"), each.get("id")))
    return {
        token: number
        for token, number in pairs
        if isinstance(token, str) and type(number) is int and 0 <= number < _MOST_TOKENS
    }


def _byte_letters() -> dict[str, int]:
    """Return the bytes that GPT-2's tokenizers write as other letters."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    letters = {chr(byte): byte for byte in kept}
    return letters | {chr(256 + place): byte for place, byte in enumerate(others)}


_LETTERS: Final = _byte_letters()


def _plain(token: str) -> str:
    """Return the text of a token: of bytes (GPT-2), of SentencePiece, or of WordPiece."""
    if "\u2581" in token:
        return token.replace("\u2581", " ")
    if not token.isascii() and all(letter in _LETTERS for letter in token):
        return bytes(_LETTERS[letter] for letter in token).decode(errors="replace")
    return token
