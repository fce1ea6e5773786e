"""Where Redis or Valkey is, as a URL says it."""

from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

Kind: TypeAlias = Literal["server", "cluster", "sentinel"]
Host: TypeAlias = tuple[str, int]

_PORT = 6379
_PORT_OF_SENTINEL = 26379
_SENTINEL = "redis+sentinel"
_SCHEMES = ("redis", "rediss", _SENTINEL)
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_EXPECTED = (
    "redis: expected redis://host:port/database, rediss://…, redis://host:port?cluster=true or"
    " redis+sentinel://host:port/name, special characters of a password as %xx"
)


class RedisPlace(NamedTuple):
    """One server, some of a cluster, or the Sentinels that know which server has ``name``."""

    kind: Kind
    hosts: tuple[Host, ...]
    name: str
    options: dict[str, Any]


def parse_redis_url(url: str) -> RedisPlace:
    """Return the place that ``url`` names.

    Clusters and Sentinels may be named by several hosts, separated by commas. With ``rediss``,
    the files of certificates are given by ``ssl_ca_certs``, ``ssl_certfile`` and ``ssl_keyfile``.

    Raises:
        ValueError: it names none; the message repeats nothing of it, for it may hold a password.
    """
    try:
        return _parse(urlsplit(url))
    except ValueError:
        raise ValueError(_EXPECTED) from None


def _parse(parts: SplitResult) -> RedisPlace:
    query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    is_cluster = {"true": True, "false": False}.get(query.pop("cluster", "false"))
    kind: Kind = "cluster" if is_cluster else "server"
    path = unquote(parts.path.strip("/"))
    if parts.scheme == _SENTINEL:
        kind, database = "sentinel", 0
    else:
        database = int(path or 0)
    user, _, hosts = parts.netloc.rpartition("@")
    username, _, password = (unquote(part) for part in user.partition(":"))
    options: dict[str, Any] = {
        "username": username or None,
        "password": password or None,
        "db": database,
    }
    if parts.scheme == "rediss":
        options["ssl"] = True
        options |= {file: query.pop(file) for file in _TLS_FILES if file in query}
    port = _PORT_OF_SENTINEL if kind == "sentinel" else _PORT
    place = RedisPlace(kind, tuple(_host(host, port) for host in hosts.split(",")), path, options)
    is_sound = (
        parts.scheme in _SCHEMES
        and is_cluster is not None
        and not query
        and not parts.fragment
        and (kind != "server" or len(place.hosts) == 1)
        and (kind != "cluster" or database == 0)
        and (kind != "sentinel" or (path and not is_cluster))
    )
    if not is_sound:
        raise ValueError
    return place


def _host(text: str, port: int) -> Host:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError
    return parts.hostname, parts.port or port
