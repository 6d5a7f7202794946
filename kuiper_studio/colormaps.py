"""The colour maps of tensor pictures, as the views name and order them.

The tables themselves are the engine's, so that dumps save the colours that the window shows.
"""

from __future__ import annotations

from typing import Final

from engine.pictures import COLOR_MAPS, DIVERGING_MAPS, lookup_table

__all__ = ["COLOR_MAPS", "DIVERGING_MAPS", "MAP_TIPS", "lookup_table"]

MAP_TIPS: Final = {
    "viridis": "From dark to light; the default for values of one sign",
    "cividis": "From dark to light; looks the same with colour blindness",
    "grey": "From black to white",
    "magma": "From black over purple to light yellow",
    "inferno": "From black over red to light yellow",
    "RdBu_r": "Blue below zero, white at zero, red above; the default for values of both signs",
    "twilight": "From light over blue, black and red to light again; the default for phases",
    "PuOr": "Orange below zero, white at zero, purple above",
}
