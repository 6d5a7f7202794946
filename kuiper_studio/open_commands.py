"""Carries out the open commands: models, inputs, labels, layers."""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from engine.conversion.suffixes import SUFFIXES, is_source, model_of
from engine.errors import EngineError
from engine.fed_sizes import size_of
from engine.inputs import IMAGE_SUFFIXES, parse_source, read_labels
from engine.paths import beside, exists, files_with_suffix, is_folder
from engine.shapes import parse_shapes
from engine.text import format_count
from kuiper_studio.item_models.text import caption_text
from kuiper_studio.panels.dropping import dropped_model, name_files
from kuiper_studio.panels.input_sizes import of_open_dimensions
from kuiper_studio.panels.recents import Recents
from kuiper_studio.remembered_models import ModelChoices, RememberedModels, settings_key
from kuiper_studio.sample_models import SampleModel, find_samples
from kuiper_studio.surfaces import Surface

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QMenu, QWidget

    from engine.runtime import RuntimeGraph
    from kuiper_studio.commands import Commands
    from kuiper_studio.dialogs.conversion_dialog import ConversionDialog
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.session import StudioSession
    from kuiper_studio.session.opening import SizesQuestion
    from kuiper_studio.theme import Theme

__all__ = ["OpenCommands", "sizes_key"]

_MODEL_FILES: Final = f"Models (*.param *.bin {' '.join(f'*{s}' for s in SUFFIXES)})"
_WEIGHT_FILES: Final = "Weights (*.bin)"
_SIZED_FILES: Final = f"Inputs (*.npy {' '.join(f'*{s}' for s in IMAGE_SUFFIXES)})"
_LAYER_FILES: Final = "Python (*.py)"
_LABEL_FILES: Final = "Text, tokenizers (*.txt *.json)"


class _Kind(Enum):
    """What a dropped file is, by its suffix."""

    MODEL = auto()
    WEIGHTS = auto()
    INPUT = auto()
    LABELS = auto()
    OTHER = auto()


_KINDS: Final = {
    **dict.fromkeys((".param", *SUFFIXES), _Kind.MODEL),
    ".bin": _Kind.WEIGHTS,
    **dict.fromkeys((".npy", ".npz", *IMAGE_SUFFIXES), _Kind.INPUT),
    **dict.fromkeys((".txt", ".json"), _Kind.LABELS),
}


def _kind(path: str) -> _Kind:
    return _KINDS.get(Path(path).suffix.lower(), _Kind.OTHER)


