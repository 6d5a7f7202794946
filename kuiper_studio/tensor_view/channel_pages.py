"""The channels in their order, in pages. No Qt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.text import format_count
from kuiper_studio.tensor_view.channel_order import (
    ChannelKeys,
    Order,
    SpecialChannels,
    descending,
    keys_over_all,
)
from kuiper_studio.tensor_view.facts import ChannelFacts, channel_facts
from kuiper_studio.tensor_view.shown_slice import ShownSlice
from kuiper_studio.tensor_view.shown_value import clamped

if TYPE_CHECKING:
    from engine.values import Array
    from kuiper_studio.engine_service.channel_totals import ChannelTotals

__all__ = ["PAGE_SIZE", "RANGE_LIMIT", "ChannelPages"]

PAGE_SIZE: Final = 256
# Beyond this many elements a range comes from evenly spaced ones until the exact one is
# measured.
RANGE_LIMIT: Final = 1 << 18


class ChannelPages(ShownSlice):
    """The channels of the shown sample, ordered and divided into pages.

    Attributes
    ----------
    order : Order
        Of the channels, for all operands.
    keys : ChannelKeys or None
        Of the shown channels; None while they are measured.
    over_all : bool
        Whether channels are ordered by their numbers over all inputs that were run, as far as
        these are known.
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts: tuple[int, ChannelFacts] | None = None
        self._estimated = False
        self.order = Order.NUMBER
        self.keys: ChannelKeys | None = None
        self.over_all = False
        self._totals: tuple[ChannelTotals, ChannelKeys] | None = None
        self._sequence: Array | None = None  # the channels as they are ordered
        self._page_planes: tuple[int, Array] | None = None

    # The order

    def set_order(self, order: Order) -> None:
        """Order the channels; by number until their keys are known."""
        self.order = order
        self._follow_keys()

    def set_keys(self, keys: ChannelKeys) -> None:
        """Set what was measured of the channels."""
        self.keys = keys
        self._follow_keys()

    def set_totals(self, totals: ChannelTotals | None) -> None:
        """Set what the channels held over all inputs; None for what is not known."""
        fits = totals is not None and len(totals.low) == self.reading.channels
        self._totals = (totals, keys_over_all(totals)) if totals is not None and fits else None
        if self.over_all and self.order is not Order.LIKENESS:
            self._follow_keys()

    def set_over_all(self, over_all: bool) -> None:  # noqa: FBT001 - from a menu
        """Order by numbers over all inputs, or by those of the shown one."""
        self.over_all = over_all
        if self.order is not Order.LIKENESS:
            self._follow_keys()

    @property
    def special(self) -> SpecialChannels | None:
        """What is special about the channels; None while they are measured."""
        if self.keys is None:
            return None
        totals, over_all = self._totals if self._totals is not None else (None, None)
        return SpecialChannels(self.keys, over_all, totals)

    def set_likeness(self, likeness: Array) -> None:
        """Order the channels by their likeness to one of them."""
        self._arrange(descending(likeness))

    def _follow_keys(self) -> None:
        keys = self._totals[1] if self.over_all and self._totals is not None else self.keys
        if self.order is Order.NUMBER or keys is None or self.order is Order.LIKENESS:
            self._arrange(None)
        else:
            self._arrange(keys.sequence(self.order))

    @property
    def order_text(self) -> str:
        """What the channels are ordered by, in words; ``""`` for their number."""
        if not self.is_ordered:
            return ""
        if not self.over_all or self._totals is None or self.order is Order.LIKENESS:
            return self.order.value
        return f"{self.order.value} in {format_count(self._totals[0].inputs, 'input')}"

    def _arrange(self, sequence: Array | None) -> None:
        self._sequence = sequence
        self._page_planes = self._facts = None

    @property
    def is_ordered(self) -> bool:
        """Whether the channels are in another order than that of their numbers."""
        return self._sequence is not None

    @property
    def place(self) -> int:
        """Place of the chosen channel in the order."""
        if self._sequence is None:
            return self.channel
        return int(np.flatnonzero(self._sequence == self.channel)[0])

    def channel_in_place(self, place: int) -> int:
        """Return the channel at a place in the order, the nearest one that there is."""
        place = clamped(place, self.reading.channels)
        return place if self._sequence is None else int(self._sequence[place])

    # Pages

    @property
    def page(self) -> int:
        """Number of the page with the chosen channel."""
        return self.place // PAGE_SIZE

    def page_channels(self) -> Array:
        """Numbers of the channels of the page, in order."""
        first = self.page * PAGE_SIZE
        last = min(first + PAGE_SIZE, self.reading.channels)
        return np.arange(first, last) if self._sequence is None else self._sequence[first:last]

    @property
    def pages(self) -> int:
        """Number of pages of channels."""
        return -(-self.reading.channels // PAGE_SIZE)

    def page_planes(self) -> Array:
        """Real values of the channels of the page, shape (at most 256, H, W)."""
        first = self.page * PAGE_SIZE
        if self._sequence is None:
            return self.planes[first : first + PAGE_SIZE]
        if self._page_planes is None or self._page_planes[0] != self.page:
            self._page_planes = self.page, self.planes[self.page_channels()]
        return self._page_planes[1]

    def page_color_planes(self) -> Array | None:
        """Real values of the channels of the page in three colours, shape (3, C, H, W)."""
        colors = self._color_planes()
        return colors[:, self.page_channels()] if colors is not None else None

    def page_facts(self) -> ChannelFacts:
        """Ranges and special values of the channels of the page; see `page_is_estimated`."""
        if self._facts is None or self._facts[0] != self.page:
            planes = self.page_planes()
            apart = math.ceil(math.sqrt(planes.size / RANGE_LIMIT)) or 1
            self._facts = self.page, channel_facts(planes[:, ::apart, ::apart])
            self._estimated = apart > 1
        return self._facts[1]

    @property
    def page_is_estimated(self) -> bool:
        """Whether `page_facts` are estimated from some elements."""
        return self._facts is not None and self._facts[0] == self.page and self._estimated

    def set_page_facts(self, facts: ChannelFacts) -> None:
        """Set the exact facts of the page's channels."""
        self._facts, self._estimated = (self.page, facts), False

    # Helpers

    @override
    def _drop_values(self) -> None:
        super()._drop_values()
        self._totals = None

    @override
    def _drop_sample(self) -> None:
        super()._drop_sample()
        self._facts = self.keys = None
        self._arrange(None)
