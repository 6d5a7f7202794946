"""What is known of a model's outputs before their values are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Ends", "OutputEnd"]


@dataclass(frozen=True, slots=True)
class OutputEnd:
    """An output of a model.

    Attributes
    ----------
    name : str
        Of the operand.
    shape : tuple of int
    dtype : str
        NumPy's name.
    types : tuple of str
        Types of the operators that lead to it, the last one first, such as ``("F.softmax",
        "nn.Linear")``. Along the first input of each.
    pieces : tuple of int
        Sizes of what the last operator concatenates, of nested concatenations too; empty if it
        is none: ``(4, 80)`` for boxes and classes.
    is_projection : bool
        Whether the last linear layer adds no bias, as projections to embeddings do.
    has_vocabulary : bool
        Whether the last dimension has as many numbers as the table in which the model looks its
        input up.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    types: tuple[str, ...] = ()
    pieces: tuple[int, ...] = ()
    is_projection: bool = False
    has_vocabulary: bool = False

    @property
    def is_real(self) -> bool:
        """Whether its elements are real numbers, not integers."""
        return self.dtype.startswith(("float", "bfloat"))

    @property
    def is_integer(self) -> bool:
        """Whether its elements are integers."""
        return self.dtype.startswith(("int", "uint"))

    def ends_with(self, *names: str, among: int = 1) -> bool:
        """Return whether one of the last operators has a type with one of these names.

        Parameters
        ----------
        *names : str
            In lower case, such as ``"softmax"``; ``"nn.Softmax"`` and ``"F.softmax"`` have it.
        among : int
            How many operators to look at.
        """
        last = (each.rpartition(".")[2].rpartition("::")[2].lower() for each in self.types)
        return any(found in names for _, found in zip(range(among), last, strict=False))


@dataclass(frozen=True, slots=True)
class Ends:
    """Outputs and inputs of a model.

    Attributes
    ----------
    outputs : tuple of OutputEnd
        Tuples flattened.
    inputs : tuple of tuple of int
        Shapes of the inputs.
    integers : bool
        Whether an input takes integers, as token numbers are.
    """

    outputs: tuple[OutputEnd, ...]
    inputs: tuple[tuple[int, ...], ...] = ()
    integers: bool = field(default=False)

    @property
    def picture(self) -> tuple[int, ...] | None:
        """Shape of the first input that is a picture, (N, C, H, W); None without one."""
        for shape in self.inputs:
            if len(shape) == 4 and shape[1] in {1, 3, 4, 6} and min(shape[2:]) > 1:
                return shape
        return None

    @property
    def has_steps(self) -> bool:
        """Whether an input has one number for each sample, such as the step of a diffusion."""
        return any(len(shape) < 2 or shape[1:] == (1,) for shape in self.inputs)

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of the picture; None without one."""
        shape = self.picture
        return (shape[2], shape[3]) if shape is not None else None
