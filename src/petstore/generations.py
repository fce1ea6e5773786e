"""A cache in two generations, with a limit or without."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TwoGenerationCache(Generic[K, V]):
    """Keeps what was used lately, so that forgetting the rest costs nothing.

    What is used is in the newer of two generations. ``turn`` makes that the older one, and drops
    what was not used since the turn before. With ``size_of``, so does a new value if the newer
    generation would exceed ``max_size``; a single value that does is not kept.
    """

    def __init__(self, max_size: int = 0, size_of: Callable[[K, V], int] | None = None) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self._older: dict[K, V] = {}
        self._newer: dict[K, V] = {}
        self._room = max_size

    def get(self, key: K) -> V | None:
        value = self._newer.get(key)
        if value is None:
            value = self._older.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if self._size_of is None or self._takes_room(key, value, self._size_of):
            self._newer[key] = value

    def turn(self) -> None:
        self._older, self._newer, self._room = self._newer, {}, self._max_size

    def _takes_room(self, key: K, value: V, size_of: Callable[[K, V], int]) -> bool:
        replaced = self._newer.pop(key, None)
        if replaced is not None:
            self._room += size_of(key, replaced)
        size = size_of(key, value)
        if size > self._room:
            self.turn()
        if size > self._room:
            return False
        self._room -= size
        return True
