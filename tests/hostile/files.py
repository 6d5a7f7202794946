"""Files that are read beside a model, damaged at random: ncnn pairs, references, settings.

Files that pnnx converts are damaged, too, and inspected; pnnx does not run.

A valid file is made, and changed in a few places by the seed: bytes, words of a text, or
values of JSON. Then it is used as the window and the command line use it.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import zipfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from ncnn_files import F16, INT8, f32, tagged, write_pair
from PIL import Image
from PySide6.QtCore import QSettings

import engine
from comparison_network import LINES, make_weights, truth
from engine.axes import Axis, Kind, Layout
from engine.comparison import compare, corrections_path, open_reference, write_corrections
from engine.comparison.recorders.writer import Writer, hash_of
from engine.comparison.references.sessions import run_to_end
from engine.comparison.report import write_report
from engine.conversion.inspection import inspect
from engine.conversion.shapes import settle_inputs
from engine.cost import cost, memory
from engine.dump import DumpOptions, write_dump
from engine.errors import EngineError
from engine.inputs import ImageOptions, InputSource, load_inputs
from engine.ncnn.types import PREFIX, TYPES
from engine.session import Session
from hostile.models import ENDS, Model, write_model
from hostile.worker import BOUND, look_at
from kuiper_studio.remembered_models import ModelChoices, RememberedModels, settings_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Files", "change_bytes", "change_json", "change_text"]

T = TypeVar("T")

_IMAGE: Final = (1, 3, 8, 8)
_NCNN: Final = (
    "Input in0 0 1 in0 0=8 1=8 2=3",
    "Convolution conv 1 1 in0 1 0=4 1=3 4=1 5=1 6=108 9=1",
    "Split split 1 2 1 2 3",
    "ConvolutionDepthWise dw 1 1 2 4 0=4 1=3 4=1 5=1 6=36 7=4 8=1 9=2 -23310=1,0.1",
    "Pooling pool 1 1 3 5 0=0 1=3 3=1",
    "Reshape bend 1 1 5 6 0=8 1=8 2=4",
    "BinaryOp add 2 1 4 6 7 0=0",
    "Slice cut 1 2 7 8 9 -23300=2,2,-233 1=0",
    "Concat both 2 1 8 9 10 0=0",
    "Padding pad 1 1 10 11 0=1 1=1 2=1 3=1 4=0 5=0.5",
    "Interp up 1 1 11 12 0=2 1=0.5 2=0.5",
    "Deconvolution de 1 1 12 13 0=2 1=2 3=2 6=32",
    "BatchNorm norm 1 1 13 14 0=2 1=1e-5",
    "Pooling mean 1 1 14 15 0=1 4=1",
    "InnerProduct fc 1 1 15 16 0=5 1=1 2=10",
    "LSTM memory 1 1 16 17 0=3 1=60 2=0",
    "Softmax prob 1 1 17 out0 0=0 1=1",
)
_WORDS: Final = (
    "", "../../etc/passwd", "/dev/zero", "\0", "\u202e\n", "<script>", "x" * 5000, "0", "nan",
    "pnnx.Input", "conv", "ops/../x.npy", "tensors/0.npy",
)  # fmt: skip
_SOURCES: Final = Path(__file__).parents[1] / "engine" / "conversion" / "data"
_WINDOWS: Final = Axis(
    Kind.WINDOW, 8, (Axis(Kind.ROW, 2, shift=3), Axis(Kind.COLUMN, 4, shift=3))
)
_CELLS: Final = Axis(Kind.TOKEN, 4, (Axis(Kind.ROW, 2), Axis(Kind.COLUMN, 2)))
_TOKENS: Final = Axis(Kind.TOKEN, 8, segments=(Axis(Kind.REGISTER_TOKEN, 4), _CELLS))
# What the user says of the image: it folds to 4 rows and 8 columns.
_CHOSEN: Final = {"0": Layout((Axis(Kind.BATCH, 1), Axis(Kind.FEATURE, 3), _WINDOWS, _TOKENS))}
_MOST_CHANGES: Final = 4


def change_bytes(draw: random.Random, data: bytes) -> bytes:
    """Change bytes in a few places."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, _MOST_CHANGES)):
        at = draw.randrange(len(changed) + 1)
        kind = draw.randrange(6)
        if kind == 0:
            changed[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            size = draw.choice(("<I", "<Q", ">I", "<H", "<f"))
            end = draw.choice(ENDS) & ((1 << 8 * struct.calcsize(size)) - 1)
            value = float(end) if size == "<f" else end
            changed[at : at + struct.calcsize(size)] = struct.pack(size, value)
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            del changed[at : at + draw.choice((1, 2, 4, 64))]
        elif kind == 4:
            changed[at:at] = bytes(draw.choice((1, 3, 4, 500)))
        else:
            source = draw.randrange(len(changed) + 1)
            changed[at : at + 16] = changed[source : source + 16]
    return bytes(changed)


def change_text(draw: random.Random, text: str, words: Sequence[str] = ()) -> str:
    """Change, repeat or leave out words and lines of a text."""
    lines = text.split("\n")
    for _ in range(draw.randint(1, _MOST_CHANGES)):
        at = draw.randrange(len(lines))
        parts = lines[at].split(" ")
        place = draw.randrange(len(parts))
        key, equals, _ = parts[place].partition("=")
        kind = draw.randrange(8)
        if kind < 3:
            number = str(draw.choice((*ENDS, -1, -233, -(1 << 31), 0.5, "1e30", "nan", "inf")))
            parts[place] = f"{key}={number}" if equals else number
        elif kind == 3:
            key = draw.choice((str(draw.randint(0, 40)), f"-233{draw.randint(0, 40):02}"))
            listed = [str(draw.choice(ENDS)) for _ in range(draw.randint(0, 4))]
            count = draw.choice((len(listed), draw.choice(ENDS)))
            parts.append(f"{key}={','.join([str(count), *listed])}")
        elif kind == 4:
            del parts[place]
        elif kind == 5:
            parts[place] = draw.choice((*words, *_WORDS)) or "x"
        elif kind == 6:
            lines.insert(at, lines[draw.randrange(len(lines))])
            continue
        else:
            lines[at] = lines[draw.randrange(len(lines))]
            continue
        lines[at] = " ".join(parts)
    return "\n".join(lines)


def change_json(draw: random.Random, text: str) -> str:
    """Change a few values of JSON, at any depth; rarely its bytes."""
    if draw.random() < 0.15:
        return change_bytes(draw, text.encode()).decode("utf-8", "replace")
    table = json.loads(text)
    for _ in range(draw.randint(1, _MOST_CHANGES)):
        holder, key = None, None
        value: Any = table
        while isinstance(value, (dict, list)) and value and draw.random() < 0.8:
            holder = value
            key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
            value = value[key]
        if holder is None:
            continue
        if draw.random() < 0.15:
            del holder[key]
        elif isinstance(holder, list) and draw.random() < 0.2:
            holder.append(value)
        else:
            holder[key] = _other(draw, value, table)
    found = json.dumps(table)
    if draw.random() < 0.03:
        found = found.replace("]", "[" * 100_000, 1)
    return found


def _other(draw: random.Random, value: object, table: object) -> object:
    """Return another value: of the same kind, mostly."""
    if draw.random() < 0.3:
        return draw.choice((None, True, [], {}, 0, -1, "", [[]], {"": None}, 1e308))
    if isinstance(value, str):
        return draw.choice((*_WORDS, value + "x", value * 2, *_texts_in(table)))
    if isinstance(value, (int, float)):
        return draw.choice((*ENDS, -1, -(1 << 63), float("nan"), float("inf"), 1 << 2000))
    return draw.choice((_WORDS[1], 7, None, [value] * 3))


def _texts_in(table: object) -> list[str]:
    """Return some texts of a table, which are valid elsewhere in it."""
    found: list[str] = []
    todo = [table]
    while todo and len(found) < 50:
        each = todo.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict):
            todo.extend([*each, *each.values()])
        elif isinstance(each, list):
            todo.extend(each)
    return found


