"""The one tree of the engine's errors.

Each class takes facts, builds its message from them and keeps them as attributes. So the
command line prints the message and the window can mark the operator. A layer reports *what* is
wrong; the runtime adds *where* by raising one of these from it.

The status names are those of KuiperInfer (``include/status_code.hpp`` before its
a039f71, where parameter and inference statuses still were two enumerations), so that its
users find the words they know.
"""

from __future__ import annotations

import difflib
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

__all__ = [
    "ConversionCancelledError",
    "ConversionError",
    "DumpExistsError",
    "DumpFileError",
    "EngineError",
    "ExportCancelledError",
    "ExportError",
    "ExpressionError",
    "FeedError",
    "InferStatus",
    "InferenceError",
    "LayerError",
    "LayerFileError",
    "MeaningError",
    "MemoryBoundError",
    "ModelFileError",
    "NumbersFileError",
    "OpenShapeError",
    "OpenSourceError",
    "ParameterError",
    "ParseParameterAttrStatus",
    "ReferenceFileError",
    "RegistrationError",
    "SearchError",
    "SessionStateError",
    "SweepError",
    "TensorError",
    "UnknownNameError",
    "UnsupportedOperatorError",
    "ValueNotComputedError",
    "capitalized",
    "describe_shapes",
    "restore_error",
]


class ParseParameterAttrStatus(Enum):
    """Status of an operator's parameters and attributes."""

    kParameterMissingUnknown = -1
    kParameterAttrParseSuccess = 0
    kParameterMissingStride = 1
    kParameterMissingPadding = 2
    kParameterMissingKernel = 3
    kParameterMissingUseBias = 4
    kParameterMissingInChannel = 5
    kParameterMissingOutChannel = 6
    kParameterMissingEps = 7
    kParameterMissingNumFeatures = 8
    kParameterMissingDim = 9
    kParameterMissingExpr = 10
    kParameterMissingOutHW = 11
    kParameterMissingShape = 12
    kParameterMissingGroups = 13
    kParameterMissingScale = 14
    kParameterMissingResizeMode = 15
    kParameterMissingDilation = 16
    kParameterMissingPaddingMode = 17
    kParameterMissingOutputPadding = 18
    kParameterMissingAlignCorner = 19
    kAttrMissingBias = 21
    kAttrMissingWeight = 22
    kAttrMissingRunningMean = 23
    kAttrMissingRunningVar = 24
    kAttrMissingOutFeatures = 25
    kAttrMissingYoloStrides = 26
    kAttrMissingYoloAnchorGrides = 27
    kAttrMissingYoloGrides = 28


_STATUS_OF_PARAMETER = {
    "stride": ParseParameterAttrStatus.kParameterMissingStride,
    "padding": ParseParameterAttrStatus.kParameterMissingPadding,
    "kernel_size": ParseParameterAttrStatus.kParameterMissingKernel,
    "in_channels": ParseParameterAttrStatus.kParameterMissingInChannel,
    "in_features": ParseParameterAttrStatus.kParameterMissingInChannel,
    "out_channels": ParseParameterAttrStatus.kParameterMissingOutChannel,
    "out_features": ParseParameterAttrStatus.kAttrMissingOutFeatures,
    "eps": ParseParameterAttrStatus.kParameterMissingEps,
    "num_features": ParseParameterAttrStatus.kParameterMissingNumFeatures,
    "dim": ParseParameterAttrStatus.kParameterMissingDim,
    "expr": ParseParameterAttrStatus.kParameterMissingExpr,
    "output_size": ParseParameterAttrStatus.kParameterMissingOutHW,
    "shape": ParseParameterAttrStatus.kParameterMissingShape,
    "groups": ParseParameterAttrStatus.kParameterMissingGroups,
    "scale_factor": ParseParameterAttrStatus.kParameterMissingScale,
    "mode": ParseParameterAttrStatus.kParameterMissingResizeMode,
    "dilation": ParseParameterAttrStatus.kParameterMissingDilation,
    "padding_mode": ParseParameterAttrStatus.kParameterMissingPaddingMode,
    "output_padding": ParseParameterAttrStatus.kParameterMissingOutputPadding,
    "align_corners": ParseParameterAttrStatus.kParameterMissingAlignCorner,
    "bias": ParseParameterAttrStatus.kAttrMissingBias,
    "weight": ParseParameterAttrStatus.kAttrMissingWeight,
    "running_mean": ParseParameterAttrStatus.kAttrMissingRunningMean,
    "running_var": ParseParameterAttrStatus.kAttrMissingRunningVar,
    "strides": ParseParameterAttrStatus.kAttrMissingYoloStrides,
    "anchor_grids": ParseParameterAttrStatus.kAttrMissingYoloAnchorGrides,
    "grids": ParseParameterAttrStatus.kAttrMissingYoloGrides,
}


