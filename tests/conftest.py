"""Fixtures that all tests share."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Without a display Qt would end the process.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# The engine is a thread: tests of windows look into it, and start sooner.
os.environ.setdefault("KUIPER_STUDIO_ENGINE", "thread")

# What the tests find out about kernels is not for the user's own cache.
_cache = tempfile.TemporaryDirectory(prefix="kuiper-studio-tests-", ignore_cleanup_errors=True)
os.environ["KUIPER_STUDIO_CACHE"] = _cache.name

# Nor is what windows remember for the user's settings; processes that are started have it too.
_config = tempfile.TemporaryDirectory(prefix="kuiper-studio-tests-", ignore_cleanup_errors=True)
os.environ["XDG_CONFIG_HOME"] = _config.name

# Machines are noisy, so no example has a time limit; continuous integration must not
# meet a new example by chance.
settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data beside the checkout; without it the test is skipped."""
    place = Path(os.environ.get("KUIPER_SHARED", ROOT.parent / "shared"))
    if not (place / "models").is_dir():
        pytest.skip("reference data is not beside the checkout")
    return place


@pytest.fixture(scope="session")
def samples() -> Path:
    """The sample models of the checkout."""
    return ROOT / "samples"


@pytest.fixture
def make_pair(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a pair from operator lines and weights, and gives the .param.

    The counts are worked out; `weights` maps ``operator.attribute`` to arrays.
    """

    def write(
        *lines: str, weights: Mapping[str, np.ndarray] | None = None, name: str = "m"
    ) -> Path:
        operands = {
            operand
            for line in lines
            for operand in line.split()[4 : 4 + sum(map(int, line.split()[2:4]))]
        }
        text = "\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines])
        param = tmp_path / f"{name}.pnnx.param"
        param.write_text(text + "\n", encoding="utf-8")
        with zipfile.ZipFile(tmp_path / f"{name}.pnnx.bin", "w") as archive:
            for entry, array in (weights or {}).items():
                archive.writestr(entry, np.ascontiguousarray(array).tobytes())
        return param

    return write
