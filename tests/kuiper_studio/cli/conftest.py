"""Running command lines within the test's process."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from kuiper_studio.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command line ended."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What a failed command said, checked to be one line and nothing else."""
        assert self.status == 2, self
        assert self.err.startswith("kuiper-studio: ")
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("kuiper-studio: ").removesuffix("\n")

    @property
    def lines(self) -> list[str]:
        """What a command that did its work printed."""
        assert (self.status, self.err) == (0, ""), self
        return self.out.splitlines()


@pytest.fixture
def run(capsys) -> Callable[..., Ended]:
    """A function that runs a command line."""

    def call(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as exc:  # argparse's way
            status = exc.code
        return Ended(status, *capsys.readouterr())

    return call


@pytest.fixture
def digits(samples: Path, tmp_path: Path) -> Path:
    """A copy of the digits sample."""
    folder = tmp_path / "digits"
    folder.mkdir()
    for name in ("digits.pnnx.param", "digits.pnnx.bin", "digit_3.png", "labels.txt"):
        shutil.copy(samples / "digits" / name, folder / name)
    return folder