class OpenCommands(QObject):
    """Opens files of the user, and remembers them between runs.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
    dialogs : FileDialogs
    commands : Commands
        Their entries are at the end of the menus of recent files.
    theme : Theme
    window : QWidget
        Parent of the dialogs.

    Attributes
    ----------
    recent_models, recent_layers : Recents

    Signals
    -------
    failed : (str, str)
        A file cannot be used: a title and the reason.
    input_refused : str
        A file cannot be an input: the reason.
    """

    failed = Signal(str, str)
    input_refused = Signal(str)

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        dialogs: FileDialogs,
        commands: Commands,
        theme: Theme,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings = session, settings
        self._dialogs, self._commands = dialogs, commands
        self._window, self._theme = window, theme
        self._question: SizesQuestion | None = None
        self.recent_models = Recents(settings)
        self.recent_layers = Recents(settings, key="recentLayers")
        self._remembered = RememberedModels(settings)
        session.inputs_changed.connect(self._remember_sizes)
        session.sizes_needed.connect(self._ask_for_sizes)
        session.graph_changed.connect(self._restore_choices)
        for changed in (
            session.inputs_changed,
            session.breakpoints_changed,
            session.layouts.chosen_changed,
            session.bookmarks.chosen_changed,
            session.meanings.chosen_changed,
        ):
            changed.connect(self._remember_choices)

    # Models

    @Slot()
    def choose_model(self) -> None:
        """Ask for a model and open it."""
        path = self._dialogs.choose("model", "Open a model", _MODEL_FILES)
        if path:
            self.open_model(path)

    @Slot(str)
    def open_model(self, path: str | Path) -> None:
        """Open a pair by either of its files or their folder, or a file to convert, likewise.

        It gets what was chosen for it before.
        """
        model = model_of(Path(path))
        self.prepare_choices(model)
        self._session.open(model)

    @Slot()
    def choose_weights(self) -> None:
        """Ask for the weights of the open model, and open it with them."""
        path = self._dialogs.choose("model", "Choose the weights", _WEIGHT_FILES)
        if path:
            self._session.use_weights(path)

    @Slot(object)
    def open_sample(self, sample: SampleModel) -> None:
        """Open a sample with its input."""
        self._session.next_model.set_sources(sample.sources, sample.options)
        self._session.next_model.set_labels(sample.labels)
        self._session.open(sample.param)

    def open_default_sample(self) -> None:
        """Open the first of the samples."""
        found = find_samples()
        if found:
            self.open_sample(found[0])

    @Slot(list)
    def open_dropped(self, paths: Sequence[str]) -> None:
        """Open files together: a model, its folder, inputs, labels or a vocabulary.

        What comes with a model belongs to it.
        """
        model = dropped_model(paths)
        if model:
            self._open_with(model, [path for path in paths if path != model])
        elif self._session.graph is None:
            names = ", ".join(Path(p).name for p in paths)
            self.failed.emit(
                "Open a model first",
                f"{names} is not a .param, .bin, .pt, .onnx or folder.",
            )
        elif _kind(paths[0]) is _Kind.LABELS:
            self.use_labels(paths[0])
        else:
            self.feed_files(paths)

    def say_dropped(self, paths: Sequence[str]) -> str:
        """Return in words what `open_dropped` would do."""
        model = dropped_model(paths)
        if model:
            others = [path for path in paths if path != model]
            added = f" with {name_files(others)}" if others else ""
            return f"Open {name_files([model])}{added}"
        if self._session.graph is None:
            return "Open a model first"
        kind = _kind(paths[0])
        if kind is _Kind.LABELS:
            return f"Use {name_files(paths[:1])} as class labels"
        count = self._input_count
        if kind is not _Kind.INPUT or not count:
            return f"{name_files(paths)} cannot be an input"
        role = "the input" if min(count, len(paths)) == 1 else "inputs"
        left = f", not {name_files(paths[count:])}" if paths[count:] else ""
        return f"Use {name_files(paths[:count])} as {role}{left}"

    def _open_with(self, model: str, others: Sequence[str]) -> None:
        """Open a model with the weights, inputs and labels among other files."""
        by_kind: dict[_Kind, list[str]] = {kind: [] for kind in _Kind}
        for path in others:
            by_kind[_kind(path)].append(path)
        weights, models = by_kind[_Kind.WEIGHTS], by_kind[_Kind.MODEL]
        # Of several pairs each finds its own weights.
        is_pair = len(weights) == 1 and not models and _kind(model) is _Kind.MODEL
        file = model_of(Path(model))
        self.prepare_choices(file)
        if by_kind[_Kind.INPUT]:
            self._session.next_model.set_sources(
                [parse_source(p) for p in by_kind[_Kind.INPUT]]
            )
        for path in by_kind[_Kind.LABELS][:1]:
            self._with_labels(path, self._session.next_model.set_labels)
        self._session.open(file, weights[0] if is_pair else None)
        left = [*models, *by_kind[_Kind.OTHER]]
        if left:
            names = ", ".join(Path(path).name for path in left)
            text = f"only {Path(model).name} was opened, not {names}"
            self._session.workspace.announce(text)

    # Inputs and labels

    @Slot()
    def choose_input(self) -> None:
        """Ask for the files of the inputs, in order, and feed them."""
        patterns = " ".join(f"*{suffix}" for suffix in (".npy", ".npz", *IMAGE_SUFFIXES))
        paths = self._dialogs.choose_several(
            "input", "Choose the input", f"Inputs ({patterns})"
        )
        if paths:
            self.feed_files(paths)

    def feed_files(self, paths: Sequence[str]) -> None:
        """Feed files to the model's inputs, in order."""
        try:
            sources = [parse_source(path) for path in paths]
        except EngineError as exc:
            self.input_refused.emit(str(exc))
            return
        self._session.set_source_list(sources)
        count = self._input_count
        if paths[count:]:
            names = ", ".join(Path(path).name for path in paths[count:])
            text = f"not used: {names}; the model has {format_count(count, 'input')}"
            self._session.workspace.announce(text)

    @property
    def _input_count(self) -> int:
        graph = self._session.graph
        return len(graph.input_operands) if graph is not None else 0

    def choose_labels(self) -> None:
        """Ask for a file of class names."""
        path = self._dialogs.choose("input", "Choose class labels", _LABEL_FILES)
        if path:
            self.use_labels(path)

    def use_labels(self, path: str) -> None:
        """Read class names, one per line, or the tokens of a vocabulary."""
        workspace = self._session.workspace

        def use(labels: tuple[str, ...]) -> None:
            workspace.set_labels(labels)
            workspace.announce(f"{format_count(len(labels), 'label')} from {Path(path).name}")

        self._with_labels(path, use)

    def _with_labels(self, path: str, use: Callable[[tuple[str, ...]], None]) -> None:
        try:
            use(read_labels(Path(path)))
        except EngineError as exc:
            self.failed.emit("The labels cannot be used", str(exc))

    # Layers

    @Slot()
    def choose_layers(self) -> None:
        """Ask for a layer file and run it."""
        path = self._dialogs.choose("layers", "Load your own layers", _LAYER_FILES)
        if path:
            self.load_layers(path)

    @Slot(str)
    def load_layers(self, path: str | Path) -> None:
        """Run a layer file; an open model uses its layers."""
        self._dialogs.remember("layers", path)
        self._session.load_layers(path)

    # Recent files

    def fill_recent_models(self, menu: QMenu) -> None:
        """Fill the menu of recent models."""
        self._fill_recent(menu, self.recent_models, self.open_model)
        self._commands.fill(menu, Surface.RECENT_MODELS)

    def fill_recent_layers(self, menu: QMenu) -> None:
        """Fill the menu of recent layer files."""
        self._fill_recent(menu, self.recent_layers, self.load_layers)
        self._commands.fill(menu, Surface.RECENT_LAYERS)

    @staticmethod
    def _fill_recent(menu: QMenu, recents: Recents, open_: Callable[[str], None]) -> None:
        menu.clear()
        for index, recent in enumerate(recents.entries()):
            action = menu.addAction(f"&{(index + 1) % 10} {caption_text(recent.path)}")
            action.setData(str(recent.path))
            action.setEnabled(exists(recent.path))
            action.triggered.connect(lambda *_, path=str(recent.path): open_(path))
        menu.addSeparator()

    # Conversion

    @Slot(object)
    def _ask_for_sizes(self, question: SizesQuestion) -> None:
        """Ask for the input sizes of a model to convert, and open it with them.

        A window that is not shown yet asks when it is.
        """
        if not self._window.isVisible():
            self._question = question
            return
        from kuiper_studio.dialogs.conversion_dialog import ConversionDialog

        before = self._remembered.find_conversion(question.path)
        dialog = ConversionDialog(
            question.path, question.inputs, before, self._theme, self._window
        )
        dialog.file_wanted.connect(lambda row: self._take_size(dialog, row))
        if dialog.exec():
            self._remembered.store_conversion(question.path, dialog.options)
            self._session.open_with_sizes(question, dialog.options)

    @Slot()
    def ask_what_waits(self) -> None:
        """Ask the questions that came up before the window was shown."""
        question, self._question = self._question, None
        if question is not None:
            self._ask_for_sizes(question)

    def _take_size(self, dialog: ConversionDialog, row: int) -> None:
        """Ask for a file, whose array or picture has the size of an input."""
        path = self._dialogs.choose("input", "Choose an input", _SIZED_FILES)
        if path:
            try:
                dialog.set_size(row, size_of(parse_source(path)))
            except EngineError as exc:
                dialog.show_error(str(exc))

    # What was chosen for a model

    @Slot()
    def _remember_choices(self) -> None:
        session, graph = self._session, self._session.graph
        if graph is None:
            return
        names = [operand.name for operand in graph.input_operands]
        chosen = all(name in session.inputs for name in names)
        sources = tuple(session.inputs[name] for name in names) if chosen else ()
        choices = ModelChoices(
            sources,
            session.image_options,
            session.breakpoints,
            session.layouts.chosen,
            frozenset(session.bookmarks.names),
            session.layouts.roles,
            session.meanings.choice,
        )
        self._remembered.store(graph.source_path, choices)

    @Slot()
    def _restore_choices(self) -> None:
        """Say of the dimensions what the user said the last time, and set the bookmarks."""
        graph = self._session.graph
        choices = self._remembered.find(graph.source_path) if graph is not None else None
        if choices is not None and (choices.layouts or choices.roles):
            self._session.layouts.restore(choices.layouts, choices.roles)
        if choices is not None:
            self._session.bookmarks.restore(choices.bookmarks)
            self._session.meanings.restore(choices.meaning)

    def prepare_choices(self, path: Path) -> None:
        """Give the model that is opened next the inputs and breakpoints that it had.

        Dialogs begin beside it.
        """
        self._dialogs.remember("model", path)
        param = _param_of(path)
        choices = self._remembered.find(param) if param is not None else None
        if param is None or choices is None:
            return
        self._session.next_model.set_breakpoints(choices.breakpoints)
        if choices.missing:
            text = f"inputs of {param.name} are gone: {', '.join(choices.missing)}"
            self._session.workspace.log("warning", text)
        elif choices.sources:
            self._session.next_model.set_sources(choices.sources, choices.options)

    # Sizes of inputs

    @Slot()
    def _remember_sizes(self) -> None:
        """Store the sizes that the user chose for open dimensions."""
        graph = self._session.graph
        if graph is None:
            return
        asked = of_open_dimensions(graph.input_operands, self._session.input_shapes)
        if asked:
            self._settings.setValue(sizes_key(graph), list(asked.texts))
        else:
            self._settings.remove(sizes_key(graph))

    def restore_sizes(self, graph: RuntimeGraph) -> None:
        """Set the stored sizes of a model, if it has no others."""
        if self._session.input_shapes:
            return
        kept = self._settings.value(sizes_key(graph), [])
        texts = (
            [kept] if isinstance(kept, str) else list(kept) if isinstance(kept, list) else []
        )
        try:
            shapes = parse_shapes([str(text) for text in texts], graph.input_operands)
        except EngineError:
            return  # the model has changed
        self._session.set_shapes(shapes)


def sizes_key(graph: RuntimeGraph) -> str:
    """Return the settings key of a model's input sizes."""
    return settings_key("sizes", graph.source_path)


def _param_of(path: Path) -> Path | None:
    """Return the file that a model is remembered by; None if a folder has none or several."""
    if is_source(path):
        return path
    if not is_folder(path):
        return beside(path, ".param")
    found = files_with_suffix(path, ".param")
    return found[0] if len(found) == 1 else None
