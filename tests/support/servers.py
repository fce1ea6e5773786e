"""Services that a test starts and ends; all end with the test."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from support.process import ServerProcess

StartServer: TypeAlias = Callable[..., ServerProcess]
"""Takes options of ``petstore serve``; returns the service once it is ready."""


@contextmanager
def servers_in(folder: Path) -> Iterator[StartServer]:
    """Give a function that starts services on one database in ``folder``."""
    started = []

    def start(*arguments: str, **options: Any) -> ServerProcess:
        server = ServerProcess(folder, *arguments, **options)
        started.append(server)
        server.wait_until_ready()
        return server

    try:
        yield start
    finally:
        for server in started:
            try:
                server.stop()
            except subprocess.TimeoutExpired:
                server.kill()
                raise
