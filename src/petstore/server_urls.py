"""The URLs of PostgreSQL and Redis: which options the drivers take, and which are dropped."""

import re
from collections.abc import Collection
from urllib.parse import unquote, urlsplit

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
# redis-py takes them. The service chooses them itself.
_REDIS_DROPPED = (
    *("client_name", "decode_responses", "health_check_interval", "max_connections", "protocol"),
    *("retry_on_timeout", "socket_connect_timeout", "socket_keepalive", "socket_timeout"),
    "timeout",
)
_REDIS_EXPECTED = (
    "redis: expected redis://host:port/database or rediss://…, special characters of a password as"
    " %xx"
)
_REDIS = re.compile(
    r"rediss?://([^/?#]*@)?([^][@:,/?#]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[0-9]*)?(\?.*)?\Z"
)


def postgres_url(url: str) -> str:
    """Return a URL for asyncpg."""
    return _with_known_options(url, _POSTGRES_TAKEN, _POSTGRES_DROPPED, POSTGRES_EXPECTED)


def redis_url(url: str) -> str:
    if not _is_of_redis(url):
        raise ValueError(_REDIS_EXPECTED)
    taken = _REDISS_TAKEN if url.startswith("rediss:") else _REDIS_TAKEN
    return _with_known_options(url, taken, _REDIS_DROPPED, _REDIS_EXPECTED)


def _is_of_redis(url: str) -> bool:
    try:
        return _REDIS.match(url) is not None and urlsplit(url).port != 0
    except ValueError:  # the port is above 65535, or the IPv6 address is none
        return False


def _with_known_options(
    url: str, taken: Collection[str], dropped: Collection[str], expected: str
) -> str:
    address, _, query = url.partition("?")
    if "@" in query and "@" not in address:  # the password has the first ?
        raise ValueError(expected)
    kept = []
    for option in query.split("&") if query else ():
        name, equals, _ = option.partition("=")
        if not equals:
            raise ValueError(expected)
        if unquote(name) in taken:
            kept.append(option)
        elif unquote(name) not in dropped:
            setting = expected.partition(":")[0]
            msg = f"{setting}: unknown option {name!r} in the URL; expected {', '.join(taken)}"
            raise ValueError(msg)
    return f"{address}?{'&'.join(kept)}" if kept else address
