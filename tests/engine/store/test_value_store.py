"""The store by itself: steps are made up here, and no session, graph or kernel takes part."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from engine.store import MemoryUse, Recipe, StepOutputs, ValueStore, sizes_of
from engine.values import ArrayMetadata, LazyArray

SIZE = 256
BYTES = 4 * SIZE
FLOAT32 = np.dtype(np.float32)


def full(number):
    return np.full(SIZE, number, np.float32)


class Chain:
    """Steps of which each adds one to what the one before gave; the first gives zeros.

    Attributes
    ----------
    computed : list of int
        Steps that were recomputed.
    released : list of float
        First elements of the arrays that were evicted.
    """

    def __init__(self, length, limit=None):
        self.outputs, self.computed, self.released = [], [], []
        self.length = length
        self.store = ValueStore(self.recipe, lambda array: self.released.append(array[0]))
        self.store.limit = limit

    def recipe(self, index):
        def compute(arguments):
            self.computed.append(index)
            return {str(index): arguments[0] + 1 if arguments else full(0)}

        sources = ((self.outputs[index - 1], str(index - 1)),) if index else ()
        last_use = index + 1 if index + 1 < self.length else math.inf
        return Recipe(index, sources, last_use, compute)

    def run(self, values=full):
        for index in range(len(self.outputs), self.length):
            outputs = StepOutputs({str(index): values(index)})
            self.outputs.append(outputs)
            self.store.put(index, outputs, sizes_of(outputs.resident.values()))
        return self


def lazy(number, arranged):
    def arrange(stored, _):
        arranged.append(number)
        return stored.copy()

    return LazyArray(full(number), (SIZE,), FLOAT32, arrange)


class TestWithoutALimit:
    def test_everything_is_resident(self):
        store = Chain(20).run().store
        assert list(store.resident) == [str(k) for k in range(20)]
        assert (store.nbytes, store.limit, store.evictable_bytes) == (20 * BYTES, None, None)
        assert not store.evicts

    def test_a_value_that_no_step_computed(self):
        store = Chain(2).run().store
        assert ("1" in store, "2" in store) == (True, False)
        assert store.outputs_with("2") is None

    def test_rewind(self):
        chain = Chain(5).run()
        chain.store.rewind(2)
        assert list(chain.store.resident) == ["0", "1"]
        assert ("2" in chain.store, chain.store.nbytes) == (False, 2 * BYTES)
        del chain.outputs[2:]
        chain.run()
        assert chain.store.outputs_with("4") is chain.outputs[4]

    def test_values_beside_the_steps_count(self):
        store = Chain(1).run().store
        store.hold("inputs", [full(1), full(2)])
        assert store.nbytes == 3 * BYTES
        store.hold("inputs", [full(3)])
        assert store.nbytes == 2 * BYTES


class TestWithALimit:
    def test_old_values_are_evicted_and_recomputed(self):
        chain = Chain(40, limit=4 * BYTES).run()
        assert chain.store.evictable_bytes <= 4 * BYTES
        assert chain.store.nbytes <= 4 * BYTES
        assert chain.released
        for index in range(40):
            outputs = chain.store.outputs_with(str(index))
            np.testing.assert_array_equal(outputs[str(index)], full(index))
            assert chain.store.evictable_bytes <= 4 * BYTES
        assert len(chain.computed) < 80

    def test_the_last_read_value_is_evicted_last(self):
        chain = Chain(9, limit=None).run()
        chain.store.limit = 100 * BYTES
        chain.outputs[1].fetch("1")
        chain.outputs[5].touch()
        chain.store.limit = 4 * BYTES
        assert {"1", "5", "8"} <= set(chain.store.resident)

    def test_several_become_resident_at_once(self):
        chain = Chain(30, limit=3 * BYTES).run()
        assert "3" not in chain.store.resident
        chain.store.recompute(["3", "not computed"], None)
        assert "3" in chain.store.resident

    def test_a_limit_on_a_store_that_has_values(self):
        chain = Chain(10).run()
        chain.store.limit = 2 * BYTES
        assert chain.store.evictable_bytes == 2 * BYTES
        assert chain.store.evicts
        chain.store.limit = None
        assert chain.store.evicts  # what is gone is recomputed when it is read
        np.testing.assert_array_equal(chain.outputs[4]["4"], full(4))

    def test_values_without_a_reproducible_recipe_stay(self):
        chain = Chain(10, limit=0)
        chain.store = ValueStore(
            lambda index: Recipe(index, chain.recipe(index).sources, index, None), print
        )
        chain.store.limit = 0
        assert list(chain.run().store.resident) == [str(k) for k in range(10)]
        assert chain.store.evictable_bytes == 0

    def test_outputs_of_an_earlier_pass(self):
        chain = Chain(6, limit=0).run()
        earlier = list(chain.outputs)
        chain.store.rewind(0)
        assert not chain.store.resident
        np.testing.assert_array_equal(earlier[4]["4"], full(4))
        assert not chain.store.resident


class TestMetadata:
    """What painting asks for."""

    def test_nothing_is_computed_materialised_or_locked(self):
        arranged = []
        chain = Chain(8, limit=None).run(lambda index: lazy(index, arranged))
        evicted = Chain(30, limit=2 * BYTES).run()
        evicted.computed.clear()
        assert chain.store.outputs_with("3").metadata("3") == ArrayMetadata((SIZE,), FLOAT32)

        def ask():
            for outputs in (*chain.outputs, *evicted.outputs[:10]):
                name = next(iter(outputs))
                asked.append((outputs.metadata(name), name in outputs, len(outputs)))
                states.append(outputs.resident is None)

        asked, states = [], []
        with evicted.store._cache._lock:  # another thread recomputes, which may take long
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join(10)
        assert asked == [(ArrayMetadata((SIZE,), FLOAT32), True, 1)] * 18
        assert (states[0], True in states) == (False, True)
        assert (arranged, evicted.computed) == ([], [])

    def test_reading_resident_values_takes_no_lock(self):
        chain = Chain(30, limit=2 * BYTES).run()
        found = []
        with chain.store._cache._lock:
            thread = threading.Thread(target=lambda: found.append(chain.outputs[29]["29"]))
            thread.start()
            thread.join(10)
        np.testing.assert_array_equal(found[0], full(29))

    def test_one_of_several_outputs_is_materialised(self):
        arranged = []
        outputs = StepOutputs({"a": lazy(1, arranged), "b": lazy(2, arranged)})
        np.testing.assert_array_equal(outputs["b"], full(2))
        assert arranged == [2]


def test_cancelling():
    chain = Chain(30, limit=0).run()

    def check_cancelled():
        if len(chain.computed) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chain.outputs[20].fetch("20", check_cancelled)
    np.testing.assert_array_equal(chain.outputs[20].fetch("20"), full(20))


def test_nothing_is_recomputed_for_what_is_resident():
    chain = Chain(30, limit=0).run()
    assert chain.outputs[3].fetch_resident() is None
    np.testing.assert_array_equal(chain.outputs[29].fetch_resident()["29"], full(29))
    assert not chain.computed


def test_views_count_once():
    memory, array = MemoryUse(), np.zeros((4, 8), np.float32)
    memory.add("one", sizes_of([array, (array[1:], 3, None)]))
    memory.add("two", sizes_of([array.T[2:]]))
    assert memory.nbytes == 4 * 8 * 4
    assert memory.new_in(sizes_of([array[0], full(0)])) == BYTES
    memory.remove("one")
    assert memory.nbytes == 4 * 8 * 4
    memory.remove("two")
    memory.remove("two")
    assert (memory.nbytes, "two" in memory) == (0, False)
