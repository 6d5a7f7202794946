"""Names of classes: the user's, or those of well-known data sets."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from engine.meanings.registry import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AUTOMATIC", "BODY", "NAMES", "class_names", "data_set"]

AUTOMATIC: Final = "automatic"
_NUMBERS: Final = "numbers"

NAMES: Final = Option(
    "names", "Names", "choice", AUTOMATIC,
    "Names of the classes. A file of labels comes first where it has as many names",
    (AUTOMATIC, "ImageNet", "COCO", "COCO 91", "VOC", "DOTA", _NUMBERS),
)  # fmt: skip

# By the number of classes, where that tells the data set.
_BY_COUNT: Final[Mapping[int, str]] = {
    1000: "ImageNet", 80: "COCO", 91: "COCO 91", 21: "VOC", 20: "VOC", 15: "DOTA",
}  # fmt: skip

BODY: Final = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder",
    "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip",
    "right hip", "left knee", "right knee", "left ankle", "right ankle",
)  # fmt: skip
"""The 17 key points of COCO."""


@cache
def data_set(name: str) -> tuple[str, ...]:
    """Return the names of a data set, one of `NAMES`."""
    file = "coco" if name == "COCO 91" else name.lower()
    text = resources.files("engine.meanings").joinpath(f"labels/{file}.txt").read_text("utf-8")
    names = tuple(text.splitlines())
    if name == "COCO":  # 80 numbers in a row, as YOLO has them
        return tuple(each for each in names if each not in {"__background__", "N/A"})
    return tuple("background" if each == "__background__" else each for each in names)


def class_names(
    count: int, labels: tuple[str, ...] = (), choice: str = AUTOMATIC
) -> tuple[str, ...]:
    """Return a name for each class.

    Parameters
    ----------
    count : int
        Of classes.
    labels : tuple of str
        The user's, which are used where there are as many.
    choice : str
        One of those of `NAMES`.

    Returns
    -------
    tuple of str
        Numbers where there is no name.
    """
    found: tuple[str, ...] = ()
    if choice == AUTOMATIC:
        if len(labels) == count:
            return labels
        choice = _BY_COUNT.get(count, _NUMBERS)
    if choice != _NUMBERS:
        found = data_set(choice)
        if choice == "VOC" and count == len(found) - 1:
            found = found[1:]  # without background
    return tuple(found[:count]) + tuple(str(each) for each in range(len(found), count))
