"""Opens TorchScript and ONNX files through pnnx, the exporter.

The exporter is a separate program. It runs in a temporary folder on a copy of the file, with a
time limit and a memory bound. Its output is kept in the user's cache folder, by content.
Nothing in a file is unpickled or executed in this process.

Nothing is imported here, because opening any model imports `suffixes`.
"""
