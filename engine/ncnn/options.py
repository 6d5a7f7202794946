"""The options that ncnn computes with."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from engine.errors import SessionStateError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEPLOYED", "EXACT", "OPTION_NAMES", "NcnnOptions"]

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "fp16": ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"),
        "bf16": ("use_bf16_storage",),
        "packing": ("use_packing_layout",),
        "winograd": ("use_winograd_convolution",),
        "sgemm": ("use_sgemm_convolution",),
    }
)
OPTION_NAMES: Final = tuple(_FIELDS)
_PRESETS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "exact": frozenset(),
        "deployed": frozenset({"fp16", "packing", "winograd", "sgemm"}),  # ncnn's defaults
    }
)


@dataclass(frozen=True, slots=True)
class NcnnOptions:
    """Options of ncnn for a model in its own format.

    Layers with quantised weights always compute in int8; ncnn has no alternative.

    Attributes
    ----------
    enabled : frozenset of str
        Of `OPTION_NAMES`.
    """

    enabled: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> NcnnOptions:
        """Read ``exact``, ``deployed``, or names such as ``bf16,packing``.

        Raises
        ------
        SessionStateError
            If a name is unknown.
        """
        if text in _PRESETS:
            return cls(_PRESETS[text])
        names = text.replace("+", ",").split(",")
        unknown = [name for name in names if name not in _FIELDS]
        if unknown:
            raise SessionStateError(
                f"ncnn has no option {unknown[0]!r} here; give exact, deployed or some of "
                f"{', '.join(OPTION_NAMES)}"
            )
        return cls(frozenset(names))

    @property
    def text(self) -> str:
        """The options as text for the name of a kernel."""
        for name, enabled in _PRESETS.items():
            if enabled == self.enabled:
                return name
        return "+".join(name for name in OPTION_NAMES if name in self.enabled)

    @property
    def fields(self) -> dict[str, bool]:
        """Fields of ``ncnn.Option`` and their values."""
        return {
            field: name in self.enabled for name, fields in _FIELDS.items() for field in fields
        }


EXACT: Final = NcnnOptions.parse("exact")
DEPLOYED: Final = NcnnOptions.parse("deployed")
