"""Write the tensors of a session to files that other tools read, and read what they say.

The folder's layout::

    manifest.json                        what everything is, true names included
    summary.csv                          one row per operand
    inputs/000__<operand>.npy            what was fed
    ops/012_<type>__<operand>.npy        execution index first, so that any list keeps the order
    weights/<operator>.<attribute>.npy   where asked for

Members of a tuple-valued operand have their places behind its name, ``7_0`` and ``7_1``.
Arrays are C-ordered and little-endian. Everything is written beside the destination and
renamed at the end: an export that is cancelled, fails or finds the disk full leaves nothing
behind. File names are made of cleaned names that can neither leave the folder nor collide,
also where case does not count; the true names stand in the manifest.

The manifest has statistics of every array. What was computed is told by SHA-256: of the
inputs, of the ``.param`` and of what the ``.bin`` lists of its weights, CRC-32 included; where
that is asked for, of every array and of the whole ``.bin``. Of the user's files of layers that
the graph was built with (``layers``) it has the name, the checksum of what was run, and the
types that are theirs.

An ``.npz`` holds the arrays alone, by operand name, and a ``.safetensors`` the manifest too,
as the entry ``manifest`` of its metadata. Pictures come as a folder of the same layout.
"""

from __future__ import annotations

from engine.dump.entries import select_operators
from engine.dump.names import clean_name
from engine.dump.options import FORMAT_OF_SUFFIX, FORMATS, DumpOptions, Format
from engine.dump.reading import kernels_of, read_manifest, seed_of
from engine.dump.writing import check_destination, write_arrays, write_dump

__all__ = [
    "FORMATS",
    "FORMAT_OF_SUFFIX",
    "DumpOptions",
    "Format",
    "check_destination",
    "clean_name",
    "kernels_of",
    "read_manifest",
    "seed_of",
    "select_operators",
    "write_arrays",
    "write_dump",
]
