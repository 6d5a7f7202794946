"""The order in which ``std::nth_element`` leaves a sequence.

PyTorch's ``topk`` with ``sorted=False`` returns its elements in that order on CPUs. The C++
standard does not define it. This follows libstdc++, which PyTorch is built with (introselect in
``bits/stl_algo.h``, unchanged since GCC 4.5): quick select around the median of three, and
insertion sort for the last three elements. Deviation: if quick select degenerates, libstdc++
uses a heap; here the rest is sorted.
"""

from __future__ import annotations

__all__ = ["order_by_nth_element"]


def order_by_nth_element(keys: list[int], nth: int) -> list[int]:
    """Order of the elements after ``std::nth_element``.

    Parameters
    ----------
    keys : list of int
        Smaller ones are first.
    nth : int
        Position that gets the same element as by sorting.

    Returns
    -------
    list of int
        For each position the element's index in `keys`.
    """
    places = list(range(len(keys)))
    first, last = 0, len(keys)
    depth = 2 * (len(keys).bit_length() - 1)
    while last - first > 3 and depth:
        depth -= 1
        cut = _partition(keys, places, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    # Sorting is stable, as insertion sort is.
    places[first:last] = sorted(places[first:last], key=keys.__getitem__)
    return places


def _partition(keys: list[int], places: list[int], first: int, last: int) -> int:
    """Partition a range around the median of three elements; return the position of the cut."""
    median = _median_of_three(keys, places, first + 1, (first + last) // 2, last - 1)
    places[first], places[median] = places[median], places[first]
    pivot = keys[places[first]]
    low, high = first + 1, last - 1
    while True:
        while keys[places[low]] < pivot:
            low += 1
        while pivot < keys[places[high]]:
            high -= 1
        if low >= high:
            return low
        places[low], places[high] = places[high], places[low]
        low, high = low + 1, high - 1


def _median_of_three(keys: list[int], places: list[int], a: int, b: int, c: int) -> int:
    """Return which of three positions has the median; ties as in libstdc++."""
    x, y, z = keys[places[a]], keys[places[b]], keys[places[c]]
    if x < y:
        return b if y < z else c if x < z else a
    return a if x < z else c if y < z else b
