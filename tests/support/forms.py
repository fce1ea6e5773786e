"""Every form the service runs in: alone, as two that share their state, and under ASGI."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from support.granian import GranianProcess
from support.postgres import PostgresServer
from support.process import ServerProcess
from support.redis_server import redis_server
from support.shared_service import shared_service

Serve: TypeAlias = Callable[..., AbstractContextManager[ServerProcess]]
"""Takes a folder and options; runs a service with a store of its own until the block ends."""


@contextmanager
def alone(folder: Path, *arguments: str) -> Iterator[ServerProcess]:
    server = ServerProcess(folder, *arguments)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@contextmanager
def under_granian(folder: Path, *arguments: str) -> Iterator[ServerProcess]:
    server = GranianProcess(folder, *arguments)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@contextmanager
def as_two(postgres: PostgresServer, folder: Path, *arguments: str) -> Iterator[ServerProcess]:
    with (
        redis_server() as redis,
        shared_service(
            *(folder, postgres.new_store(), "--redis", redis.url, "--workers", "2"), *arguments
        ) as server,
    ):
        yield server
