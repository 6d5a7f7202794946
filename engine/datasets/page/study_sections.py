"""Parts of the page of a sweep: a calibration, and a comparison over all inputs."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from engine.datasets.against import AGAINST
from engine.datasets.against import REPORT as AGAINST_REPORT
from engine.datasets.calibration import CALIBRATION
from engine.datasets.calibration import REPORT as CALIBRATION_REPORT
from engine.file_versions import read_regular
from engine.text import format_brief, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from engine.datasets.results import Sweep

    Card = Callable[[int, list[str]], str]

__all__ = ["study_sections"]

_LARGEST: Final = 64 << 20  # bytes
_PICTURED: Final = 12


def study_sections(found: Sweep, card: Card) -> Iterator[str]:
    """Yield the parts of the studies whose results are in the folder of a sweep.

    Parameters
    ----------
    found : Sweep
    card : callable
        Takes the number of an input and lines of HTML; returns a card with its picture.
    """
    facts = _read(found, CALIBRATION, CALIBRATION_REPORT)
    if facts is not None:
        yield from _calibration(facts)
    facts = _read(found, AGAINST, AGAINST_REPORT)
    if facts is not None:
        yield from _against(facts, card)


def _read(found: Sweep, study: str, name: str) -> dict[str, Any] | None:
    if study not in found.studies:
        return None
    path: Path = found.path / name
    try:
        facts = json.loads(read_regular(path, _LARGEST))
    except (OSError, ValueError):  # not concluded
        return None
    return facts if isinstance(facts, dict) else None


def _calibration(facts: Mapping[str, Any]) -> Iterator[str]:
    methods = list(facts["output"])
    yield f"<h2>Calibration for int8 ({format_count(len(facts['layers']), 'layer')})</h2>"
    yield (
        '<p class="legend">Threshold of each layer\'s input by method, and the signal-to-noise '
        "ratio of the layer's result with it in dB; last, that of the model's output with only "
        f"this layer in int8, by {escape(facts['method'])}. The most harmful layer first.</p>"
    )
    yield '<div class="scroll"><table><thead><tr><th>Layer</th><th class="n">Largest</th>'
    yield '<th class="n">Weight bits</th>'
    yield "".join(f'<th class="n">{escape(method)}</th>' for method in methods)
    yield '<th class="n">Output</th></tr></thead><tbody>'
    for layer in sorted(facts["layers"], key=lambda each: -_relative(each["output_alone"])):
        cells = [
            format_brief(layer["largest"]),
            str(layer["weight_bits"]),
            *(
                f"{format_brief(layer['thresholds'][m]['threshold'])}: "
                f"{_decibels(layer['thresholds'][m])}"
                for m in methods
            ),
            _decibels(layer["output_alone"]),
        ]
        yield f"<tr><td>{escape(layer['name'])}</td>{_cells(cells)}</tr>"
    yield "</tbody></table></div>"
    rows = [(f"All layers in int8, {name}", each) for name, each in facts["output"].items()]
    if facts["keep_float32"] is not None:
        names = ", ".join(facts["keep_float32"]["layers"]) or "nothing"
        rows.append((f"In float32: {names}", facts["keep_float32"]["output"]))
    deployed = facts["ncnn"] or {}
    rows += [
        (f"ncnn as deployed, {'int8 pair' if name == 'int8' else 'as it is'}", each)
        for name, each in deployed.items()
    ]
    yield (
        '<p class="legend">The model\'s output against that in float32, on inputs that were '
        "not counted: signal-to-noise ratio, and largest difference relative to the largest "
        "element.</p>"
    )
    yield '<div class="scroll"><table><thead><tr><th>Output of the model</th>'
    yield '<th class="n">dB</th><th class="n">Difference</th><th class="n">Cosine</th>'
    yield '<th class="n">Same top-1</th></tr></thead><tbody>'
    for name, each in rows:
        cells = [
            _decibels(each),
            format_brief(_relative(each), 2),
            f"{each['cosine']:.4f}",
            f"{each['same_top1']} of {each['inputs']}",
        ]
        yield f"<tr><td>{escape(name)}</td>{_cells(cells)}</tr>"
    yield "</tbody></table></div>"


def _against(facts: Mapping[str, Any], card: Card) -> Iterator[str]:
    top1, accuracy = facts["top1"], facts["accuracy"]
    yield f"<h2>Against {escape(facts['reference'])}</h2>"
    texts = ["The reference does not have the first output, so no top-1 is compared."]
    if top1["inputs"]:
        texts = [f"Same top-1 in {top1['same']} of {format_count(top1['inputs'], 'input')}."]
    if accuracy is not None:
        count = accuracy["labelled"]
        texts.append(
            f"Right: {accuracy['right'] / count:.2%}, the reference "
            f"{accuracy['right_reference'] / count:.2%}, of "
            f"{format_count(count, 'labelled input')}."
        )
    if facts["failed"]:
        texts.append(f"The reference has nothing for {format_count(facts['failed'], 'input')}.")
    yield f"<p>{' '.join(texts)}</p>"
    yield (
        '<p class="legend">Largest difference of an operand, relative to the reference\'s '
        "largest element: median, 99th percentile and largest over the inputs.</p>"
    )
    yield '<div class="scroll"><table><thead><tr><th>Operand</th><th>Operator</th>'
    yield '<th>Reference</th><th class="n">Median</th><th class="n">p99</th>'
    yield '<th class="n">Largest</th><th class="n">Median dB</th><th class="n">Worst input</th>'
    yield "</tr></thead><tbody>"
    for row in facts["rows"]:
        if not row["compared"]:
            continue
        names = "".join(
            f"<td>{escape(row[n])}</td>" for n in ("operand", "operator", "reference")
        )
        cells = [
            *(format_brief(float(row["relative"][n]), 2) for n in ("median", "p99", "max")),
            f"{float(row['snr_db']['median']):.1f}",
            str(row["worst"][0]["input"]) if row["worst"] else "",
        ]
        yield f"<tr>{names}{_cells(cells)}</tr>"
    yield "</tbody></table></div>"
    worst = facts["worst"][:_PICTURED]
    if worst:
        yield f"<h2>Worst inputs against {escape(facts['reference'])}</h2>"
        yield '<div class="inputs">'
        for each in worst:
            off = format_brief(_relative(each), 2)
            lines = [f"operand {escape(each['operand'])}: off by {off}"]
            yield card(int(each["input"]), lines)
        yield "</div>"


def _cells(texts: list[str]) -> str:
    return "".join(f'<td class="n">{escape(text)}</td>' for text in texts)


def _relative(each: Mapping[str, Any]) -> float:
    return float(each["relative"])


def _decibels(each: Mapping[str, Any]) -> str:
    return f"{float(each['snr_db']):.1f}"
