"""Prescans a ``.param`` file: whether it is valid, and which weights it lists.

Making an object of every operator and operand takes ten times as long as splitting the lines.
So the graph of a long file is made on first use (`Graph.deferred`). Opening the file only
prescans its lines, in about three times the time of splitting them.

The prescan reports no errors. It accepts lines as pnnx writes them: argument names after
parameters, annotations last. If it is not certain that the reader accepts a file, the file is
read at once, and the reader reports errors.
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

__all__ = ["prescan"]


def prescan(reader: Reader) -> dict[str, int] | None:
    """Prescan a file.

    Parameters
    ----------
    reader : Reader
        Source of the lines.

    Returns
    -------
    dict of str to int, or None
        The bytes of each weight by the name of its entry in the ``.bin``, in file order and
        sorted within an operator. None if the file may have errors.
    """
    if not reader.plain:
        return None
    scan = _Prescan(reader)
    try:
        scan.check_lines(reader.lines)
    except (KeyError, IndexError, LineError):
        return None
    return dict(scan.weights()) if scan.is_sound() else None


class _Prescan:
    """State of the prescan.

    It processes every line of a file of any length, so the usual kind of line is checked inline
    in few steps.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._counts = Counts()
        self._names: list[str] = []
        self._produced = 0
        self._marks = 0  # number of valid annotations
        # By operand, its last annotation with its name; "" for none so far.
        self._notes: dict[str, str] = {}
        self._annotations: set[str] = set()  # valid ones, without a name
        # Weights by the text of valid parameters and weights.
        self._sections: dict[str, Weights] = {}
        self._weighted: list[tuple[str, Weights]] = []  # operators

    def check_lines(self, lines: Sequence[str]) -> None:
        """Check every operator; raises at the first unusual one."""
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
        """Return whether all lines together are consistent."""
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
        """Check an operator with two inputs and one output, all annotated, if it is one."""
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
        """Check an operator of any kind."""
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
        """Check parameters and weights, and the argument names after them."""
        if words[end - 1][0] == "$":
            end = self._skip_names(words, begin, end)
        text = " ".join(words[begin:end])
        weights = self._sections.get(text)
        if weights is None:
            weights = self._sections[text] = self._parse(text)
        if weights:
            self._weighted.append((words[1], weights))

    def _skip_names(self, words: list[str], begin: int, end: int) -> int:
        """Check argument names; return their start."""
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
