"""``petstore serve --check``: what the settings are, and whether what they name is there."""

import os
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from petstore.cli.option_types import SecretOption
from petstore.cli.serve import listen
from petstore.cli.tables import print_table, printable
from petstore.errors import PetstoreError
from petstore.http.open_files import require_room
from petstore.server.pid_file import require_free
from petstore.settings import SettingError, Settings, is_postgres, masked, sqlite_path

Check: TypeAlias = Callable[[Settings], str]
"""Tries something that the settings name, and says what it found; or raises."""

_PATIENCE = 2000
_SECONDS = 2
_INVALID = 2  # as for an option that cannot be parsed
_SOURCES = {ParameterSource.COMMANDLINE: "option", ParameterSource.ENVIRONMENT: "environment"}


def print_settings(ctx: click.Context) -> None:
    """Print each setting of ``petstore serve``, without passwords, and where it comes from."""
    rows = []
    for option in ctx.command.params:
        name = str(option.name)
        if name in Settings.__dataclass_fields__:
            value = ctx.params[name]
            text = " ".join(value) if isinstance(value, tuple) else _hidden(option, str(value))
            source = _source(ctx, option)
            rows.append({"setting": option.opts[0], "value": text, "from": source})
    print_table(rows, (), "")
    click.echo()


def _hidden(option: click.Parameter, value: str) -> str:
    # What should be an address and is none may be a password alone.
    is_address = "://" in value or not value
    return masked(value) if is_address or not isinstance(option, SecretOption) else "***"


def _source(ctx: click.Context, option: click.Parameter) -> str:
    source = ctx.get_parameter_source(str(option.name))
    if source is ParameterSource.ENVIRONMENT and isinstance(option, SecretOption):
        return option.source
    return _SOURCES.get(source, "default") if source else "default"


def tried(settings: Settings) -> int:
    """Try what the settings name, print a line for each, and return the exit status."""
    # What does not fit together cannot be tried.
    if not _passes("settings", _fit_together, settings):
        return _INVALID
    passed = [_passes(name, check, settings) for name, check in _checks(settings)]
    return 0 if all(passed) else 1


def _passes(name: str, check: Check, settings: Settings) -> bool:
    try:
        found, passed = check(settings), True
    except SettingError as error:
        found, passed = f"--{error}", False
    except (PetstoreError, OSError, ValueError) as error:
        found, passed = str(error), False
    click.echo(
        f"{'ok' if passed else 'failed':8}{name}: {printable(found.removeprefix(f'{name}: '))}"
    )
    return passed


def _checks(settings: Settings) -> Iterator[tuple[str, Check]]:
    yield "open files", _open_files
    yield "address", lambda settings: _listen(settings.host, settings.port)
    if settings.metrics_port:
        yield "metrics", lambda settings: _listen(settings.host, settings.metrics_port)
    if settings.pid_file:
        yield "pid file", _pid_file
    yield "database", _postgres if is_postgres(settings.database) else _sqlite
    if settings.read_database:
        yield "replica", _replica
    if settings.redis:
        yield "redis", _redis
    if settings.trace_endpoint:
        yield "traces", _traces


def _fit_together(settings: Settings) -> str:
    settings.check()
    return "they fit together"


def _open_files(settings: Settings) -> str:
    require_room(settings.connections)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return "no limit" if hard == resource.RLIM_INFINITY else f"at most {hard:,}"


def _listen(host: str, port: int) -> str:
    listen(host, port).close()
    return f"{host} port {port} is free"


def _pid_file(settings: Settings) -> str:
    path = Path(settings.pid_file)
    if _is_there(path):
        require_free(path)
    return f"{path} can be written"


def _is_there(path: Path) -> bool:
    """Tell whether a file is there.

    Raises:
        PermissionError: this user cannot write it, or make it.
    """
    is_there = path.exists()
    if is_there and not path.is_file():  # a pipe would be waited for
        msg = f"{path}: expected a file"
        raise OSError(msg)
    to_write = path if is_there else path.absolute().parent
    if not os.access(to_write, os.R_OK | os.W_OK):
        msg = f"{path}: this user cannot read and write {to_write}"
        raise PermissionError(msg)
    return is_there


def _sqlite(settings: Settings) -> str:
    from petstore.databases.sqlite import SqliteStore

    path = sqlite_path(settings.database)
    if not _is_there(path):
        return f"there is no {path} yet; the start makes it"
    return _state(*SqliteStore(path, _PATIENCE).schema())


def _postgres(settings: Settings) -> str:
    from petstore.databases.postgres import PostgresStore

    return _state(*PostgresStore(settings.database, _PATIENCE).schema())


def _state(version: int, newest: int) -> str:
    if version == newest:
        return f"schema version {version}"
    return f"schema version {version}; the start brings it to {newest}"


def _replica(settings: Settings) -> str:
    from petstore.databases.postgres import PostgresStore

    if not PostgresStore(settings.read_database, _PATIENCE).is_replica():
        msg = "read-database: expected a streaming replica; this server is none"
        raise SettingError(msg)
    return "a streaming replica"


def _redis(settings: Settings) -> str:
    import asyncio

    from petstore.redis_client.client import check_redis

    asyncio.run(check_redis(settings.redis))
    return "it answers"


def _traces(settings: Settings) -> str:
    url = urlsplit(settings.trace_endpoint)
    place = str(url.hostname), url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection(place, _SECONDS).close()
    except OSError as error:
        msg = f"cannot connect to {place[0]} port {place[1]}: {error.strerror or error}"
        raise OSError(msg) from None
    return "it takes connections"
