"""Records what a PyTorch module computes, for `kuiper-studio compare --reference FOLDER`.

    from torch_recorder import record
    record(module.eval(), (image,), "recording")

or on the command line, for a TorchScript file and inputs as .npy:

    python torch_recorder.py model.pt recording input.npy

Every function that PyTorch runs is recorded in order, inside and outside of modules, with the
module that calls it and with hashes of its weights. Needs NumPy and PyTorch.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from engine.comparison.recorders.writer import Writer, hash_of, main

# Functions whose elements are those of their input in the same order.
_SAME_ELEMENTS = frozenset(
    "aten::" + name
    for name in (
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "unsqueeze",
        "squeeze",
        "flatten",
        "detach",
        "alias",
        "lift_fresh",
        "dropout",
        "contiguous",
        "_to_copy",
        "clone",
        "unflatten",
    )
)
# Functions that have weights; for all others a weight is an ordinary tensor.
_WITH_WEIGHTS = (
    "convolution",
    "conv",
    "linear",
    "addmm",
    "mm",
    "bmm",
    "baddbmm",
    "norm",
    "embedding",
    "lstm",
    "gru",
    "rnn",
    "prelu",
    "aten::t",
    "transpose",
    "attention",
    "matmul",
)
_LARGEST_CONSTANT = 1 << 24


def record(module, inputs, folder):
    """Run a module and record it.

    Parameters
    ----------
    module : torch.nn.Module or torch.jit.ScriptModule
        In evaluation mode; call ``module.eval()`` first.
    inputs : sequence of torch.Tensor
        Its positional arguments, or one tensor.
    folder : path
        Folder to write to; new or empty.

    Returns
    -------
    Path
        The folder.
    """
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    recorder = _Recorder(module, Writer(folder, f"torch {torch.__version__}"))
    return recorder.run(tuple(inputs))


class _Recorder(TorchDispatchMode):
    """Intercepts every function that PyTorch runs."""

    def __init__(self, module, writer):
        super().__init__()
        self._module, self._writer = module, writer
        self._keys = WeakTensorKeyDictionary()  # key of the tensor that an object holds now
        self._weights = {}  # names of weights by their memory
        self._hashes = {}
        self._stack = []
        self._calls = {}
        for name, weight in (*module.named_parameters(), *module.named_buffers()):
            self._weights.setdefault(_memory(weight), (name, weight))

    def run(self, inputs):
        """Run the module."""
        writer = self._writer
        for index, tensor in enumerate(_tensors(inputs)):
            key = writer.tensor(_array(tensor), f"input{index}", "input")
            writer.inputs.append(key)
            self._keep(tensor, key)
        hooks = self._hooked()
        try:
            with torch.no_grad(), self:
                outputs = self._module(*inputs)
        finally:
            for hook in hooks:
                hook.remove()
        for tensor in _tensors(outputs):
            key = self._key_of(tensor)
            if key is None:
                key = writer.tensor(_array(tensor), "output")
            writer.outputs.append(key)
        return writer.close()

    def _hooked(self):
        hooks = []
        for name, module in self._module.named_modules():
            if name and not isinstance(module, torch.jit.ScriptModule):
                hooks.append(module.register_forward_pre_hook(self._entering(name)))
                hooks.append(module.register_forward_hook(self._leaving()))
        return hooks

    def _entering(self, name):
        def enter(module, _):
            self._calls[name] = self._calls.get(name, 0) + 1
            self._stack.append((name, type(module).__name__))

        return enter

    def _leaving(self):
        def leave(_, __, outputs):
            name, _ = self._stack.pop()
            keys = [key for key in map(self._key_of, _tensors(outputs)) if key is not None]
            for key in keys:
                self._writer.rename(key, name)

        return leave

    def _key_of(self, tensor):
        return self._keys.get(tensor)

    def _keep(self, tensor, key):
        self._keys[tensor] = key

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        name = function._schema.name
        weights, keys = {}, []
        for tensor in given:
            key = self._key_of(tensor)
            if key is not None:
                keys.append(key)
                continue
            found = self._weights.get(_memory(tensor))
            if found is not None:
                weights[found[0]] = found[1]
                as_weight = any(word in name for word in _WITH_WEIGHTS)
                if not as_weight and tensor.numel() <= _LARGEST_CONSTANT:
                    keys.append(self._constant(tensor, found[0]))
        results = function(*args, **kwargs)
        with torch._C._DisableTorchDispatch():
            self._note(name, args, kwargs, given, keys, weights, results)
        return results

    def _constant(self, tensor, name):
        with torch._C._DisableTorchDispatch():
            key = self._writer.tensor(_array(tensor), name, "constant")
        self._keep(tensor, key)
        return key

    def _note(self, name, args, kwargs, given, keys, weights, results):
        made = [tensor for tensor in _tensors(results) if tensor.numel()]
        if not made or (weights and not keys) or name.startswith("aten::empty"):
            return  # a view of a weight lies in the same memory
        sources = [self._key_of(tensor) for tensor in given]
        if name in _SAME_ELEMENTS and len(made) == 1 and sources and sources[0] is not None:
            same = made[0].numel() == given[0].numel() and made[0].dtype == given[0].dtype
            if same:
                self._keep(made[0], sources[0])
                return
        module, kind = self._stack[-1] if self._stack else ("", "")
        outputs = []
        for tensor in made:
            key = self._writer.tensor(_array(tensor), module or name.partition("::")[2])
            outputs.append(key)
            self._keep(tensor, key)
        params = {"arguments": [a for a in args if not isinstance(a, torch.Tensor)], **kwargs}
        self._writer.operator(
            module or name,
            f"{kind}/{name}" if kind else name,
            keys,
            outputs,
            {key: self._hash(key, weight) for key, weight in weights.items()},
            params,
        )

    def _hash(self, name, weight):
        if name not in self._hashes:
            self._hashes[name] = hash_of(_array(weight))
        return self._hashes[name]


def _memory(tensor):
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return None


def _array(tensor):
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.cpu().contiguous().numpy())


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _record_file(path, arrays, folder):
    """Record a TorchScript file."""
    module = torch.jit.load(path, map_location="cpu").eval()
    return record(module, [torch.from_numpy(array) for array in arrays], folder)


if __name__ == "__main__":
    sys.exit(main(_record_file, "MODEL.pt", sys.argv))
