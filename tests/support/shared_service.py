"""The service on a PostgreSQL server: as a user runs it, in one process or several."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.process import ServerProcess


class SharedService(ServerProcess):
    def __init__(self, folder: Path, database: str, *arguments: str, **options: Any) -> None:
        super().__init__(folder, "--database", database, *arguments, **options)
        self.database = database


@contextmanager
def shared_service(
    folder: Path, database: str, *arguments: str, **options: Any
) -> Iterator[SharedService]:
    service = SharedService(folder, database, *arguments, **options)
    try:
        service.wait_until_ready()
        yield service
    finally:
        service.kill()
