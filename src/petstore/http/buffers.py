"""A budget of memory that the connections of a server share."""

from collections import Counter
from collections.abc import Hashable
from typing import Protocol


class Holding(Protocol):
    """A connection that buffers something for its ``holder``, such as its client's address."""

    @property
    def holder(self) -> Hashable:
        """Who is charged for it."""
        ...

    def give_up(self) -> None:
        """Drop what is buffered, if possible with a response that says so."""


class BufferBudget:
    """Bounds what all connections buffer: unfinished requests and unread responses.

    Beyond ``max_bytes`` connections give up what they buffer, first those of the holder that has
    most, and of these the one with most; of equal ones the one that has been silent for longest.
    """

    def __init__(self, max_bytes: int) -> None:
        self.largest = max_bytes // 4
        """The most bytes that a response counts, so that none ends itself."""
        self._max = max_bytes
        self._total = 0
        self._totals: Counter[Hashable] = Counter()
        # A connection that is not silent moves to the end.
        self._sizes: dict[Hashable, dict[Holding, int]] = {}

    def note(self, member: Holding, size: int) -> None:
        """Note that a connection buffers ``size`` bytes, and is not silent now."""
        self._drop(member)
        if size:
            self._sizes.setdefault(member.holder, {})[member] = size
            self._totals[member.holder] += size
            self._total += size
        while self._total > self._max:
            sizes = self._sizes[max(self._totals, key=self._totals.__getitem__)]
            most = max(sizes, key=sizes.__getitem__)
            self._drop(most)
            most.give_up()

    def _drop(self, member: Holding) -> None:
        sizes = self._sizes.get(member.holder, {})
        size = sizes.pop(member, 0)
        if size:
            self._total -= size
            self._totals[member.holder] -= size
            if not sizes:
                del self._sizes[member.holder], self._totals[member.holder]
