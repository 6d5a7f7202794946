"""What the user chose for each model, remembered between runs: inputs and breakpoints."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.conversion.records import ConversionOptions
from engine.image_methods import FITS, RESAMPLINGS
from engine.inputs import ImageOptions, InputSource
from engine.paths import is_file
from kuiper_studio.session.meanings import MeaningChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from PySide6.QtCore import QSettings

    from engine.axes import Layout

__all__ = ["ModelChoices", "RememberedModels", "settings_key"]

# What reading settings raises that somebody has written into.
_DAMAGED: Final = (
    ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """What the user chose for a model.

    Attributes
    ----------
    sources : tuple of InputSource
        One per input, in order; empty where not all are known.
    options : ImageOptions
        How pictures become tensors.
    breakpoints : frozenset of str
        Names of operators.
    layouts : mapping of str to Layout
        What the user says that dimensions mean, by operand.
    bookmarks : frozenset of str
        Names of operators.
    roles : mapping of str to tuple of str
        Where axes go in the tensor view, by their meaning.
    meaning : MeaningChoice
        How the outputs are read.
    """

    sources: tuple[InputSource, ...] = ()
    options: ImageOptions = field(default_factory=ImageOptions)
    breakpoints: frozenset[str] = frozenset()
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    bookmarks: frozenset[str] = frozenset()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    meaning: MeaningChoice = field(default_factory=MeaningChoice)

    @property
    def missing(self) -> tuple[str, ...]:
        """Files of inputs that are gone, each once."""
        paths = (source.path for source in self.sources)
        return tuple(dict.fromkeys(str(p) for p in paths if p is not None and not is_file(p)))


class RememberedModels:
    """The choices in the settings, by the path of the model.

    Parameters
    ----------
    settings : QSettings
    """

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings

    def find(self, param: Path) -> ModelChoices | None:
        """What was chosen for a model; None where nothing was, or it cannot be read."""
        text = str(self._settings.value(settings_key("choices", param), ""))
        if not text:
            return None
        try:
            return _from_json(text)
        except _DAMAGED:
            return None  # somebody has written into the file, or another version has

    def store(self, param: Path, choices: ModelChoices) -> None:
        """Remember what is chosen for a model.

        Inputs that are arrays of this process cannot be; what was remembered before stays.
        """
        if not choices.sources or any(source.kind == "array" for source in choices.sources):
            before = self.find(param) or ModelChoices()
            choices = replace(choices, sources=before.sources, options=before.options)
        self._settings.setValue(settings_key("choices", param), _to_json(choices))

    def find_conversion(self, source: Path) -> ConversionOptions:
        """The sizes that a file was converted with the last time; none where there are none."""
        text = str(self._settings.value(settings_key("conversion", source), ""))
        try:
            first, second = json.loads(text or "[[], []]")
            return ConversionOptions(tuple(map(str, first)), tuple(map(str, second)))
        except _DAMAGED:
            return ConversionOptions()  # somebody has written into the file

    def store_conversion(self, source: Path, options: ConversionOptions) -> None:
        """Remember the sizes that a file is converted with."""
        text = json.dumps([options.shapes, options.shapes2])
        self._settings.setValue(settings_key("conversion", source), text)


def settings_key(kind: str, param: Path) -> str:
    """Where the settings keep something about a model."""
    path = str(param.absolute()).encode()
    return f"{kind}/{hashlib.sha256(path).hexdigest()[:16]}"


def _to_json(choices: ModelChoices) -> str:
    sources = [
        {
            "kind": source.kind,
            "path": str(source.path.absolute()) if source.path is not None else None,
            "member": source.member,
            "seed": source.seed,
            "value": source.value,
        }
        for source in choices.sources
    ]
    return json.dumps(
        {
            "sources": sources,
            "options": asdict(choices.options),
            "breakpoints": sorted(choices.breakpoints),
            "bookmarks": sorted(choices.bookmarks),
            "roles": dict(choices.roles),
            "meaning": asdict(choices.meaning),
            "layouts": {
                name: [axis.to_plain() for axis in layout.axes]
                for name, layout in choices.layouts.items()
            },
        }
    )


def _from_json(text: str) -> ModelChoices:
    found = json.loads(text)
    return ModelChoices(
        tuple(_source(item) for item in found["sources"]),
        _options(found["options"]),
        frozenset(str(name) for name in found["breakpoints"]),
        _layouts(found.get("layouts", {})),
        frozenset(str(name) for name in found.get("bookmarks", ())),
        {key: tuple(map(str, roles)) for key, roles in found.get("roles", {}).items()},
        _meaning(found.get("meaning", {})),
    )


def _meaning(item: dict[str, Any]) -> MeaningChoice:
    options = {
        str(name): value
        for name, value in item.get("options", {}).items()
        if isinstance(value, (str, float, int))
    }
    return MeaningChoice(str(item.get("reading", "")), options)


def _layouts(item: dict[str, Any]) -> dict[str, Layout]:
    if not item:
        return {}
    from engine.axes import Axis, Layout

    return {
        name: Layout(tuple([Axis.from_plain(axis) for axis in axes]))
        for name, axes in item.items()
    }


def _source(item: dict[str, Any]) -> InputSource:
    if item["kind"] not in {"image", "npy", "npz", "random", "constant"}:
        raise ValueError(f"{item['kind']!r} is no kind of input")
    path = Path(item["path"]) if item["path"] is not None else None
    return InputSource(
        item["kind"],
        path=path,
        member=str(item["member"]),
        seed=int(item["seed"]),
        value=float(item["value"]),
    )


_Name = TypeVar("_Name", bound=str)


def _one_of(found: object, names: Iterable[_Name]) -> _Name:
    """Return a name of several; the first where it is none."""
    first, *others = names
    return next((name for name in others if name == found), first)


def _options(item: dict[str, Any]) -> ImageOptions:
    size = item["size"]
    return ImageOptions(
        size=(int(size[0]), int(size[1])) if size else None,
        fit=_one_of(item["fit"], FITS),
        shorter_side=int(item["shorter_side"]) if item.get("shorter_side") else None,
        border=int(item.get("border", 114)),
        resampling=_one_of(item.get("resampling"), RESAMPLINGS),
        order="BGR" if item["order"] == "BGR" else "RGB",
        scale=float(item["scale"]),
        mean=tuple(float(number) for number in item["mean"]),
        std=tuple(float(number) for number in item["std"]),
    )
