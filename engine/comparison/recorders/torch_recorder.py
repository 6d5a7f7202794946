"""Records what a PyTorch module computes, for `kuiper-studio compare --reference FOLDER`.

    from torch_recorder import record
    record(module.eval(), (image,), "recording")
    record(module.eval(), {"input_ids": ids, "attention_mask": mask}, "recording")

or on the command line, for a TorchScript file and inputs as .npy:

    python torch_recorder.py model.pt recording input.npy

Every function that PyTorch runs is recorded in order, inside and outside of modules, with the
module that calls it and with hashes of its weights. Needs NumPy and PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

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
_OF_NUMPY = (torch.float16, torch.float32, torch.float64)


def record(module, inputs, folder):
    """Run a module and record it.

    Parameters
    ----------
    module : torch.nn.Module or torch.jit.ScriptModule
        In evaluation mode; call ``module.eval()`` first.
    inputs : sequence of torch.Tensor, or mapping of str to torch.Tensor
        Its positional arguments or its keyword arguments; or one tensor. Gradients are off
        unless one of them requires a gradient.
    folder : path
        Folder to write to; new or empty. If the module raises an exception, it has what was
        computed before.

    Returns
    -------
    Path
        The folder.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"record takes a torch.nn.Module, not {type(module).__name__}: put the code into "
            "the forward of a module, and call .module() of an exported program"
        )
    if any(map(_depends_on_training, module.modules())):
        text = "dropout or BatchNorm is in training mode: call module.eval(), and record again"
        print(text, file=sys.stderr)
    if isinstance(inputs, (torch.Tensor, np.ndarray)):
        inputs = (inputs,)
    named = isinstance(inputs, Mapping)
    args = () if named else tuple(map(_as_tensor, inputs))
    kwargs = {name: _as_tensor(value) for name, value in inputs.items()} if named else {}
    recorder = _Recorder(module, Writer(folder, f"torch {torch.__version__}"))
    return recorder.run(args, kwargs)


