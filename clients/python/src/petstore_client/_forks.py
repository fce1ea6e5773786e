"""What a forked process must not share: connections, locks, and requests under way."""

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something that a forked process has to begin anew."""

    def renew(self) -> None:
        """Begin anew."""
        ...


_renewables: WeakSet[Renewable] = WeakSet()


def renew_after_fork(renewable: Renewable) -> None:
    """Renew something in each child process that is forked while it exists."""
    _renewables.add(renewable)


def _renew_all() -> None:
    for renewable in _renewables:
        renewable.renew()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
    os.register_at_fork(after_in_child=_renew_all)