class InferStatus(Enum):
    """Status of an operator's execution."""

    kInferUnknown = -1
    kInferSuccess = 0
    kInferInputsEmpty = 1
    kInferOutputsEmpty = 2
    kInferParameterError = 3
    kInferArraySizeMismatch = 4
    kInferLayerNotImplement = 5


def capitalized(text: str) -> str:
    """Capitalise a sentence, unless it begins with a name such as ``in_channels``."""
    first = text.partition(" ")[0].rstrip(",")
    return f"{text[:1].upper()}{text[1:]}" if first.isalpha() else text


def without_name(reason: str, operator: str, operator_type: str) -> str:
    """Return why an operator cannot run, as it is said beside the operator's name."""
    named = f"{operator!r}: "
    return reason.removeprefix(f"{operator_type} {named}").removeprefix(named)


def describe_shapes(shapes: Iterable[tuple[int, ...] | str]) -> str:
    """Format several shapes: ``1×64×56×56, 3``; words are unchanged."""
    texts = (shape if isinstance(shape, str) else format_shape(shape) for shape in shapes)
    return ", ".join(texts) or "none"


class EngineError(Exception):
    """Base of all errors of the engine; can be pickled with its facts."""

    @override
    def __reduce__(self) -> tuple[Callable[..., EngineError], tuple[object, ...]]:
        # By default the class would be called with the message instead of the facts.
        return restore_error, (type(self), self.args, self.__dict__)


