"""A quick look through a ``.param`` file, for whether it is sound and what weights it lists.

To make an object of every operator and operand takes ten times as long as to split the
lines. So the graph of a long file is made when somebody looks at it (`Graph.deferred`), and
to open it only means to look through its lines here, in about three times what splitting
them takes.

The look decides nothing about errors. It takes lines as pnnx writes them: argument names
behind parameters, annotations last. Where it is not sure that the reader would accept a file
it says so; then the file is read at once, and what is wrong is told by the reader.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING

from engine.pnnx.attribute import ITEMSIZES
from engine.pnnx.reader import Counts, LineError, parse_annotation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.pnnx.reader import Reader

    Weights = Sequence[tuple[str, int]]

__all__ = ["survey"]


def survey(reader: Reader) -> dict[str, int] | None:
    """Look through a file.

    Parameters
    ----------
    reader : Reader
        Whose lines are looked at.

    Returns
    -------
    dict of str to int, or None
        The bytes of each weight by the name of its entry in the ``.bin``, in file order and
        sorted within an operator. None when the file, as far as this can tell, may be wrong.
    """
    if not reader.plain:
        return None
    look = _Look(reader)
    try:
        look.go_through(reader.lines)
    except (KeyError, IndexError, LineError):
        return None
    return dict(look.weights()) if look.is_sound() else None


class _Look:
    """What has been seen of a file so far.

    It goes through every line of a file of any length, so what nearly all lines are like is
    checked in place and in few steps.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._counts = Counts()
        self._names: list[str] = []
        self._produced = 0
        self._marks = 0  # annotations, each of which is sound
        # By operand, its last annotation with its name; "" where there is none so far.
        self._notes: dict[str, str] = {}
        self._annotations: set[str] = set()  # sound ones, without a name
        # By the text of parameters and weights that are sound, what weights they are.
        self._sections: dict[str, Weights] = {}
        self._weighted: list[tuple[str, Weights]] = []  # operators

    def go_through(self, lines: Sequence[str]) -> None:
        """Look at every operator; raises when one is not as it should be."""
        notes, annotations, see = self._notes, self._annotations, self._names.append
        annotated = bare = 0
        usual = "\0"  # "=" and the last sound annotation of an output, which often recurs
        for words in map(str.split, islice(lines, 2, None)):
            see(words[1])
            size = len(words)
            if size > 7 and words[2] == "1" == words[3]:
                made, note = words[5], words[size - 1]
                sound = note == "#" + made + usual
                if not sound:
                    head, _, annotation = note.partition("=")
                    sound = head == "#" + made and annotation in annotations
                    usual = "=" + annotation if sound else usual
                if sound and notes[words[4]] == words[size - 2]:
                    notes[made] = note
                    annotated += 1
                    if size > 8:
                        self._look_at_section(words, 6, size - 2)
                    continue
            elif size == 6 and words[2] == "1" == words[3]:
                notes[words[4]]  # raises where nothing above produces it
                notes[words[5]] = ""
                bare += 1
                continue
            if words[2] != "2" or not self._takes_two(words, size):
                self._look_at(words)
        self._produced += annotated + bare
        self._marks += 2 * annotated

    def is_sound(self) -> bool:
        """What only all lines together tell."""
        return (
            len(set(self._names)) == len(self._names)
            and len(self._notes) == self._produced
            and self._reader.read_header() == (len(self._names), len(self._notes))
            and self._marks == self._reader.marks  # nothing else begins with "#"
            and "=" not in "".join(self._notes)
        )

    def weights(self) -> Iterator[tuple[str, int]]:
        """Entries and bytes of the weights."""
        for name, weights in self._weighted:
            for key, nbytes in weights:
                yield f"{name}.{key}", nbytes

    def _takes_two(self, words: list[str], size: int) -> bool:
        """Look at an operator of two inputs and an output, all annotated, if it is one."""
        notes = self._notes
        if words[3] != "1" or size < 10:
            return False
        made, note, end = words[6], words[size - 1], size - 3
        head, _, annotation = note.partition("=")
        if not (
            head == "#" + made
            and annotation in self._annotations
            and notes[words[4]] == words[end]
            and notes[words[5]] == words[end + 1]
        ):
            return False
        notes[made] = note
        self._produced += 1
        self._marks += 3
        if size > 10:
            self._look_at_section(words, 7, end)
        return True

    def _look_at(self, words: list[str]) -> None:
        """Look at an operator of any kind."""
        notes = self._notes
        taken, made = self._counts[words[2]], self._counts[words[3]]
        begin = 4 + taken + made
        for operand in words[4 : 4 + taken]:
            notes[operand]  # raises where nothing above produces it
        if len(words) < begin:
            raise LineError
        for operand in words[4 + taken : begin]:
            notes[operand] = ""
        self._produced += made
        rest = range(begin, len(words))
        end = next((place for place in rest if words[place][0] == "#"), len(words))
        for note in words[end:]:
            self._look_at_note(note)
        self._marks += len(words) - end
        if begin < end:
            self._look_at_section(words, begin, end)

    def _look_at_note(self, note: str) -> None:
        head, _, annotation = note.partition("=")
        operand = head[1:]
        if head[0] != "#" or operand not in self._notes:
            raise LineError
        if annotation not in self._annotations:
            parse_annotation(annotation)
            self._annotations.add(annotation)
        self._notes[operand] = note

    def _look_at_section(self, words: list[str], begin: int, end: int) -> None:
        """Look at parameters and weights, and at the names of arguments behind them."""
        if words[end - 1][0] == "$":
            end = self._skip_names(words, begin, end)
        text = " ".join(words[begin:end])
        weights = self._sections.get(text)
        if weights is None:
            weights = self._sections[text] = self._parse(text)
        if weights:
            self._weighted.append((words[1], weights))

    def _skip_names(self, words: list[str], begin: int, end: int) -> int:
        """Check the names of arguments; return where they begin."""
        argument, _, operand = words[end - 1].partition("=")
        first = end - 1
        if words[first - 1][0] != "$" and words[2] == "1":  # as usual a single one
            if argument == "$" or operand != words[4]:
                raise LineError
            return first
        while first > begin and words[first - 1][0] == "$":
            first -= 1
        pairs = [word.partition("=") for word in words[first:end]]
        inputs = words[4 : 4 + self._counts[words[2]]]
        for argument, _, operand in pairs:
            if argument == "$" or operand not in inputs:
                raise LineError
        for place in (0, 2):
            if len(pairs) > 1 and len({pair[place] for pair in pairs}) < len(pairs):
                raise LineError  # which the reader may accept: an operand can be taken twice
        return first

    def _parse(self, text: str) -> Weights:
        if "#" in text or "$" in text:
            raise LineError
        weights = sorted(self._reader.parse_section(text).weights.items())
        return tuple(
            (key, math.prod(shape) * ITEMSIZES[dtype]) for key, (dtype, shape) in weights
        )
