"""Random parameters and tensors, the same ones for the same seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FLOATS", "INTEGERS", "Draw"]

FLOATS = (torch.float32, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

T = TypeVar("T")


class Draw:
    """A source of random parameters.

    Parameters
    ----------
    seed : str
    turn : int
        Number of the case, for what the cases of a specification take in turns.
    """

    def __init__(self, seed: str, turn: int = 0) -> None:
        self._turn = turn
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(self._random.getrandbits(64))

    # Parameters

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return self._random.randint(low, high)

    def number(self, low: float, high: float) -> float:
        """A number with three decimals, as the file would keep it."""
        return round(self._random.uniform(low, high), 3)

    def flag(self, chance: float = 0.5) -> bool:
        """True or False."""
        return self._random.random() < chance

    def one(self, *options: T) -> T:
        """One of the options."""
        return self._random.choice(options)

    def turn(self, *options: T) -> T:
        """One of the options, in turns: so many cases in a row see each of them.

        Several calls take turns together, like the digits of a number.
        """
        self._turn, place = divmod(self._turn, len(options))
        return options[place]

    def some(self, options: Sequence[T], least: int = 0) -> list[T]:
        """Some of the options, each once, in any order."""
        return self._random.sample(options, self.integer(least, len(options)))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in any order."""
        return self._random.sample(items, len(items))

    def keywords(self, **values: Any) -> dict[str, Any]:
        """Some of these keyword arguments; the others keep PyTorch's default."""
        return {name: value for name, value in values.items() if self.flag(0.6)}

    def shape(self, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
        """Sizes of `rank` dimensions."""
        return tuple(self.integer(low, high) for _ in range(rank))

    def window(self, rank: int, low: int, high: int) -> int | tuple[int, ...]:
        """A size for all dimensions, or one for each, as windows take them."""
        return self.integer(low, high) if self.flag() else self.shape(rank, low, high)

    def dim(self, rank: int) -> int:
        """A dimension, counted from the front or from the back."""
        return self.integer(-rank, rank - 1)

    def dims(self, rank: int, least: int = 1, most: int | None = None) -> tuple[int, ...]:
        """Different dimensions, each counted from the front or from the back."""
        count = self.integer(least, rank if most is None else min(most, rank))
        chosen = self._random.sample(range(rank), count)
        return tuple(d - rank if self.flag() else d for d in chosen)

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to `shape`: leading ones missing, some sizes 1."""
        sizes = [1 if self.flag(0.3) else size for size in shape]
        return tuple(sizes[self.integer(0, len(sizes)) if self.flag(0.3) else 0 :])

    # Tensors

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Normally distributed numbers."""
        values = self._numbers.standard_normal(shape)
        if dtype.is_complex:
            values = values + 1j * self._numbers.standard_normal(shape)
        return torch.from_numpy(np.asarray(values)).to(dtype)

    def uniform(
        self, low: float, high: float, *shape: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Evenly distributed numbers."""
        return torch.from_numpy(np.asarray(self._numbers.uniform(low, high, shape))).to(dtype)

    def integers(
        self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64
    ) -> torch.Tensor:
        """Integers from `low` to `high`, both included."""
        values = self._numbers.integers(low, high, shape, endpoint=True)
        return torch.from_numpy(np.asarray(values)).to(dtype)

    def booleans(self, *shape: int, chance: float = 0.5) -> torch.Tensor:
        """True and False."""
        return torch.from_numpy(np.asarray(self._numbers.random(shape) < chance))

    def distinct(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Numbers of which no two are equal, so that their order is settled."""
        count = int(np.prod(shape))
        values = self._numbers.permutation(count).reshape(shape) - count // 2
        return torch.from_numpy(np.asarray(values)).to(dtype) / (
            4 if dtype.is_floating_point else 1
        )

    def tensor(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of any dtype: small integers, or normally distributed numbers."""
        if dtype == torch.bool:
            return self.booleans(*shape)
        if dtype.is_floating_point or dtype.is_complex:
            return self.normal(*shape, dtype=dtype)
        return self.integers(0 if dtype == torch.uint8 else -9, 9, *shape, dtype=dtype)