def restore_error(
    kind: type[EngineError], args: tuple[object, ...], facts: Mapping[str, object]
) -> EngineError:
    """Rebuild a pickled error."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class ModelFileError(EngineError):
    """A model file cannot be read.

    Attributes
    ----------
    path : Path
    line : int or None
        Line of the ``.param`` file, counted from 1; None for the whole file.
    reason : str
        What is wrong and what to do, without the file.
    """

    def __init__(self, path: Path | str, reason: str, line: int | None = None) -> None:
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {reason}")
        self.path, self.line, self.reason = path, line, reason


class ConversionError(ModelFileError):
    """A TorchScript or ONNX file cannot be converted.

    Attributes
    ----------
    log : tuple of str
        What the exporter printed; empty if it did not run.
    crashed : bool
        Whether the exporter did, so that it may not with other options.
    """

    def __init__(
        self, path: Path | str, reason: str, log: Sequence[str] = (), *, crashed: bool = False
    ) -> None:
        super().__init__(path, reason)
        self.log, self.crashed = tuple(log), crashed


class ConversionCancelledError(EngineError):
    """The user cancelled a conversion."""


class RegistrationError(EngineError, ValueError):
    """Code cannot be registered for an operator type."""


class LayerFileError(EngineError):
    """A layer file cannot be loaded; none of its layers is registered.

    Attributes
    ----------
    path : Path
    line : int or None
        Line of the file, counted from 1; None for the whole file.
    reason : str
        What is wrong, without the place.
    """

    def __init__(self, path: Path | str, reason: str, line: int | None = None) -> None:
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {reason}")
        self.path, self.line, self.reason = Path(path), line, reason


class UnknownNameError(EngineError, KeyError):
    """A name that the graph does not have; suggests the nearest.

    Attributes
    ----------
    name, suggestion : str
        `suggestion` is empty if no name is similar.
    """

    def __init__(self, kind: str, name: str, known: Collection[str]) -> None:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        self.sentence = f"the graph has no {kind} named {name!r}{hint}"
        super().__init__(self.sentence)
        self.name, self.suggestion = name, near[0] if near else ""

    @override
    def __str__(self) -> str:
        return self.sentence  # KeyError would add quotes


class LayerError(EngineError):
    """An error that a layer reports; the runtime adds the operator.

    Attributes
    ----------
    status : InferStatus
    pinned_by : str
        Name of the argument that fixes a size which the inputs do not have. If the file has
        that argument, the operator runs at one size only. ``""`` for another reason.
    """

    def __init__(
        self,
        reason: str,
        status: InferStatus = InferStatus.kInferParameterError,
        pinned_by: str = "",
    ) -> None:
        super().__init__(reason)
        self.status, self.pinned_by = status, pinned_by


class ParameterError(EngineError):
    """A parameter or attribute is missing or wrong; found when the layer is built.

    Attributes
    ----------
    operator, operator_type, parameter : str
    status : ParseParameterAttrStatus
        The status of KuiperInfer that belongs to `parameter`.
    """

    def __init__(
        self,
        parameter: str,
        reason: str,
        *,
        operator: str = "",
        operator_type: str = "",
        shapes: Sequence[tuple[int, ...] | str] = (),
    ) -> None:
        where = f"{operator_type} {operator!r}: " if operator else ""
        super().__init__(f"{where}{reason}")
        self.parameter, self.reason = parameter, reason
        self.operator, self.operator_type, self.shapes = operator, operator_type, tuple(shapes)
        self.status = _STATUS_OF_PARAMETER.get(
            parameter, ParseParameterAttrStatus.kParameterMissingUnknown
        )


@lru_cache(maxsize=64)  # a model, or the search for a reason, asks for the same type often
def _nearest(operator_type: str, known: tuple[str, ...]) -> str:
    """Return the known type that is most like another; ``""`` for none."""
    near = difflib.get_close_matches(operator_type, known, n=1, cutoff=0.85)
    return near[0] if near else ""


class UnsupportedOperatorError(EngineError):
    """No layer is registered for an operator type, or no backend computes it.

    Parameters
    ----------
    operator, operator_type : str
    known : collection of str, optional
        Types among which to find the nearest.
    reason : str, optional
        Why nothing computes it, where there is a layer.

    Attributes
    ----------
    operator, operator_type, suggestion : str
        `operator` is empty if only the type was requested.
    status : InferStatus
        Always kInferLayerNotImplement.
    """

    def __init__(
        self,
        operator: str,
        operator_type: str,
        known: Collection[str] = (),
        reason: str = "",
    ) -> None:
        self.suggestion = _nearest(operator_type, tuple(known))
        hint = f"; the nearest known type is {self.suggestion}" if self.suggestion else ""
        where = f"{operator!r}: " if operator else ""
        reason = reason or f"no layer for operator type {operator_type}"
        super().__init__(f"{where}{reason}{hint}")
        self.operator, self.operator_type = operator, operator_type
        self.status = InferStatus.kInferLayerNotImplement


class InferenceError(EngineError):
    """An operator failed while it ran.

    Attributes
    ----------
    operator, operator_type, reason : str
    shapes : tuple of tuple of int or str
        Shapes of the operator's inputs; a word for an input that is not a tensor.
    status : InferStatus
    diagnosis : str
        Possible cause elsewhere in the run; ``""`` for none.
    suspect : str
        Name of the operator that may be the cause; ``""`` for none.
    of_export : bool
        Whether the diagnosis blames the export, and not the size of the inputs.
    """

    def __init__(
        self,
        operator: str,
        operator_type: str,
        shapes: Sequence[tuple[int, ...] | str],
        reason: str,
        status: InferStatus = InferStatus.kInferUnknown,
        diagnosis: str = "",
        suspect: str = "",
        *,
        of_export: bool = False,
    ) -> None:
        super().__init__(
            f"{operator_type} {operator!r} failed on inputs {describe_shapes(shapes)}: {reason}"
            + (f"; {diagnosis}" if diagnosis else "")
        )
        self.operator, self.operator_type, self.reason = operator, operator_type, reason
        self.shapes, self.status = tuple(shapes), status
        self.diagnosis, self.suspect, self.of_export = diagnosis, suspect, of_export

    def with_diagnosis(
        self, diagnosis: str, suspect: str = "", *, of_export: bool = False
    ) -> InferenceError:
        """Return the error with a diagnosis of the whole run."""
        return InferenceError(
            self.operator, self.operator_type, self.shapes, self.reason, self.status,
            diagnosis, suspect, of_export=of_export,
        )  # fmt: skip


class ExpressionError(EngineError):
    """An expression cannot be parsed or evaluated.

    Attributes
    ----------
    text : str
        The whole expression.
    position : int
        Index of the offending character in `text`, from 0.
    reason : str
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        start = max(0, position - 30)
        shown = text[start : position + 30]
        super().__init__(
            f"{reason} at character {position + 1} of the expression: "
            f"{'…' if start else ''}{shown}{'…' if position + 30 < len(text) else ''}"
        )
        self.text, self.position, self.reason = text, position, reason


