"""ncnn's own file format: a ``.param`` of layers and blobs, and a ``.bin`` without names.

The specification is ncnn's reader (``src/net.cpp``, ``paramdict.cpp`` and ``modelbin.cpp`` in
Tencent/ncnn at a4d2ea1, July 2026). A file becomes the same kind of `Graph` as PNNX files:
layers are operators, blobs operands. Types have the prefix ``ncnn.``, parameters the names in
ncnn's source, and shapes no batch axis. A blob that no layer reads is an output of the model,
and the graph ends it in an output operator.

`types` has the table of layer types, `reader` the text, `weights` the ``.bin``. The layers in
NumPy are in `engine.layers.ncnn`, ncnn's kernels in `engine.backends.ncnn_file_kernels`.
"""

from __future__ import annotations
