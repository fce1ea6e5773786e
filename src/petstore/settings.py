"""Every setting of the service, one field each: an option and an environment variable."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from petstore.domain.time_zones import zone_of
from petstore.errors import InvalidParameter
from petstore.keys.model import Environment

_LogFormat: TypeAlias = Literal["auto", "text", "json"]
_LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

T = TypeVar("T")

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")
# No other process sees :memory:. Surrogates stand for bytes that are not UTF-8.
_SQLITE = re.compile(r"sqlite:///(?!:memory:\Z)[^\0\ud800-\udfff]+")
_HTTP = re.compile(r"https?://[^/?#\s]")
_CURRENCY = re.compile("[A-Z]{3}")
# Up to the last @: a password may have characters that should have been percent-encoded, and on
# Azure the name of a user has an @.
_USER_PASSWORD = re.compile(r"(?<=://)([^:/]*):.+(?=@)", re.DOTALL)
# Trace collectors accept tokens and keys, too.
_QUERY_PASSWORD = re.compile(
    r"([?&][^=&]*(?:password|token|secret|api[_-]?key)[^=&]*=)[^&]*", re.IGNORECASE
)
# RFC 3986: a host, and perhaps a port and segments of a path.
_PUBLIC_URL = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:/(?!v1/?\Z)(?:[A-Za-z0-9._~!$&'()*+=:@-]|%[0-9A-Fa-f]{2})+)*/?\Z"
)
_ORIGIN = re.compile(r"(\*|[a-z][a-z0-9+.-]*://[^/?#\s]+)\Z")
_POSTGRES_TAKEN = (
    *("dbname", "gsslib", "host", "krbsrvname", "options", "passfile", "password", "port"),
    *("service", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcrl"),
    *("sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs"),
    "user",
)
# libpq takes them. The service has its own name, timeouts and encoding. asyncpg has neither channel
# binding nor encryption by GSSAPI.
_POSTGRES_DROPPED = (
    *("application_name", "channel_binding", "client_encoding", "connect_timeout"),
    *("fallback_application_name", "gssencmode", "keepalives", "keepalives_count"),
    *("keepalives_idle", "keepalives_interval", "pgbouncer", "sslcompression", "sslsni"),
    "tcp_user_timeout",
)
POSTGRES_EXPECTED = (
    "database: expected postgresql://user:password@host:port/name, and any of @ : / ? #"
    " % in the password percent-encoded, such as %40 for @"
)
_REDIS_TAKEN = ("db",)
_REDISS_TAKEN = (
    *("db", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile"),
)
_REDIS_EXPECTED = (
    "redis: expected redis://host:port/database or rediss://…, special characters of a password as"
    " %xx"
)
_REDIS = re.compile(
    r"rediss?://([^/?#]*@)?([^][@:,/?#]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[0-9]*)?(\?.*)?\Z"
)


SECTIONS = {
    "host": "Where it listens",
    "database": "Store",
    "webhook_network": "Webhooks",
    "workers": "Processes",
    "log_format": "Logs and traces",
    "anonymous_per_minute": "Limits of requests",
    "ban_strikes": "Bans",
    "max_connections": "Connections and messages",
}
"""The sections of the settings in the help, each by its first setting."""


class SettingError(ValueError):
    """A setting has an invalid value; the message names the setting and what was expected."""


def _setting(
    default: T,
    description: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    secret: bool = False,
) -> T:
    metadata = {"description": description, "ge": ge, "le": le, "secret": secret}
    declared: Any = field(default=default, metadata=metadata)
    return declared  # type: ignore[no-any-return] # a dataclass makes the value of the field


def _flag(description: str) -> bool:
    return _setting(default=False, description=description)


@dataclass(frozen=True)
class Settings:
    """How the service runs. Times are in seconds, sizes in bytes."""

    host: str = _setting(
        "127.0.0.1", "The address to listen on, unless systemd passes a listening socket."
    )
    port: int = _setting(8000, "The port to listen on.", ge=1, le=65535)
    metrics_port: int = _setting(
        0, "The port of /metrics for Prometheus; 0 disables it.", ge=0, le=65535
    )
    public_url: str = _setting(
        "",
        "The URL that clients use for this service, without /v1, such as https://api.example.com."
        " Without it, links have http:// and the Host of the request.",
    )
    other_environment_url: str = _setting(
        "", "The URL of the other environment, without /v1, for the OpenAPI document."
    )
    trusted_proxy: tuple[str, ...] = _setting(
        (),
        "A network of proxies whose X-Forwarded-For is trusted, such as 10.0.0.0/8. May be"
        " repeated.",
    )
    allowed_origin: tuple[str, ...] = _setting(
        (), "An origin whose pages may call the service, or * for any. May be repeated."
    )
    database: str = _setting(
        "sqlite:///petstore.db",
        "The database: sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/name.",
        secret=True,
    )
    redis: str = _setting(
        "",
        "Redis or Valkey, where processes share limits: redis://host:6379 or rediss://….",
        secret=True,
    )
    database_connections: int = _setting(
        10, "The maximum number of connections of each process to PostgreSQL.", ge=1, le=1000
    )
    database_timeout: float = _setting(
        1.5,
        "The maximum time of a read or a change in the database; after that the response is 503.",
        ge=0.1,
        le=3600,
    )
    environment: Environment = _setting(
        "production", "Which keys are valid: production (ps_live_…) or staging (ps_test_…)."
    )
    strict_categories: bool = _flag("Accept only pets of registered categories.")
    reservation_minutes: int = _setting(
        1440,
        "How long a placed order reserves its pet unless it is approved; 0 is forever.",
        ge=0,
        le=100 * 365 * 24 * 60,
    )
    currency: str = _setting(
        "USD", "The currency of the amounts of orders (ISO 4217), such as EUR."
    )
    time_zone: str = _setting("UTC", "The time zone of the shop (IANA), such as Europe/Berlin.")
    buyer_days: int = _setting(
        0,
        "How many days after an order is closed its personal data is removed; 0 is never.",
        ge=0,
        le=36_500,
    )
    event_days: int = _setting(30, "How many days events are kept.", ge=7, le=3650)
    webhook_network: tuple[str, ...] = _setting(
        (),
        "A private network to which webhooks may deliver, by http too and at any port, such as"
        " 10.0.0.0/8. May be repeated.",
    )
    secret_file: str = _setting(
        "",
        "The file with the master secret of all webhooks. Default: with SQLite, the database's"
        " name with .secret at its end; with PostgreSQL none, and webhooks are disabled.",
    )
    no_deliveries: bool = _flag("Do not deliver events to webhooks; petstore deliver can do it.")
    workers: int = _setting(
        1, "The number of processes that serve requests. More than one needs --redis.", ge=1, le=256
    )
    shutdown_timeout: int = _setting(
        10,
        "The maximum time of a stop. One second before its end, unfinished requests are cut off.",
        ge=2,
        le=3600,
    )
    drain_timeout: float = _setting(
        0,
        "How long the service keeps serving after a stop signal, with 503 at /readyz and a closed"
        " connection after each response, so that a load balancer sends clients elsewhere.",
        ge=0,
        le=3600,
    )
    log_format: _LogFormat = _setting("auto", "text, json, or auto: text on a terminal, else json.")
    log_level: _LogLevel = _setting(
        "info", "The lowest level to log: debug, info, warning or error. Requests are info."
    )
    omit_addresses: bool = _flag("Leave the addresses of clients out of the request log.")
    trace_endpoint: str = _setting(
        "",
        "Where to send traces (OTLP over HTTP), such as http://collector:4318/v1/traces.",
        secret=True,
    )
    anonymous_per_minute: int = _setting(
        300, "Requests a minute from one address without a valid key.", ge=1, le=2**31 - 2
    )
    max_tracked_addresses: int = _setting(
        20_000,
        "How many addresses without a valid key are counted at the same time.",
        ge=1,
        le=10_000_000,
    )
    usage_per_minute: int = _setting(
        60, "Requests of GET /v1/usage a minute for each key, in each process.", ge=1, le=2**31 - 2
    )
    console_per_minute: int = _setting(
        1200,
        "Requests of the console a minute for each key or person from a network, in each process.",
        ge=1,
        le=2**31 - 2,
    )
    key_refresh_seconds: float = _setting(
        0.25, "How often each process checks for changes to keys.", ge=0.01, le=60
    )
    limits_save_seconds: float = _setting(
        0.5,
        "How often the counts of the limits are saved; other counts are saved a fourth as often. A"
        " crash loses the counts since the last save.",
        ge=0.01,
        le=60,
    )
    ban_strikes: int = _setting(
        20,
        "The number of strikes for a ban; of a key with more than three times as many requests a"
        " minute, a third of those.",
        ge=1,
        le=10**9,
    )
    ban_grace_seconds: float = _setting(
        1, "How long after the first 429 of a run further 429s are no strikes.", ge=0, le=3600
    )
    ban_seconds: float = _setting(
        300,
        "The length of the first ban; each further ban is twice as long, up to a day.",
        ge=1,
        le=86400,
    )
    max_connections: int = _setting(
        20_000, "The maximum number of connections to each process.", ge=1, le=1_000_000
    )
    connections_per_address: int = _setting(
        0,
        "The maximum number of connections of one address; 0 is a quarter of --max-connections."
        " Trusted proxies are exempt.",
        ge=0,
        le=1_000_000,
    )
    buffer_bytes: int = _setting(
        32 * 1024 * 1024,
        "The memory of each process for unfinished requests and unread responses; beyond it"
        " the ones of the client address that has most get 503 or are closed.",
        ge=1024 * 1024,
        le=2**40,
    )
    header_timeout: float = _setting(
        10,
        "A connection is closed if it sends no complete head, or reads nothing of a response, for"
        " this long.",
        ge=0.1,
        le=3600,
    )
    body_timeout: float = _setting(
        10, "The time for a body to arrive; after that the response is 408.", ge=0.1, le=3600
    )
    max_body_bytes: int = _setting(
        65536, "The maximum size of a body; a batch may be eight times as large.", ge=1024, le=2**30
    )

    @property
    def listening_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def zone(self) -> ZoneInfo:
        try:
            return zone_of(self.time_zone)
        except InvalidParameter as error:
            raise SettingError(error.message.replace("timeZone", "time-zone")) from None

    @property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return _networks("trusted-proxy", self.trusted_proxy)

    @property
    def webhook_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return _networks("webhook-network", self.webhook_network)

    @property
    def secret_path(self) -> Path | None:
        if self.secret_file:
            return Path(self.secret_file)
        if is_postgres(self.database):
            return None
        path = sqlite_path(self.database)
        return path.with_name(f"{path.name}.secret")

    @property
    def delivers(self) -> bool:
        return not self.no_deliveries and self.secret_path is not None

    def check(self) -> None:
        check_database(self.database)
        if self.redis:
            redis_url(self.redis)
        self._check_addresses()
        _require(
            self.drain_timeout <= self.shutdown_timeout - 2,
            "drain-timeout: expected at most --shutdown-timeout less 2",
        )
        _require(
            _CURRENCY.fullmatch(self.currency),
            "currency: expected three capital letters (ISO 4217), such as USD",
        )
        _ = self.zone
        _require(
            self.workers == 1 or self.redis,
            "workers: more than one process needs --redis to share limits; expected 1",
        )

    def _check_addresses(self) -> None:
        _ = self.trusted_networks, self.webhook_networks
        for name in ("public_url", "other_environment_url"):
            url = getattr(self, name)
            _require(
                not url or _matches(_PUBLIC_URL, url),
                f"{name.replace('_', '-')}: expected a URL such as https://api.example.com, perhaps"
                " with a port and a path, without /v1, a user, ? and #",
            )
        for origin in self.allowed_origin:
            _require(
                _ORIGIN.match(origin),
                "allowed-origin: expected scheme://host or scheme://host:port or *",
            )
        _require(self.metrics_port != self.port, "metrics-port: expected another port than --port")
        if self.trace_endpoint:
            _require(
                _HTTP.match(self.trace_endpoint),
                "trace-endpoint: expected an address such as http://collector:4318/v1/traces",
            )
            _require(
                _can_trace(),
                "trace-endpoint: the extra [tracing] is not installed; see docs/monitoring.md",
            )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise SettingError(message)


def _networks(name: str, networks: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(network) for network in networks)
    except ValueError as error:
        raise SettingError(f"{name}: expected a network such as 10.0.0.0/8; {error}") from None


def _matches(form: re.Pattern[str], url: str) -> bool:
    try:
        return form.match(url) is not None and urlsplit(url).port != 0
    except ValueError:  # the port is above 65535, or the IPv6 address is none
        return False


def _can_trace() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def masked(url: str) -> str:
    return _QUERY_PASSWORD.sub(r"\1***", _USER_PASSWORD.sub(r"\1:***", url))


def is_postgres(database: str) -> bool:
    return database.startswith(_POSTGRES_SCHEMES)


def check_database(database: str) -> None:
    if is_postgres(database):
        postgres_url(database)
    else:
        sqlite_path(database)


def sqlite_path(database: str) -> Path:
    _require(
        _SQLITE.fullmatch(database),
        "database: expected sqlite:///relative.db, sqlite:////absolute.db"
        " or postgresql://user@host/name",
    )
    return Path(database.removeprefix("sqlite:///"))


def postgres_url(url: str) -> str:
    """Return a URL for asyncpg."""
    return _with_known_options(url, _POSTGRES_TAKEN, POSTGRES_EXPECTED, _POSTGRES_DROPPED)


def redis_url(url: str) -> str:
    if not _matches(_REDIS, url):
        raise SettingError(_REDIS_EXPECTED)
    taken = _REDISS_TAKEN if url.startswith("rediss:") else _REDIS_TAKEN
    return _with_known_options(url, taken, _REDIS_EXPECTED)


def _with_known_options(
    url: str, taken: Collection[str], expected: str, dropped: Collection[str] = ()
) -> str:
    address, _, query = url.partition("?")
    if "@" in query and "@" not in address:  # the password has the first ?
        raise SettingError(expected)
    kept = []
    for option in query.split("&") if query else ():
        name, equals, _ = option.partition("=")
        if not equals:
            raise SettingError(expected)
        if unquote(name) in taken:
            kept.append(option)
        elif unquote(name) not in dropped:
            setting = expected.partition(":")[0]
            msg = f"{setting}: unknown option {name!r} in the URL; expected {', '.join(taken)}"
            raise SettingError(msg)
    return f"{address}?{'&'.join(kept)}" if kept else address