class _Recorder(TorchDispatchMode):
    """Intercepts every function that PyTorch runs."""

    def __init__(self, module, writer):
        super().__init__()
        self._module, self._writer = module, writer
        # Of each tensor its key, and how often its memory had been written to.
        self._keys = WeakTensorKeyDictionary()
        self._writes = {}  # by memory: how often it was written to, and the key written last
        self._weights = {}  # names of weights by their memory
        self._hashes = {}
        self._stack = []
        self._calls = {}
        for name, weight in (*module.named_parameters(), *module.named_buffers()):
            memory = _memory(weight)
            if memory is not None:
                self._weights.setdefault(memory, (name, weight))

    def run(self, args, kwargs):
        """Run the module."""
        writer, inputs = self._writer, _tensors((args, kwargs))
        for index, tensor in enumerate(inputs):
            array = _array(tensor)
            if array is not None:
                key = writer.tensor(array, f"input{index}", "input")
                writer.inputs.append(key)
                self._keep(tensor, key)
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
        hooks = self._hooked()
        try:
            with torch.set_grad_enabled(wanted), self:
                outputs = self._module(*args, **kwargs)
            for tensor in _tensors(outputs):
                key, array = self._key_of(tensor), None
                if key is None:
                    array = _array(tensor)
                if array is not None:
                    key = writer.tensor(array, "output")
                if key is not None:
                    writer.outputs.append(key)
        finally:
            for hook in hooks:
                hook.remove()
            folder = writer.close()
        return folder

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
        """Return the key of what a tensor holds now; None if it was never recorded."""
        key, written = self._keys.get(tensor, (None, 0))
        if key is None or written == self._writes_to(tensor)[0]:
            return key
        return self._record_again(tensor, key)

    def _keep(self, tensor, key):
        self._keys[tensor] = (key, self._writes_to(tensor)[0])

    def _writes_to(self, tensor):
        return self._writes.get(_memory(tensor), (0, None))

    def _record_again(self, tensor, before):
        """Record a tensor again, because one that shares its memory was written to."""
        with torch._C._DisableTorchDispatch():
            array = _array(tensor)
        if array is None:
            return None
        module, kind = self._stack[-1] if self._stack else ("", "")
        key = self._writer.tensor(array, module or "written")
        source = self._writes_to(tensor)[1]
        sources = [before] if source is None else [before, source]
        name = "written in place"
        self._writer.operator(
            module or name, f"{kind}/{name}" if kind else name, sources, [key]
        )
        self._keep(tensor, key)
        return key

    def _note_writes(self, function, args, kwargs):
        """Count what a function writes to; the key follows when its result is recorded."""
        written = []
        for place, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = kwargs.get(argument.name)
                given = args[place] if place < len(args) else given
                written += _tensors(given)
        for tensor in written:
            memory = _memory(tensor)
            if memory is not None:
                self._writes[memory] = (self._writes_to(tensor)[0] + 1, None)
        return written

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
                    keys.extend(self._constant(tensor, found[0]))
        results = function(*args, **kwargs)
        written = self._note_writes(function, args, kwargs)
        with torch._C._DisableTorchDispatch():
            self._note(name, args, kwargs, given, keys, weights, results)
        for tensor in written:
            memory, (key, count) = _memory(tensor), self._keys.get(tensor, (None, 0))
            if memory is not None and count == self._writes[memory][0]:
                self._writes[memory] = (count, key)
        return results

    def _constant(self, tensor, name):
        with torch._C._DisableTorchDispatch():
            array = _array(tensor)
        if array is None:
            return []
        key = self._writer.tensor(array, name, "constant")
        self._keep(tensor, key)
        return [key]

    def _note(self, name, args, kwargs, given, keys, weights, results):
        made = [tensor for tensor in _tensors(results) if tensor.numel()]
        if not made or (weights and not keys) or name.startswith("aten::empty"):
            return  # a view of a weight lies in the same memory
        is_one = name in _SAME_ELEMENTS and len(made) == 1 and given
        if is_one and self._repeats(made[0], given[0]):
            return
        module, kind = self._stack[-1] if self._stack else ("", "")
        outputs = self._write(made, module or name.partition("::")[2])
        if not outputs:
            return
        params = {"arguments": [a for a in args if not isinstance(a, torch.Tensor)], **kwargs}
        self._writer.operator(
            module or name,
            f"{kind}/{name}" if kind else name,
            keys,
            outputs,
            {key: known for key in weights if (known := self._hash(key, weights[key]))},
            params,
        )

    def _repeats(self, made, source):
        """Keep a result under the key of the tensor whose elements it repeats, if it does."""
        key = self._key_of(source)
        if key is None or made.numel() != source.numel() or made.dtype != source.dtype:
            return False
        self._keep(made, key)
        return True

    def _write(self, made, name):
        """Write results, and return their keys; those without elements have none."""
        keys = []
        for tensor in made:
            array = _array(tensor)
            if array is not None:
                keys.append(self._writer.tensor(array, name))
                self._keep(tensor, keys[-1])
        return keys

    def _hash(self, name, weight):
        if name not in self._hashes:
            array = _array(weight)
            self._hashes[name] = hash_of(array) if array is not None else None
        return self._hashes[name]


def _depends_on_training(module):
    """Whether a module is in training mode and computes something else there."""
    kind = getattr(module, "original_name", type(module).__name__)  # the former of TorchScript
    return getattr(module, "training", False) and ("Dropout" in kind or "BatchNorm" in kind)


def _memory(tensor):
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError, ValueError):  # such as of a lazy module
        return None


def _array(tensor):
    """Return the elements; None for a tensor without, such as a sparse one or on `meta`."""
    try:
        tensor = tensor.detach()
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if tensor.is_floating_point() and tensor.dtype not in _OF_NUMPY:
            tensor = tensor.float()  # bfloat16 and the types of 8 bits
        return np.array(tensor.cpu().resolve_conj().resolve_neg().contiguous().numpy())
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None


def _as_tensor(value):
    """Return an argument with tensors in place of arrays, also in lists and dictionaries."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if type(value) is dict:
        return {name: _as_tensor(item) for name, item in value.items()}
    return type(value)(map(_as_tensor, value)) if type(value) in (list, tuple) else value


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _record_file(path, arrays, folder):
    """Record a TorchScript file."""
    try:
        module = torch.jit.load(path, map_location="cpu").eval()
    except RuntimeError as exc:
        raise ValueError(
            f"{path} is no TorchScript that this PyTorch reads: call record(module, inputs, "
            f"folder) in Python, where the model is made ({str(exc).splitlines()[0]})"
        ) from exc
    return record(module, [torch.from_numpy(array) for array in arrays], folder)


if __name__ == "__main__":
    sys.exit(main(_record_file, "MODEL.pt", sys.argv))
