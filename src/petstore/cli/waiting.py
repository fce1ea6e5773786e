"""Waiting for a database that does not confirm what is written."""

import time
from collections.abc import Callable

import click

from petstore.cli.tables import printable
from petstore.errors import Unavailable


class Wait:
    """Lets a command wait up to ``seconds`` at a time, by ``now``, and tells why it waits."""

    def __init__(self, seconds: int, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._now = now
        self._ends_at: float | None = None

    def may_go_on(self, reason: Unavailable) -> bool:
        """Tell whether to wait longer; at first print why."""
        if self._ends_at is None:
            self._ends_at = self._now() + self._seconds
            click.echo(f"Waiting up to {self._seconds} s: {printable(str(reason))}", err=True)
        return self._now() < self._ends_at

    def end(self) -> None:
        """Note that there is nothing to wait for: the next wait is a new one."""
        self._ends_at = None
