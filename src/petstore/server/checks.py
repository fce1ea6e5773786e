"""The checks of ``petstore serve --check``: do the settings work?"""

import asyncio
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from petstore.backends import require_secret, secret_file_of
from petstore.clock import SECOND
from petstore.databases.private_files import obstacle
from petstore.databases.sqlite import SqliteStore
from petstore.databases.sqlite_connection import why_read_only
from petstore.errors import PetstoreError
from petstore.http.server import require_room
from petstore.server.listeners import listen
from petstore.settings import SettingError, Settings, is_postgres, sqlite_path

if TYPE_CHECKING:
    from petstore.databases.postgres import PostgresStore

_TIMEOUT = 2  # s


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    passed: bool
    message: str


def run_checks(settings: Settings) -> Iterator[Finding]:
    finding = _run("settings", _fit_together, settings)
    yield finding
    if finding.passed:
        for name, check in _checks(settings):
            yield _run(name, check, settings)


def _run(name: str, check: Callable[[Settings], str], settings: Settings) -> Finding:
    try:
        return Finding(name, passed=True, message=check(settings))
    except SettingError as error:
        return Finding(name, passed=False, message=f"--{error}")
    except (PetstoreError, OSError, ValueError) as error:
        return Finding(name, passed=False, message=str(error).removeprefix(f"{name}: "))


def _checks(settings: Settings) -> Iterator[tuple[str, Callable[[Settings], str]]]:
    yield "open files", _open_files
    yield "address", lambda settings: _address(settings.host, settings.port)
    if settings.metrics_port:
        yield "metrics", lambda settings: _address(settings.host, settings.metrics_port)
    yield "database", _database
    if settings.secret_path:
        yield "secret file", _secret_file
    if settings.redis:
        yield "redis", _redis
    if settings.trace_endpoint:
        yield "traces", _traces


def _fit_together(settings: Settings) -> str:
    settings.check()
    return "they fit together"


def _open_files(settings: Settings) -> str:
    require_room(settings.max_connections)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return "no limit" if hard == resource.RLIM_INFINITY else f"at most {hard:,}"


def _address(host: str, port: int) -> str:
    listen(host, port).close()
    return f"{host} port {port} is free"


def _exists(path: Path) -> bool:
    if reason := obstacle(path) or why_read_only(path):
        msg = f"{path}: {reason}"
        raise OSError(msg)
    exists = path.exists()
    if exists and not path.is_file():  # opening a pipe would block
        msg = f"{path}: expected a file"
        raise OSError(msg)
    if exists and not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        msg = f"{path}: this user cannot read and write it"
        raise PermissionError(msg)
    folder = Path(os.path.realpath(path)).parent
    # SQLite makes files beside the database.
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        msg = f"{path}: this user cannot create files in {folder}"
        raise PermissionError(msg)
    return exists


def _database(settings: Settings) -> str:
    if is_postgres(settings.database):
        version, newest = _postgres(settings.database).schema()
    elif _exists(path := sqlite_path(settings.database)):
        version, newest = SqliteStore(path, _TIMEOUT * SECOND).schema()
    else:
        return f"there is no {path} yet; the start creates it"
    if version == newest:
        return f"schema version {version}"
    return f"schema version {version}; the start brings it to {newest}"


def _secret_file(settings: Settings) -> str:
    secret_file_of(settings)
    with suppress(PetstoreError, OSError):  # the check of the database says why
        require_secret(settings)
    path = settings.secret_path
    if path and path.exists():
        return f"{path} holds a secret"
    return f"there is no {path} yet; the first webhook of a store makes it"


def _postgres(database: str) -> "PostgresStore":
    # Imported where it is used: it is slow to import.
    from petstore.databases.postgres import PostgresStore

    return PostgresStore(database, _TIMEOUT * SECOND)


def _redis(settings: Settings) -> str:
    from petstore.redis_client import check_redis

    asyncio.run(check_redis(settings.redis))
    return "it responds"


def _traces(settings: Settings) -> str:
    url = urlsplit(settings.trace_endpoint)
    address = str(url.hostname), url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection(address, _TIMEOUT).close()
    except OSError as error:
        msg = f"cannot connect to {address[0]} port {address[1]}: {error.strerror or error}"
        raise OSError(msg) from None
    return "it accepts connections"
