"""A cache in two generations."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TwoGenerationCache(Generic[K, V]):
    """Keeps what was used lately, so that forgetting the rest costs nothing.

    What is used is in the newer of two generations. ``turn`` makes that the older one, and drops
    what was not used since the turn before.
    """

    def __init__(self) -> None:
        self._older: dict[K, V] = {}
        self._newer: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._newer.get(key)
        if value is None:
            value = self._older.get(key)
            if value is not None:
                self._newer[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        self._newer[key] = value

    def turn(self) -> None:
        self._older, self._newer = self._newer, {}
