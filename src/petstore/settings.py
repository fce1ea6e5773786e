"""Every setting of the service, one field each. The command line and its help are made of these.

A setting is an option of ``petstore serve`` (``--body-bytes``) and an environment variable
(``PETSTORE_BODY_BYTES``). What is wrong with a value is said by ``SettingError``.
"""

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from petstore.domain.api_keys import Environment

LogFormat: TypeAlias = Literal["auto", "text", "json"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

T = TypeVar("T")

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_REDIS_SCHEMES = ("redis://", "rediss://", "redis+sentinel://")
_HTTP = re.compile(r"https?://[^/?#\s]")
# Some are written with characters that should have been percent-encoded, so up to the last @.
# That of a user may be among them: Azure names users so.
_USER_PASSWORD = re.compile(r"(?<=://)([^:/]*):.+(?=@)", re.DOTALL)
# Collectors of traces take tokens and keys, too.
_QUERY_PASSWORD = re.compile(
    r"([?&][^=&]*(?:password|token|secret|api[_-]?key)[^=&]*=)[^&]*", re.IGNORECASE
)
_ORIGIN = re.compile(r"(\*|[a-z][a-z0-9+.-]*://[^/?#\s]+)\Z")


class SettingError(ValueError):
    """A setting has a value it cannot have; the message names the setting and what it takes."""


def _setting(
    default: T,
    description: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    secret: bool = False,
) -> T:
    """Declare a setting; a number is from ``ge`` to ``le``.

    A ``secret`` may hold a password.
    """
    metadata = {"description": description, "ge": ge, "le": le, "secret": secret}
    declared: Any = field(default=default, metadata=metadata)
    return declared  # type: ignore[no-any-return] # a dataclass makes the value of the field


@dataclass(frozen=True)
class Settings:
    """How the service runs. Times are in seconds, sizes in bytes."""

    host: str = _setting("127.0.0.1", "The address to listen on.")
    port: int = _setting(8000, "The port to listen on.", ge=1, le=65535)
    database: str = _setting(
        "sqlite:///petstore.db",
        "sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/name.",
        secret=True,
    )
    read_database: str = _setting(
        "",
        "A streaming replica of the PostgreSQL database, from which lists are read.",
        secret=True,
    )
    redis: str = _setting(
        "",
        "Where processes share limits: redis://host:6379, rediss://, redis://…?cluster=true or"
        " redis+sentinel://host:26379/name.",
        secret=True,
    )
    database_connections: int = _setting(
        10, "Connections of each process to PostgreSQL.", ge=1, le=1000
    )
    environment: Environment = _setting(
        "production", "Which keys are valid: production (ps_live_…) or staging (ps_test_…)."
    )
    workers: int = _setting(
        1,
        "Processes that serve. More than one needs --redis.",
        ge=1,
        le=256,
    )
    log_format: LogFormat = _setting("auto", "text, json, or auto: text on a terminal, else json.")
    log_level: LogLevel = _setting(
        "info",
        "The lowest level that is logged: debug, info, warning or error. Requests are info.",
    )
    log_health_checks: bool = _setting(
        False,  # noqa: FBT003 - the default of a setting
        "Log health checks that succeed, too.",
    )
    omit_addresses: bool = _setting(
        False,  # noqa: FBT003 - the default of a setting
        "Leave the addresses of clients out of the request log.",
    )
    pid_file: str = _setting(
        "", "A file with the id of the main process, by which petstore reload finds the service."
    )
    trusted_proxy: tuple[str, ...] = _setting(
        (), "A network whose X-Forwarded-For counts, such as 10.0.0.0/8. May be repeated."
    )
    allowed_origin: tuple[str, ...] = _setting(
        (), "An origin whose pages may call the service, or * for any. May be repeated."
    )
    strict_categories: bool = _setting(
        False,  # noqa: FBT003 - the default of a setting
        "Take only animals of categories that are registered.",
    )
    reservation_minutes: int = _setting(
        1440,
        "How long a placed order holds its animal unless it is approved; 0 is for ever.",
        ge=0,
        le=100 * 365 * 24 * 60,
    )
    anonymous_per_minute: int = _setting(
        300, "Requests a minute from one address without a valid key.", ge=1, le=2**31 - 2
    )
    address_table: int = _setting(
        20_000, "Addresses without a valid key counted at a time.", ge=1, le=10_000_000
    )
    usage_per_minute: int = _setting(
        60, "How often a minute each process tells a key its usage.", ge=1, le=2**31 - 2
    )
    ban_strikes: int = _setting(20, "Fewest strikes that ban a key.", ge=1, le=10**9)
    ban_strikes_divisor: int = _setting(
        3,
        "A key is banned after its minute limit / this, if that is more.",
        ge=1,
        le=10**9,
    )
    ban_grace_seconds: float = _setting(
        1,
        "How long after the first 429 of a run further ones are not strikes.",
        ge=0,
        le=3600,
    )
    ban_window_seconds: float = _setting(
        60, "The time in which the strikes must fall.", ge=1, le=86400
    )
    ban_seconds: float = _setting(300, "The first ban; each next is twice as long.", ge=1, le=10**8)
    ban_max_seconds: float = _setting(86400, "The longest ban.", ge=1, le=10**8)
    ban_decay_seconds: float = _setting(
        86400, "How long without a ban forgives one step of the next one.", ge=1, le=10**8
    )
    body_bytes: int = _setting(65536, "The largest body taken.", ge=1024, le=2**30)
    body_timeout: float = _setting(
        10, "A request whose body is not here by then gets 408.", ge=0.1, le=3600
    )
    header_timeout: float = _setting(
        10,
        "A connection that sends no whole header, or reads no response, for so long is closed.",
        ge=0.1,
        le=3600,
    )
    shutdown_timeout: int = _setting(
        10,
        "How long a stop takes at most; unfinished requests are cut off one second before.",
        ge=2,
        le=3600,
    )
    drain_timeout: float = _setting(
        0,
        "How long it keeps serving after a stop signal. /readyz is 503 then, and each response"
        " closes its connection, so that a balancer sends clients elsewhere.",
        ge=0,
        le=3600,
    )
    connections: int = _setting(
        20_000, "How many connections each process serves at a time.", ge=1, le=1_000_000
    )
    connections_per_address: int = _setting(
        0,
        "How many of them one client address may have; 0 is a quarter. Trusted proxies may have"
        " any number.",
        ge=0,
        le=1_000_000,
    )
    buffer_bytes: int = _setting(
        32 * 1024 * 1024,
        "Bytes of unfinished requests and unread answers in each process; beyond it the"
        " connections that have been silent for longest are closed.",
        ge=1024 * 1024,
        le=2**40,
    )
    metrics_port: int = _setting(
        0, "The port on which Prometheus reads /metrics; 0 is none.", ge=0, le=65535
    )
    trace_endpoint: str = _setting(
        "",
        "Where traces are sent by OTLP over HTTP, such as http://collector:4318/v1/traces.",
        secret=True,
    )
    database_timeout: float = _setting(
        1.5, "A change that the database has not confirmed by then gets 503.", ge=0.1, le=3600
    )
    key_refresh_seconds: float = _setting(
        0.25, "How often changes to keys are looked for.", ge=0.01, le=60
    )
    limits_save_seconds: float = _setting(
        0.5, "How often counts are saved; a crash forgets those since.", ge=0.01, le=60
    )

    @property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of trusted proxies.

        Raises:
            SettingError: one of them is none.
        """
        try:
            return tuple(ip_network(network) for network in self.trusted_proxy)
        except ValueError as error:
            msg = f"trusted-proxy: expected a network such as 10.0.0.0/8; {error}"
            raise SettingError(msg) from None

    @property
    def sqlite_path(self) -> Path:
        """The file of the database.

        Raises:
            SettingError: the database is none of SQLite.
        """
        return sqlite_path(self.database)

    def check(self) -> None:
        """Refuse values that do not fit together.

        Raises:
            SettingError: naming the setting and what it takes.
        """
        check_database(self.database)
        if self.read_database and not (
            is_postgres(self.database) and is_postgres(self.read_database)
        ):
            msg = "read-database: expected postgresql://…, a replica of a PostgreSQL --database"
            raise SettingError(msg)
        if self.redis and not self.redis.startswith(_REDIS_SCHEMES):
            msg = "redis: expected redis://host:6379, rediss://… or redis+sentinel://…"
            raise SettingError(msg)
        _ = self.trusted_networks
        for origin in self.allowed_origin:
            if not _ORIGIN.match(origin):
                msg = f"allowed-origin: expected scheme://host or scheme://host:port or *: {origin}"
                raise SettingError(msg)
        if self.metrics_port == self.port:
            msg = "metrics-port: expected another port than --port"
            raise SettingError(msg)
        self._check_tracing()
        if self.ban_seconds > self.ban_max_seconds:
            msg = "ban-seconds: expected at most --ban-max-seconds"
            raise SettingError(msg)
        if self.drain_timeout > self.shutdown_timeout - 2:
            msg = "drain-timeout: expected at most --shutdown-timeout less 2"
            raise SettingError(msg)
        if self.workers > 1 and not self.redis:
            msg = "workers: more than one process needs --redis to share limits; expected 1"
            raise SettingError(msg)

    def _check_tracing(self) -> None:
        if not self.trace_endpoint:
            return
        if not _HTTP.match(self.trace_endpoint):
            msg = "trace-endpoint: expected an address such as http://collector:4318/v1/traces"
            raise SettingError(msg)
        try:
            installed = find_spec("opentelemetry.exporter.otlp.proto.http")
        except ModuleNotFoundError:
            installed = None
        if installed is None:
            msg = "trace-endpoint: the extra [tracing] is not installed; see docs/monitoring.md"
            raise SettingError(msg)


def masked(url: str) -> str:
    """Return ``url`` with ``***`` in place of each password in it."""
    return _QUERY_PASSWORD.sub(r"\1***", _USER_PASSWORD.sub(r"\1:***", url))


def is_postgres(database: str) -> bool:
    """Tell whether ``database`` names one on a PostgreSQL server."""
    return database.startswith(_POSTGRES_SCHEMES)


def check_database(database: str) -> None:
    """Refuse what names no database.

    Raises:
        SettingError: it is of neither form.
    """
    if not is_postgres(database):
        sqlite_path(database)


def sqlite_path(database: str) -> Path:
    """Return the file that ``database`` names.

    Raises:
        SettingError: it is not of the form ``sqlite:///path``.
    """
    scheme, separator, path = database.partition(":///")
    # SQLite would take :memory: for a database that nobody else sees.
    if scheme != "sqlite" or not separator or path in ("", ":memory:") or "\0" in path:
        msg = (
            "database: expected sqlite:///relative.db, sqlite:////absolute.db"
            " or postgresql://user@host/name"
        )
        raise SettingError(msg)
    return Path(path)
