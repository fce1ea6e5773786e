"""The checks of ``petstore serve --check``: do the settings work? They change no data."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from petstore.backends import has_file, require_secret, secret_file_of, store_at
from petstore.clock import SECOND
from petstore.databases.sqlite_connection import why_read_only
from petstore.errors import PetstoreError
from petstore.http.server import room_for
from petstore.server.listeners import listen
from petstore.settings import SettingError, Settings, is_postgres, sqlite_path

_TIMEOUT = 2  # s


def run_checks(settings: Settings) -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each check, whether it passed, and what it found."""
    for name, check in _checks(settings):
        try:
            yield name, True, check() or ""
        except SettingError as error:
            yield name, False, f"--{error}"
            if name == "settings":  # they do not fit together
                return
        except (PetstoreError, OSError, ValueError) as error:
            yield name, False, str(error).removeprefix(f"{name}: ")


def _checks(settings: Settings) -> Iterator[tuple[str, Callable[[], str | None]]]:
    yield "settings", settings.check
    yield "open files", lambda: f"room for {room_for(settings.max_connections):,} connections"
    yield "address", lambda: listen(settings.host, settings.port).close()
    if settings.metrics_port:
        yield "metrics", lambda: listen(settings.host, settings.metrics_port).close()
    yield "database", partial(_check_database, settings.database)
    if settings.secret_path:
        yield "secret file", partial(_check_secret_file, settings)
    if settings.redis:
        # Imported where it is used: it takes its time.
        from petstore.limits.redis import check_redis

        yield "redis", lambda: asyncio.run(check_redis(settings.redis))


def _check_database(database: str) -> str:
    if not is_postgres(database):
        path = sqlite_path(database)
        exists, folder = has_file(path), Path(os.path.realpath(path)).parent
        # SQLite makes files beside the database.
        for place in (folder, path) if exists else (folder,):
            reason = why_read_only(path)
            if reason or not os.access(place, os.R_OK | os.W_OK, effective_ids=True):
                msg = f"{path}: {reason or f'this user cannot read and write {place}'}"
                raise PermissionError(msg)
        if not exists:
            return f"there is no {path} yet; the start creates it"
    version, newest = store_at(database, _TIMEOUT * SECOND).schema()
    is_old = version < newest
    return f"schema version {version}" + is_old * f"; the start brings it to {newest}"


def _check_secret_file(settings: Settings) -> None:
    secret_file_of(settings)
    with suppress(PetstoreError, OSError):  # the check of the database says why
        require_secret(settings)
