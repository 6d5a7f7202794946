"""Graph, Operator and Operand of a PNNX file, and services to change them.

The services are those of pnnx's Graph (``tools/pnnx/src/ir.cpp`` in Tencent/ncnn), which
KuiperInfer has too. They keep both ends of every connection consistent: an operand's
`consumers` contain an operator once per use, and an operator has as many `input_names` as
`inputs`. pnnx leaves that to the caller.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.file_versions import FileVersion
    from engine.pnnx.attribute import Attribute, WeightArchive
    from engine.pnnx.parameter import Parameter

__all__ = ["Graph", "Operand", "Operator", "Shape"]

Shape: TypeAlias = tuple[int | str | None, ...]

_making: Final = RLock()


class Operand:
    """A tensor between operators.

    Attributes
    ----------
    name : str
    producer : Operator or None
    consumers : list of Operator
        One entry per use; change it through the operators.
    shape : tuple of int, str or None, or None
        None as a dimension is ``?``, a string a symbol such as ``%batch``. None as a whole:
        the file does not say, as for scalars, tuples and numbers.
    dtype : str or None
        pnnx's name; None where the file does not say.
    """

    __slots__ = ("consumers", "dtype", "name", "producer", "shape")

    def __init__(self, name: str, producer: Operator | None = None) -> None:
        self.name = name
        self.producer = producer
        self.consumers: list[Operator] = []
        self.shape: Shape | None = None
        self.dtype: str | None = None

    @override
    def __repr__(self) -> str:
        return f"Operand({self.name!r}, shape={self.shape}, dtype={self.dtype})"


class Operator:
    """A node of the graph; made by the graph's services.

    Attributes
    ----------
    type, name : str
    inputs, outputs : list of Operand
        To be changed through the methods.
    input_names : list of str
        PyTorch's argument name of each input, ``""`` where the file gives none.
    params : dict of str to Parameter
    attrs : dict of str to Attribute
    """

    __slots__ = ("attrs", "input_names", "inputs", "name", "outputs", "params", "type")

    def __init__(self, type: str, name: str) -> None:  # noqa: A002 - pnnx's own word
        self.type, self.name = type, name
        self.inputs: list[Operand] = []
        self.outputs: list[Operand] = []
        self.input_names: list[str] = []
        self.params: dict[str, Parameter] = {}
        self.attrs: dict[str, Attribute] = {}

    def add_input(self, operand: Operand, name: str = "") -> None:
        """Add an operand as an input, with the argument name `name` if given."""
        self.inputs.append(operand)
        self.input_names.append(name)
        operand.consumers.append(self)

    def replace_input(self, index: int, operand: Operand) -> None:
        """Replace input `index` by another operand; its argument name stays."""
        self.inputs[index].consumers.remove(self)
        self.inputs[index] = operand
        operand.consumers.append(self)

    def remove_input(self, index: int) -> None:
        """Remove input `index`."""
        self.inputs.pop(index).consumers.remove(self)
        self.input_names.pop(index)

    def add_output(self, operand: Operand) -> None:
        """Produce an operand.

        Raises
        ------
        ValueError
            If another operator produces it.
        """
        if operand.producer is not None:
            raise ValueError(
                f"{operand.producer.name!r} already produces operand {operand.name!r}"
            )
        operand.producer = self
        self.outputs.append(operand)

    @override
    def __repr__(self) -> str:
        return f"Operator({self.type}, {self.name!r})"


class Graph:
    """Operators in file order and the operands between them.

    Parameters
    ----------
    operators : dict of str to Operator, optional
    operands : dict of str to Operand, optional
        By name, in file order and connected; not copied.

    Attributes
    ----------
    operators : list of Operator
        To be changed through the methods.
    operands : dict of str to Operand
        By name, in the order of their producers.
    archive : WeightArchive or None
        The ``.bin`` that the attributes are from, if there is one.
    param_version : FileVersion or None
        Of the ``.param`` when it was read, if it was.
    has_weights : bool
        False for a model with weights that was opened without its ``.bin``.
    format : {"pnnx", "ncnn"}
        Of the files.
    unannotated : dict of str to frozenset of str
        Inputs whose shape and dtype the line of an operator did not repeat, by its name.
        pnnx always repeats them; so files edited by hand are written back as they were.
    """

    __slots__ = (
        "_by_name",
        "_make",
        "_operands",
        "_operators",
        "_unannotated",
        "archive",
        "format",
        "has_weights",
        "param_version",
    )

    def __init__(
        self,
        operators: dict[str, Operator] | None = None,
        operands: dict[str, Operand] | None = None,
    ) -> None:
        self._make: Callable[[], Graph] | None = None
        self._by_name = operators if operators is not None else {}
        self._operators = list(self._by_name.values())
        self._operands = operands if operands is not None else {}
        self._unannotated: dict[str, frozenset[str]] = {}
        self.format: Literal["pnnx", "ncnn"] = "pnnx"
        self.archive: WeightArchive | None = None
        self.param_version: FileVersion | None = None
        self.has_weights = True

    @classmethod
    def deferred(cls, make: Callable[[], Graph]) -> Graph:
        """Make a graph whose contents are made on first use.

        Parameters
        ----------
        make : callable
            Called at most once; its graph is used directly.
        """
        graph = cls()
        graph._make = make
        return graph

    @property
    def weights_path(self) -> Path | None:
        """The ``.bin`` that the attributes are from, if there is one."""
        return self.archive.path if self.archive is not None else None

    @property
    def versions(self) -> tuple[FileVersion, ...]:
        """The files that the graph was read from, as they were."""
        read = (self.param_version, self.archive.version if self.archive else None)
        return tuple(version for version in read if version is not None)

    @property
    def is_made(self) -> bool:
        """Whether the operators are made, and may have been changed."""
        return self._make is None

    @property
    def operators(self) -> list[Operator]:
        """Operators in file order."""
        self._materialise()
        return self._operators

    @property
    def operands(self) -> dict[str, Operand]:
        """Operands by name, in the order of their producers."""
        self._materialise()
        return self._operands

    @property
    def unannotated(self) -> dict[str, frozenset[str]]:
        """Inputs whose shapes the line of an operator did not repeat, by its name."""
        self._materialise()
        return self._unannotated

    @unannotated.setter
    def unannotated(self, inputs: dict[str, frozenset[str]]) -> None:
        self._unannotated = inputs

    def _materialise(self) -> None:
        """Make the contents."""
        if self._make is None:
            return
        with _making:
            if self._make is not None:
                made = self._make()
                self._operators, self._operands = made.operators, made.operands
                self._unannotated = made.unannotated
                self._by_name = {operator.name: operator for operator in self._operators}
                self._make = None

    # Services

    def get_operator(self, name: str) -> Operator | None:
        """Operator by name."""
        self._materialise()
        return self._by_name.get(name)

    def get_operand(self, name: str) -> Operand | None:
        """Operand by name."""
        return self.operands.get(name)

    def new_operator(self, type: str, name: str) -> Operator:  # noqa: A002
        """Add an operator at the end.

        Raises
        ------
        ValueError
            If there is an operator of that name.
        """
        return self._insert(len(self.operators), type, name)

    def new_operator_before(self, type: str, name: str, current: Operator) -> Operator:  # noqa: A002
        """Add an operator before another.

        Raises
        ------
        ValueError
            If there is an operator of that name, or `current` is of another graph.
        """
        return self._insert(self._index(current), type, name)

    def new_operator_after(self, type: str, name: str, current: Operator) -> Operator:  # noqa: A002
        """Add an operator after another.

        Raises
        ------
        ValueError
            If there is an operator of that name, or `current` is of another graph.
        """
        return self._insert(self._index(current) + 1, type, name)

    def new_operand(self, name: str) -> Operand:
        """Add an operand that nothing produces yet.

        Raises
        ------
        ValueError
            If there is an operand of that name.
        """
        if name in self.operands:
            raise ValueError(f"the graph already has an operand named {name!r}")
        operand = self.operands[name] = Operand(name)
        return operand

    def remove_operator(self, operator: Operator) -> None:
        """Remove an operator together with its outputs.

        Raises
        ------
        ValueError
            If an output is still consumed, or `operator` is of another graph.
        """
        index = self._index(operator)
        for operand in operator.outputs:
            if operand.consumers:
                raise ValueError(
                    f"operator {operator.name!r} cannot be removed: "
                    f"{operand.consumers[0].name!r} takes its output {operand.name!r}"
                )
        while operator.inputs:
            operator.remove_input(-1)
        for operand in operator.outputs:
            operand.producer = None
            del self.operands[operand.name]
        operator.outputs.clear()
        del self.operators[index], self._by_name[operator.name]

    def weights(self) -> Iterator[tuple[str, Attribute]]:
        """Attributes with the names of their entries in the ``.bin``, in file order."""
        for operator in self.operators:
            if operator.attrs:
                for key in sorted(operator.attrs):
                    yield f"{operator.name}.{key}", operator.attrs[key]

    def same_as(self, other: Graph) -> bool:
        """Whether two graphs have equal operators in equal order, and equal operands.

        Parameters of equal value are equal whatever their texts; weights are compared byte
        by byte.
        """
        if len(self.operators) != len(other.operators) or self._edges() != other._edges():
            return False
        return all(map(_same_operator, self.operators, other.operators))

    @override
    def __repr__(self) -> str:
        return f"Graph({len(self.operators)} operators, {len(self.operands)} operands)"

    def _insert(self, index: int, type: str, name: str) -> Operator:  # noqa: A002
        self._materialise()
        if name in self._by_name:
            raise ValueError(f"the graph already has an operator named {name!r}")
        operator = self._by_name[name] = Operator(type, name)
        self.operators.insert(index, operator)
        return operator

    def _index(self, operator: Operator) -> int:
        try:
            return self.operators.index(operator)
        except ValueError:
            raise ValueError(f"operator {operator.name!r} is not of this graph") from None

    def _edges(self) -> dict[str, tuple[Shape | None, str | None, str | None]]:
        return {
            name: (
                operand.shape,
                operand.dtype,
                operand.producer.name if operand.producer else None,
            )
            for name, operand in self.operands.items()
        }


def _same_operator(one: Operator, other: Operator) -> bool:
    return (
        (one.type, one.name, one.input_names, one.params)
        == (other.type, other.name, other.input_names, other.params)
        and [o.name for o in one.inputs] == [o.name for o in other.inputs]
        and [o.name for o in one.outputs] == [o.name for o in other.outputs]
        and one.attrs.keys() == other.attrs.keys()
        and all(one.attrs[key].same_as(other.attrs[key]) for key in one.attrs)
    )
