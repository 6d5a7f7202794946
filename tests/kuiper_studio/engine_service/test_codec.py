"""Messages come out as they went in, and hold nothing that could run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from engine.errors import InferenceError, LayerFileError, ModelFileError, OpenShapeError
from engine.inputs import InputSource
from engine.states import OperatorStatus, SessionState, StopReason
from engine.values import ArrayMetadata
from kuiper_studio.engine_service.codec import decode, encode
from kuiper_studio.engine_service.protocol import (
    Answer,
    Done,
    MemoryRequest,
    Model,
    OpenRequest,
    Outputs,
    Plan,
    Record,
    Status,
    Stepped,
    WorkFailed,
)


def returned(message):
    data, buffers = encode(message)
    return decode(data, [memoryview(bytes(buffer)) for buffer in buffers])


def test_a_request():
    model = Model(Path("a/b.param"), None, "auto", None)
    plan = Plan((InputSource("random", seed=3),), shapes=("h=3",), place="")
    request = OpenRequest(3, model, plan, 7, MemoryRequest(None, 1 << 20))
    assert returned(request) == request


def test_a_record():
    outputs = Outputs(5, {"1": ArrayMetadata((1, 2), np.dtype(np.float32)), "2": 4})
    record = Record(2, outputs, 0.25, OperatorStatus.EXECUTED, "numpy")
    value = np.arange(6, dtype=np.int16).reshape(2, 3)
    found = returned(Stepped(1, (record,), 3, {"1": value}))
    (came,) = found.records
    assert (came.index, came.status, came.seconds) == (2, record.status, 0.25)
    assert came.outputs.serial == 5
    assert came.outputs.by_operand == outputs.by_operand
    np.testing.assert_array_equal(found.values["1"], value)
    assert found.values["1"].dtype == np.int16


def test_a_record_is_sent_without_the_names_of_its_fields():
    records = [
        Record(index, Outputs(5, {}), 0.25, OperatorStatus.EXECUTED) for index in range(100)
    ]
    data, _ = encode(records)
    assert b"by_operand" not in data
    assert [record.index for record in decode(data, [])] == list(range(100))


def test_arrays_are_not_copied_into_the_message():
    value = np.zeros(100_000, np.float32)
    data, (buffer,) = encode(Answer(1, value, found=True))
    assert len(data) < 1000
    assert buffer.nbytes == value.nbytes
    value[5] = 9
    assert np.frombuffer(buffer, np.float32)[5] == 9


def test_arrays_of_read_only_memory_are_read_only():
    data, buffers = encode(Answer(1, np.ones(3)))
    found = decode(data, [memoryview(bytes(buffer)) for buffer in buffers])
    assert not found.result.flags.writeable


@pytest.mark.parametrize(
    "value",
    [(np.ones(2), (3, 2.5, None, "x", True)), 1 + 2j, (), np.array(4.0), np.zeros((0, 3))],
    ids=["tuple", "complex", "empty", "0-d", "no elements"],
)
def test_values_of_all_kinds(value):
    found = returned(Answer(1, value)).result
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "error",
    [
        InferenceError("conv", "nn.Conv2d", [(1, 2), "tuple"], "why", diagnosis="c"),
        ModelFileError(Path("m.param"), "bad", 7),
        LayerFileError(Path("l.py"), "bad", 3),
        OpenShapeError("which?", ("a=1",)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_their_facts(error):
    found = returned(WorkFailed(1, error, Status(1, SessionState.FAILED, 0))).error
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))


class _Bomb:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize(
    "hostile",
    [_Bomb(), os.system, pickle.Unpickler, print, np.load],
    ids=["call", "function", "class", "builtin", "numpy"],
)
def test_nothing_else_comes_in(hostile):
    data = pickle.dumps(hostile, protocol=5)
    with pytest.raises(pickle.UnpicklingError, match="a message must not contain"):
        decode(data, [])


def test_no_function_of_our_own_comes_in():
    data = b"\x80\x04\x8c\x13engine.array_files\x94\x8c\x02os\x94\x93\x94."
    data = data.replace(b"\x8c\x13", b"\x8c\x12")
    with pytest.raises(pickle.UnpicklingError, match="a message must not contain"):
        decode(data, [])
    with pytest.raises(pickle.UnpicklingError, match="a message must not contain"):
        decode(b"cengine.array_files\nos.system\n.", [])


def test_a_short_reply():
    status = Status(
        3, SessionState.STOPPED, 9, StopReason("breakpoint", "conv"), {"0": (1, 3)}, seed=4
    )
    assert returned(Done(4, status, (2,), "done")) == Done(4, status, (2,), "done")
