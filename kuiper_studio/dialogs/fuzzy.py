"""Fuzzy search by a few typed letters; no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

__all__ = ["FuzzyMatch", "Tier", "fuzzy_match", "has_words"]

_GAP_COST = 1000
_LEAST_OF_OTHER_WORD = 3  # letters: fewer begin too many words


class Tier(IntEnum):
    """Kind of match of a word; higher is better."""

    LETTERS = 0  # in order, the first at the start of a word
    OTHER_WORDS = 1  # begins another word for the same, which the text does not have
    INSIDE = 2
    WORD = 3  # at the start of a word
    START = 4  # at the start of the text or of one of its fields


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """How well a pattern matches a text.

    Attributes
    ----------
    tier : Tier
        Of the worst matching word.
    score : int
        Higher is better; comparable between texts for one pattern and tier. Gaps between
        letters and ranks of other words count most, then how short the text is.
    places : tuple of int
        Indexes of the matching characters, ascending.
    """

    tier: Tier
    score: int
    places: tuple[int, ...]


def fuzzy_match(
    pattern: str, text: str, fields: tuple[int, ...] = (), other_words: str = ""
) -> FuzzyMatch | None:
    """Match the words of a pattern, in any order, without regard to case.

    Parameters
    ----------
    pattern : str
        Words separated by blanks; an empty one matches everything alike.
    text : str
    fields : tuple of int
        Indexes at which fields of the text begin; they count like the start of the text.
    other_words : str
        Words that people use for the same, the best first. A word of the pattern may begin one
        of them.

    Returns
    -------
    FuzzyMatch or None
        None if a word is not in the text.
    """
    low = text.lower()
    if len(low) != len(text):  # the lower case of some letters has two characters, such as İ
        low = "".join(letter.lower()[0] for letter in text)
    tier, cost, places = Tier.START, 0, set[int]()
    for word in _words_of(pattern):
        found = _match_word(word, low, text, fields)
        if other_words and (found is None or found[0] is Tier.LETTERS):
            rank = _rank_among(word, other_words)
            if rank is not None:
                tier = min(tier, Tier.OTHER_WORDS)
                cost += rank * _GAP_COST
                continue
        if found is None:
            return None
        tier = min(tier, found[0])
        cost += _gaps(found[1]) * _GAP_COST
        places.update(found[1])
    return FuzzyMatch(tier, -cost - len(text), tuple(sorted(places)))


@lru_cache(maxsize=1)
def _words_of(pattern: str) -> tuple[str, ...]:
    """Return the words of a pattern, which is matched with thousands of texts."""
    return tuple(pattern.lower().split())


def _rank_among(word: str, other_words: str) -> int | None:
    """Return how many other words come before the first one that begins with a word."""
    if len(word) < _LEAST_OF_OTHER_WORD:
        return None
    ranks = (
        rank for rank, other in enumerate(other_words.lower().split()) if other.startswith(word)
    )
    return next(ranks, None)


def has_words(pattern: str, text: str) -> bool:
    """Return whether a text has the words of a pattern, more than as scattered letters."""
    found = fuzzy_match(pattern, text)
    return found is not None and found.tier > Tier.LETTERS


def _match_word(
    word: str, low: str, text: str, fields: tuple[int, ...]
) -> tuple[Tier, list[int]] | None:
    inside = low.find(word)
    if inside < 0:
        letters = _match_letters(word, low, text) if word[-1] in low else None
        return (Tier.LETTERS, letters) if letters is not None else None
    for start in (0, *fields):
        if low.startswith(word, start):
            return Tier.START, list(range(start, start + len(word)))
    place, tier = inside, Tier.INSIDE
    while inside >= 0:
        if _begins_word(text, inside):
            place, tier = inside, Tier.WORD
            break
        inside = low.find(word, inside + 1)
    return tier, list(range(place, place + len(word)))


def _match_letters(word: str, low: str, text: str) -> list[int] | None:
    """Match letters in order with the fewest gaps, the first at the start of a word.

    Two letters match too many texts, so both must begin words.
    """
    best: list[int] | None = None
    start = low.find(word[0])
    while start >= 0:
        if _begins_word(text, start):
            found = _match_from(word, low, text, start)
            if found is None:
                break  # a later start has fewer letters left
            meant = len(word) > 2 or _begins_word(text, found[-1])
            if meant and (best is None or _gaps(found) < _gaps(best)):
                best = found
        start = low.find(word[0], start + 1)
    return best


def _match_from(word: str, low: str, text: str, start: int) -> list[int] | None:
    """Choose for each letter the next place: adjacent, else at a word's start, else any."""
    places = [start]
    for done, letter in enumerate(word[1:], start=1):
        after = places[-1] + 1
        place = low.find(letter, after)
        if place < 0:
            return None
        if place != after:
            place = _at_word_start(letter, word[done + 1 :], low, text, place)
        places.append(place)
    return places


def _at_word_start(letter: str, rest: str, low: str, text: str, place: int) -> int:
    """Find a later place that begins a word and from which the rest still matches."""
    later = place
    while later >= 0 and not _begins_word(text, later):
        later = low.find(letter, later + 1)
    return later if later >= 0 and _has_letters(rest, low, later + 1) else place


def _has_letters(word: str, low: str, start: int) -> bool:
    for letter in word:
        start = low.find(letter, start) + 1
        if not start:
            return False
    return True


def _gaps(places: list[int]) -> int:
    return sum(after - before > 1 for before, after in pairwise(places))


def _begins_word(text: str, place: int) -> bool:
    if place == 0:
        return True
    before, here = text[place - 1], text[place]
    return not before.isalnum() or (here.isupper() and before.islower())