class Files:
    """Valid files, made once, and the uses of a damaged copy.

    Parameters
    ----------
    folder : Path
        Empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "model").mkdir()
        self._cases: dict[str, Callable[[random.Random, Path], str]] = {
            "ncnn": self._use_ncnn,
            "recording": self._use_recording,
            "dump": self._use_dump,
            "arrays": self._use_arrays,
            "matches": self._use_matches,
            "choices": self._use_choices,
            "source": self._use_source,
        }

    def run(self, seed: int, kind: str) -> str:
        """Damage a file of a kind by a seed, and use it; return the outcome."""
        place = self._folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            return self._cases[kind](random.Random(f"{kind} {seed}"), place)
        except EngineError as exc:
            text = str(exc)
            return f"refused: {text}" if text.isprintable() else f"unprintable: {text!r}"

    # The valid files

    @cached_property
    def _session(self) -> Session:
        """A run of a small network."""
        model = Model(list(LINES), make_weights())
        session = Session(engine.load(write_model(model, self._folder / "model")), "numpy",
                          memory_bound=BOUND)  # fmt: skip
        session.feed([self._image])
        session.run()
        return session

    @cached_property
    def _image(self) -> np.ndarray:
        return np.random.default_rng(1).standard_normal(_IMAGE).astype(np.float32)

    @cached_property
    def _recording(self) -> Path:
        weights = make_weights()
        writer = Writer(self._folder / "recording", "none")
        keys = {name: writer.tensor(array, name) for name, array in self._tensors.items()}
        for operator in self._session.graph.operators:
            inputs = [keys[operand.name] for operand in operator.inputs]
            outputs = [keys[operand.name] for operand in operator.outputs]
            hashes = {
                key.partition(".")[2]: hash_of(array)
                for key, array in weights.items()
                if key.startswith(f"{operator.name}.")
            }
            if not operator.is_input and outputs:
                writer.operator(operator.name, operator.type, inputs, outputs, hashes)
        writer.inputs, writer.outputs = [keys["0"]], [keys["7"]]
        return writer.close()

    @cached_property
    def _tensors(self) -> dict[str, np.ndarray]:
        return truth(self._image, make_weights())

    @cached_property
    def _dumps(self) -> dict[str, Path]:
        made = {}
        for form in ("folder", "npz", "safetensors"):
            target = self._folder / f"dump_{form}"
            made[form] = write_dump(self._session, target, DumpOptions(format=form))
        return made

    @cached_property
    def _ncnn(self) -> tuple[str, bytes]:
        rng = np.random.default_rng(3)

        def draw(count: int) -> np.ndarray:
            return rng.standard_normal(count).astype(np.float32)

        weights = b"".join(
            [
                tagged(draw(108).astype(np.float16), F16), f32(draw(4)),
                tagged(rng.integers(-9, 9, 36).astype(np.int8), INT8), f32(draw(9)),
                tagged(draw(32)), f32(draw(8)),
                tagged(draw(10)), f32(draw(5)),
                *(tagged(draw(60)) for _ in range(3)),
            ]
        )  # fmt: skip
        path = write_pair(self._folder / "model", _NCNN, weights)
        return path.read_text(), weights

    # Uses of a damaged copy

    def _use_ncnn(self, draw: random.Random, place: Path) -> str:
        text, weights = self._ncnn
        if draw.random() < 0.8:
            types = [name.removeprefix(PREFIX) for name in TYPES]
            text = change_text(draw, text, types)
        if draw.random() < 0.3:
            weights = change_bytes(draw, weights)
        param = place / "m.ncnn.param"
        param.write_text(text, "utf-8", "replace")
        param.with_suffix(".bin").write_bytes(weights)
        if draw.random() < 0.2:
            return self._compare(param, place)
        graph = engine.load(param)
        for operator in graph.operators:
            cost(operator)
        memory(graph)
        backend = draw.choice(("auto", "ncnn", "numpy"))
        session = Session(graph, backend, memory_bound=BOUND)
        operands = graph.input_operands
        with session.within_bound():
            session.feed(load_inputs([InputSource("random")] * len(operands), operands))
        session.run()
        session.outputs()
        return "ran"

    def _use_recording(self, draw: random.Random, place: Path) -> str:
        copy = Path(shutil.copytree(self._recording, place / "recording"))
        self._damage(draw, copy, "recording.json")
        return self._compare(copy, place)

    def _use_dump(self, draw: random.Random, place: Path) -> str:
        form = draw.choice(list(self._dumps))
        source = self._dumps[form]
        copy = place / source.name
        if source.is_dir():
            shutil.copytree(source, copy)
            self._damage(draw, copy, "manifest.json")
        else:
            for file in source.parent.glob(f"{source.stem}*"):
                shutil.copy(file, place)
            self._damage(draw, place, "*.json")
        return self._compare(copy, place)

    def _use_arrays(self, draw: random.Random, place: Path) -> str:
        kind = draw.choice(("npz", "npy", "csv", "safetensors", "folder"))
        named = self._tensors
        path = place / f"arrays.{kind}"
        if kind == "npz":
            np.savez(path, **{f"{name}": array for name, array in named.items()})
        elif kind == "npy":
            np.save(path, named["7"])
        elif kind == "csv":
            np.savetxt(path, named["7"], delimiter=",")
        elif kind == "safetensors":
            shutil.copy(self._dumps["safetensors"], path)
        else:
            path.mkdir()
            for name, array in named.items():
                np.save(path / f"{name}.npy", array)
            np.savetxt(path / "7.csv", named["7"])
        self._damage(draw, path if path.is_dir() else place, "*")
        return self._compare(path, place)

    def _use_matches(self, draw: random.Random, place: Path) -> str:
        param = self._session.graph.source_path
        title = self._recording.name
        keys = [f"{number}:{name}" for number, name in enumerate(self._tensors)]
        chosen = {name: draw.choice([*keys, None]) for name in self._tensors}
        target = corrections_path(param)
        target.unlink(missing_ok=True)
        write_corrections(param, title, chosen)
        try:
            text = target.read_text()
            target.write_text(change_json(draw, text), "utf-8", "replace")
            outcome = self._compare(self._recording, place)
            write_corrections(param, title, chosen)  # replaces the damaged one
        finally:
            target.unlink(missing_ok=True)
        return outcome

    def _use_choices(self, draw: random.Random, place: Path) -> str:
        """Use the window's remembered choices for a model: an image, and its preprocessing."""
        picture = place / f"x.{draw.choice(('png', 'jpg', 'bmp', 'gif', 'tif', 'webp', 'ppm'))}"
        pixels = np.random.default_rng(2).integers(0, 255, (9, 7, 3), np.uint8)
        Image.fromarray(pixels).save(picture)
        if draw.random() < 0.5:
            picture.write_bytes(change_bytes(draw, picture.read_bytes()))
        settings = QSettings(str(place / "settings.ini"), QSettings.Format.IniFormat)
        param = self._session.graph.source_path
        remembered = RememberedModels(settings)
        options = ImageOptions((8, 8), "crop", "BGR", 0.5, (1.0, 2.0, 3.0), (1.0, 2.0, 4.0))
        source = InputSource("image", path=picture)
        chosen = ModelChoices((source,), options, frozenset({"conv"}), _CHOSEN)
        remembered.store(param, chosen)
        key = settings_key("choices", param)
        settings.setValue(key, change_json(draw, str(settings.value(key))))
        choices = remembered.find(param)
        if choices is None:
            return "refused: nothing is remembered"
        session = self._session.fork("numpy")
        with session.within_bound():
            operands = session.graph.input_operands
            session.feed(load_inputs(choices.sources, operands, choices.options))
        session.run()
        look_at(session, choices.layouts)
        return "ran"

    def _use_source(self, draw: random.Random, place: Path) -> str:
        """What is looked up in a file before pnnx converts it."""
        source = draw.choice(sorted([*_SOURCES.glob("*.onnx"), *_SOURCES.glob("*.pt")]))
        path = place / source.name
        if source.suffix == ".pt" and draw.random() < 0.7:
            with zipfile.ZipFile(source) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            damaged = draw.choice(sorted(members))
            members[damaged] = change_bytes(draw, members[damaged])
            compression = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
            with zipfile.ZipFile(path, "w", compression) as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
        else:
            path.write_bytes(change_bytes(draw, source.read_bytes()))
        found = inspect(path)
        settle_inputs(found.inputs, draw.choice(((), ("1,3,8,8",), ("x=1,3,8,8f32", "4"))))
        return "ran"

    def _damage(self, draw: random.Random, folder: Path, manifest: str) -> None:
        """Change the manifest, or one of the other files of a folder."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        manifests = [path for path in files if path.match(manifest)]
        chosen = draw.choice(manifests if manifests and draw.random() < 0.7 else files)
        if chosen.suffix == ".json":
            text = change_json(draw, chosen.read_text("utf-8"))
            chosen.write_text(text, "utf-8", "replace")
        elif draw.random() < 0.03:
            chosen.unlink()
        else:
            chosen.write_bytes(change_bytes(draw, chosen.read_bytes()))

    def _compare(self, path: Path, place: Path) -> str:
        """Compare with a reference, and write the report."""
        run = run_to_end(self._session)
        fed = [run.value(operand.name) for operand in run.graph.input_operands]
        with run.within_bound():
            reference = open_reference(path, fed)
        comparison = compare(run, reference)
        json.dumps(comparison.to_json(), allow_nan=False)
        write_report(comparison, run, reference, place / "report.html")
        return "ran"
