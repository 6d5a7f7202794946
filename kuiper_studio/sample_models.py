"""The sample models, described by the ``sample.json`` beside each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.inputs import ImageOptions, InputSource, parse_source, read_labels
from kuiper_studio.resource_paths import samples

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SampleModel", "default_sample", "find_samples"]

_DEFAULT = "digits"


@dataclass(frozen=True, slots=True)
class SampleModel:
    """A model that comes with the application.

    Attributes
    ----------
    name, title, description : str
    param : Path
    sources : tuple of InputSource
        One per input.
    options : ImageOptions
    labels : tuple of str
        Empty where the model does not classify.
    """

    name: str
    title: str
    description: str
    param: Path
    sources: tuple[InputSource, ...]
    options: ImageOptions
    labels: tuple[str, ...] = ()


def find_samples() -> tuple[SampleModel, ...]:
    """Return all samples, the default one first."""
    found = [_read(path) for path in sorted(samples().glob("*/sample.json"))]
    return tuple(sorted(found, key=lambda sample: sample.name != _DEFAULT))


def default_sample() -> SampleModel:
    """Return the default sample.

    Raises
    ------
    EngineError
        If no samples are installed.
    """
    found = find_samples()
    if not found:
        raise EngineError("no sample model is installed")
    return found[0]


def _read(path: Path) -> SampleModel:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    folder = path.parent
    labels = read_labels(folder / facts["labels"]) if facts.get("labels") else ()
    return SampleModel(
        name=facts["name"],
        title=facts["title"],
        description=facts["description"],
        param=folder / facts["model"],
        sources=tuple(parse_source(str(folder / item["file"])) for item in facts["inputs"]),
        options=_options(facts.get("image") or {}),
        labels=labels,
    )


def _options(facts: dict[str, Any]) -> ImageOptions:
    size = facts.get("size")
    return ImageOptions(
        size=(int(size[0]), int(size[1])) if size else None,
        order="BGR" if facts.get("order") == "BGR" else "RGB",
        scale=float(facts.get("scale", 1 / 255)),
        mean=tuple(float(value) for value in facts.get("mean", (0.0,))),
        std=tuple(float(value) for value in facts.get("std", (1.0,))),
    )
