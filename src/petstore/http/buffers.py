"""The memory that connections take up with what is not finished."""

from typing import Protocol


class Buffering(Protocol):
    """What buffers bytes, and may be closed for it."""

    def abort(self) -> None:
        """Close it at once, and let go of what it buffers."""
        ...


class BufferBudget:
    """Bounds the bytes that all connections buffer: unfinished requests, and answers not read.

    Beyond ``most`` the connection that has been silent for longest is closed, and the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        # A connection that is not silent goes to the end, so the first was silent for longest.
        self._sizes: dict[Buffering, int] = {}

    def note(self, connection: Buffering, size: int) -> None:
        """Note that the connection buffers ``size`` bytes, and is not silent at this moment."""
        self._total += size - self._sizes.pop(connection, 0)
        if size:
            self._sizes[connection] = size
        while self._total > self._most:
            silent = next(iter(self._sizes))
            self._total -= self._sizes.pop(silent)
            silent.abort()
