"""The open model, as the engine described it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.paths import beside, is_file
from engine.runtime.description import DescribedLayers, graph_of
from engine.runtime.kernel import SUPPLIED, backend_of
from kuiper_studio.session.client import RemoteWeights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from engine.layers.notes import OperatorNote
    from kuiper_studio.engine_service.protocol import Model, Opened, Record
    from kuiper_studio.session.client import EngineClient

__all__ = ["OpenedModel"]


class OpenedModel:
    """The open model: its graph without layers, and the kernels that a dump pins.

    Parameters
    ----------
    model : Model
        What was asked for.
    answer : Opened
        The engine's description.
    client : EngineClient
        Fetches weights.

    Attributes
    ----------
    model : Model
    graph : RuntimeGraph
        It cannot run.
    """

    def __init__(self, model: Model, answer: Opened, client: EngineClient) -> None:
        self.model = model
        self._kernels = answer.kernels
        self._kernel_texts = dict(answer.kernel_texts)
        archive = answer.graph.archive
        self._weights: RemoteWeights | None = None
        if archive is not None:
            self._weights = RemoteWeights(client, answer.run_id, archive)
            self._weights.is_kept = answer.is_kept
        self._layers = DescribedLayers(answer.graph)
        self.graph = graph_of(answer.graph, self._layers, self._weights)

    @property
    def passed_over(self) -> Path | None:
        """The ``.bin`` with the model's name, where the weights are those of another one.

        It is damaged, or of another model: nobody has chosen the other one.
        """
        graph, chosen = self.graph, self.model.bin or self.model.path
        own = beside(graph.param_path, ".bin")
        is_other = graph.bin_path is not None and graph.bin_path not in {own, chosen}
        return own if is_other and is_file(own) else None

    @property
    def kernels_from(self) -> Path | None:
        """The dump whose kernels compute the model; None for a backend."""
        return self.model.kernels_from

    @property
    def kernels_text(self) -> str:
        """The dump's kernels by backend, ``3 by onnxruntime, 8 by numpy``; ``""`` for none."""
        used = (k for k in self._kernels.values() if k not in {"", SUPPLIED})
        counts = Counter(map(backend_of, used))
        return ", ".join(f"{count} by {backend}" for backend, count in counts.most_common())

    def pinned_kernel(self, operator: str) -> str:
        """Return the kernel of an operator in the dump; ``""`` for none."""
        kernel = self._kernels.get(operator, "")
        return "" if kernel == SUPPLIED else kernel

    def describe_kernel(self, kernel: str) -> str:
        """Describe a kernel by its name, which stays if no record has described it."""
        return self._kernel_texts.get(kernel, kernel)

    def note_kernels(self, records: Iterable[Record]) -> None:
        """Remember how records describe their kernels."""
        self._kernel_texts.update((each.kernel, each.kernel_text) for each in records)

    @property
    def keeps_weights(self) -> bool:
        """Whether all weights have been read or copied, so that the file may change."""
        return self._weights is None or self._weights.is_kept

    def note_weights_kept(self) -> None:
        """Remember that the engine has copied all weights."""
        if self._weights is not None:
            self._weights.is_kept = True

    def add_notes(self, notes: Mapping[str, OperatorNote]) -> None:
        """Give the layers of the graph their notes, by operator type."""
        self._layers.notes.update(notes)
