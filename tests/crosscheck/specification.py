"""What a family file is made of: specifications, which draw cases."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from crosscheck.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Case", "DrawError", "Drawn", "Spec", "all_specs", "flatten", "spec", "specs"]

_ATTEMPTS = 50


class Case:
    """One module with its inputs.

    Parameters
    ----------
    module : Module or callable
        A plain function of the inputs will do.
    *inputs : Tensor
    other : sequence of Tensor, optional
        Inputs of another size. The module is then exported with both, which makes the graph
        dynamic, and the session is fed both.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        *inputs: torch.Tensor,
        other: Sequence[torch.Tensor] | None = None,
    ) -> None:
        self.module = module if isinstance(module, nn.Module) else _Function(module)
        self.inputs = inputs
        self.other = None if other is None else tuple(other)


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


@dataclass(frozen=True)
class Spec:
    """A way to draw cases for some operator types.

    Attributes
    ----------
    name : str
        ``family.function``.
    types : tuple of str
        Operator types that its graphs are meant to hold.
    draw : callable
        From a `Draw` to a `Case`.
    tolerance : float
        Allowed difference, relative to each number and to the largest of its tensor.
    levels : tuple of int
        Levels of pnnx's optimisation at which the file says what the module does.
    """

    name: str
    types: tuple[str, ...]
    draw: Callable[[Draw], Case]
    tolerance: float
    levels: tuple[int, ...]

    def drawn(self, seed: int) -> Drawn:
        """Draw a case and compute what PyTorch gives; the same for the same seed.

        What PyTorch refuses is drawn again: a specification need not know every rule about
        how parameters fit together.

        Raises
        ------
        DrawError
            If PyTorch refuses again and again.
        """
        said: Exception | None = None
        for attempt in range(_ATTEMPTS):
            draw = Draw(f"{self.name}:{seed}:{attempt}", seed + attempt)
            try:
                case = self._case(draw)
                both = [_results(case, inputs) for inputs in (case.inputs, case.other or ())]
            except (RuntimeError, ValueError, IndexError) as exc:
                said = exc
            else:
                return Drawn(self, seed, case, *both)
        raise DrawError(f"{self.name}, seed {seed}: PyTorch refuses: {said}") from said

    def _case(self, draw: Draw) -> Case:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(draw.integer(0, 2**31))
            case = self.draw(draw)
        _stir(case.module, draw)
        case.module.eval()
        return case


class DrawError(Exception):
    """A specification draws what PyTorch does not take."""


@dataclass(frozen=True)
class Drawn:
    """A case, what it was drawn from, and what PyTorch gives.

    Attributes
    ----------
    spec : Spec
    seed : int
    case : Case
    results, other_results : list of Tensor
        Flattened; of both sizes.
    """

    spec: Spec
    seed: int
    case: Case
    results: list[torch.Tensor]
    other_results: list[torch.Tensor]

    def __str__(self) -> str:
        return f"{self.spec.name}, seed {self.seed}"


def _results(case: Case, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if not inputs and case.inputs:
        return []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return list(flatten(case.module(*(x.clone() for x in inputs))))


def flatten(result: Any) -> Iterator[torch.Tensor]:
    """Tensors of a result in order, nested tuples and lists taken apart."""
    if isinstance(result, torch.Tensor):
        yield result
    else:
        for item in result:
            yield from flatten(item)


def _stir(module: nn.Module, draw: Draw) -> None:
    """Replace weights that are all alike, which would hide faults, by random ones."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in tensors:
        if tensor.is_floating_point() and tensor.numel() > 1 and tensor.unique().numel() == 1:
            values = draw.normal(*tensor.shape)
            with torch.no_grad():
                tensor.copy_(values.abs() + 0.5 if name.endswith("var") else values)


_specs: dict[str, Spec] = {}


def spec(
    *types: str, tolerance: float = 2e-5, levels: tuple[int, ...] = (0, 1, 2)
) -> Callable[[Callable[[Draw], Case]], Callable[[Draw], Case]]:
    """Make a specification of a function that draws a case.

    Parameters
    ----------
    *types : str
        Operator types that are meant, as the ``.param`` file writes them at level 2.
    tolerance : float
    levels : tuple of int
        See `Spec`; the comment beside it says why a level is left out.
    """

    def decorate(function: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        _add(Spec(_name_of(function), types, function, tolerance, levels))
        return function

    return decorate


def specs(
    table: Mapping[str, Sequence[str]],
    *,
    tolerance: float = 2e-5,
    levels: tuple[int, ...] = (0, 1, 2),
) -> Callable[[Callable[[Draw, str], Case]], Callable[[Draw, str], Case]]:
    """Make a specification for each row of a table.

    Parameters
    ----------
    table : mapping of str to sequence of str
        From a name, which the function takes as its second argument, to operator types.
    tolerance, levels
        As for `spec`.
    """

    def decorate(function: Callable[[Draw, str], Case]) -> Callable[[Draw, str], Case]:
        for row, types in table.items():
            name = f"{_name_of(function)}[{row}]"
            _add(Spec(name, tuple(types), partial(_swapped, function, row), tolerance, levels))
        return function

    return decorate


def _swapped(function: Callable[[Draw, str], Case], row: str, draw: Draw) -> Case:
    return function(draw, row)


def _name_of(function: Callable[..., Case]) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def _add(new: Spec) -> None:
    if new.name in _specs:
        raise ValueError(f"there are two specifications {new.name}")
    _specs[new.name] = new


def all_specs() -> Iterator[Spec]:
    """Read the family files and give all specifications, sorted by name."""
    from crosscheck import families

    for module in pkgutil.iter_modules(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)
    yield from (_specs[name] for name in sorted(_specs))
