"""Writes and reads dumps: the tensors of a session as files for other tools.

The folder's layout::

    manifest.json                        what everything is, true names included
    summary.csv                          one row per operand
    inputs/000__<operand>.npy            what was fed
    ops/012_<type>__<operand>.npy        execution index first, so that any list keeps the order
    weights/<operator>.<attribute>.npy   where asked for

Members of a tuple-valued operand have their index after its name, ``7_0`` and ``7_1``.
Arrays are C-ordered and little-endian. Everything is written to a temporary path and renamed at
the end: an export that is cancelled, fails or fills the disk leaves nothing behind. File names
are made of cleaned names that cannot leave the folder or collide, also on a file system that
ignores case; the true names are in the manifest.

The manifest has statistics of every array. SHA-256 identify the inputs, the ``.param`` and the
directory of the ``.bin`` with its CRC-32; on request also every array and the whole ``.bin``.
For each layer file of the graph (``layers``) it has name, checksum and registered types.

An ``.npz`` holds the arrays alone, by operand name, and a ``.safetensors`` the manifest too,
as the entry ``manifest`` of its metadata. Pictures come as a folder of the same layout.
"""

from __future__ import annotations

from engine.dump.entries import select_operators
from engine.dump.names import clean_name
from engine.dump.options import FORMAT_OF_SUFFIX, FORMATS, DumpOptions, Format
from engine.dump.reading import has_manifest, kernels_of, read_manifest, seed_of
from engine.dump.writing import check_destination, write_arrays, write_dump

__all__ = [
    "FORMATS",
    "FORMAT_OF_SUFFIX",
    "DumpOptions",
    "Format",
    "check_destination",
    "clean_name",
    "has_manifest",
    "kernels_of",
    "read_manifest",
    "seed_of",
    "select_operators",
    "write_arrays",
    "write_dump",
]
