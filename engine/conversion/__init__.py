"""Opens TorchScript and ONNX files through pnnx, the exporter.

The exporter is a program of its own. It runs in a temporary folder on a copy of the file, with
a time limit and a memory bound. What it makes is kept in the user's cache folder, by content.
Nothing of a file is unpickled or executed in this process.

Nothing is imported here, because every model that is opened asks `suffixes` what it is.
"""
