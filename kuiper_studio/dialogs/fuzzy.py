"""Finding what a few typed letters may mean; no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FuzzyMatch", "fuzzy_match"]

_AT_START: Final = 8
_AT_WORD: Final = 6
_IN_A_ROW: Final = 5
_PER_SKIP: Final = 1


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """How well a pattern fits a text.

    Attributes
    ----------
    score : int
        Higher is better; comparable between texts for one pattern.
    places : tuple of int
        Indexes of the characters that matched, rising.
    """

    score: int
    places: tuple[int, ...]


def fuzzy_match(pattern: str, text: str) -> FuzzyMatch | None:
    """Match the words of a pattern, each as letters in order, without regard to case.

    Letters at the beginning of words and letters in a row count more; a shorter text wins
    over a longer one.

    Parameters
    ----------
    pattern : str
        Words separated by blanks; an empty one matches everything alike.
    text : str

    Returns
    -------
    FuzzyMatch or None
        None if a word is not in the text.
    """
    low = text.lower()
    score, places = 0, set[int]()
    for word in pattern.lower().split():
        found = _match_word(word, low, text)
        if found is None:
            return None
        score += found.score
        places.update(found.places)
    return FuzzyMatch(score * 100 - len(text), tuple(sorted(places)))


def _match_word(word: str, low: str, text: str) -> FuzzyMatch | None:
    """Best match of one word that begins at any of its possible places."""
    best: FuzzyMatch | None = None
    start = low.find(word[0])
    while start >= 0:
        found = _match_from(word, low, text, start)
        if found is None:
            break  # a later start has fewer letters left
        if best is None or found.score > best.score:
            best = found
        start = low.find(word[0], start + 1)
    return best


def _match_from(word: str, low: str, text: str, start: int) -> FuzzyMatch | None:
    """Match that takes the nearest letter each time."""
    places = [start]
    score = _bonus(text, start)
    for letter in word[1:]:
        before = places[-1]
        place = low.find(letter, before + 1)
        if place < 0:
            return None
        skipped = place - before - 1
        score += _IN_A_ROW if not skipped else _bonus(text, place) - min(5, skipped) * _PER_SKIP
        places.append(place)
    return FuzzyMatch(score, tuple(places))


def _bonus(text: str, place: int) -> int:
    if place == 0:
        return _AT_START
    before, here = text[place - 1], text[place]
    begins = not before.isalnum() or (here.isupper() and before.islower())
    return _AT_WORD if begins else 0
