"""How far a long piece of work has come, in view of whoever waits."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[int, int], object]
"""Takes how much is done, and of how much."""


@contextmanager
def progress(title: str) -> Iterator[OnProgress]:
    """Show a progress bar on a terminal; elsewhere show nothing."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