class TensorError(EngineError, ValueError):
    """A Tensor was used with a wrong shape, index or count, or it is read-only."""


class FeedError(EngineError):
    """Values do not fit the model's inputs."""


class OpenShapeError(FeedError):
    """The sizes of an input are open, and the user must choose them.

    Attributes
    ----------
    suggestions : tuple of str
        Likely sizes, as ``--shape`` and `engine.shapes.parse_shapes` take them.
    """

    def __init__(self, sentence: str, suggestions: tuple[str, ...]) -> None:
        super().__init__(f"{sentence}; set its size")
        self.sentence, self.suggestions = sentence, suggestions


class OpenSourceError(OpenShapeError):
    """A file that is to be converted leaves sizes of its inputs open.

    Attributes
    ----------
    path : Path
    inputs : tuple of (str, tuple or None, str)
        Name, shape and dtype of each, as far as the file says them; empty where it says none.
        They are `SourceInput` of `engine.conversion`.
    """

    def __init__(
        self,
        path: Path,
        inputs: tuple[tuple[str, tuple[int | str | None, ...] | None, str], ...],
    ) -> None:
        super().__init__(f"{path} does not say the sizes of its inputs", ())
        self.path, self.inputs = path, inputs


class MemoryBoundError(EngineError):
    """Memory is exhausted, by the bound or in the machine."""


class SessionStateError(EngineError):
    """A call that the session's current state does not allow."""


class ValueNotComputedError(EngineError, LookupError):
    """An operand has no value yet.

    Attributes
    ----------
    operand : str
    """

    def __init__(self, operand: str, why: str) -> None:
        super().__init__(f"operand {operand!r} has no value: {why}")
        self.operand = operand


class ExportError(EngineError):
    """A file could not be written; no partial file is left behind."""


class DumpExistsError(ExportError):
    """The destination exists; the user may allow overwriting it."""


class ExportCancelledError(ExportError):
    """The user cancelled an export."""


class SweepError(EngineError):
    """A data set cannot be run through a model, or the results of such a run be read."""


class DumpFileError(EngineError):
    """A dump cannot be read.

    Attributes
    ----------
    path : Path
    reason : str
        What is wrong, without the place.
    """

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = Path(path), reason


class NumbersFileError(EngineError):
    """A file of the user's numbers by operator cannot be used.

    Attributes
    ----------
    path : Path
    reason : str
        What is wrong, without the place.
    line : int
        The line that is wrong, from 1; 0 for the whole file.
    """

    def __init__(self, path: Path | str, reason: str, line: int = 0) -> None:
        super().__init__(f"{path}, line {line}: {reason}" if line else f"{path}: {reason}")
        self.path, self.reason, self.line = Path(path), reason, line


class ReferenceFileError(EngineError):
    """A reference for a comparison, or the file of its corrections, cannot be read.

    Attributes
    ----------
    path : Path
    reason : str
        What is wrong and what to do, without the place.
    """

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(reason if reason.startswith(str(path)) else f"{path}: {reason}")
        self.path, self.reason = Path(path), reason


class MeaningError(EngineError, ValueError):
    """Outputs cannot be read as was asked for."""


class SearchError(EngineError, ValueError):
    """A search has a term that is not understood; the message says how to write it."""
