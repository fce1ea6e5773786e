"""The URL of Redis or Valkey."""

import re
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

Kind: TypeAlias = Literal["server", "cluster", "sentinel"]
Host: TypeAlias = tuple[str, int]

# Some versions of ``urlsplit`` refuse an IPv6 address that is not the only host.
_URL = re.compile(
    r"(redis|rediss|redis\+sentinel)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE
)
# ``int()`` would accept ``+1``, ``1_0`` and full-width digits.
_DATABASE = re.compile(r"[0-9]*")
_PORTS: dict[Kind, int] = {"server": 6379, "cluster": 6379, "sentinel": 26379}
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CLUSTER: dict[str, Kind] = {"true": "cluster", "false": "server"}
_EXPECTED = (
    "redis: expected redis://host:port/database, rediss://…, redis://host:port?cluster=true or"
    " redis+sentinel://host:port/name, special characters of a password as %xx"
)


class RedisAddress(NamedTuple):
    """One server, some nodes of a cluster, or the Sentinels of the service ``service``.

    ``options`` are those of the client: credentials, database number and TLS.
    """

    kind: Kind
    hosts: tuple[Host, ...]
    service: str
    options: dict[str, Any]


def parse_redis_url(url: str) -> RedisAddress:
    """Return the address in ``url``.

    A cluster or Sentinel URL may list several hosts, separated by commas. ``rediss`` takes the
    certificate files in ``ssl_ca_certs``, ``ssl_certfile`` and ``ssl_keyfile``.

    Raises:
        ValueError: the URL is invalid. The message repeats no part of it: it may hold a password.
    """
    try:
        return _parse(url)
    except (KeyError, ValueError):
        raise ValueError(_EXPECTED) from None


def _parse(url: str) -> RedisAddress:
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError
    scheme, authority, path, parameters = match.groups("")
    scheme, path = scheme.lower(), unquote(path.strip("/"))
    query = dict(parse_qsl(parameters, keep_blank_values=True, strict_parsing=parameters != ""))
    kind, service = _CLUSTER[query.pop("cluster", "false")], ""
    if scheme == "redis+sentinel":
        _require(kind == "server" and path != "")
        kind, service, path = "sentinel", path, ""
    _require(_DATABASE.fullmatch(path) is not None)
    credentials, _, addresses = authority.rpartition("@")
    username, _, password = (unquote(part) for part in credentials.partition(":"))
    options: dict[str, Any] = {
        "username": username or None,
        "password": password or None,
        "db": int(path or 0),
    }
    if scheme == "rediss":
        options["ssl"] = True
        options |= {file: query.pop(file) for file in _TLS_FILES if file in query}
    hosts = tuple(_host(host, _PORTS[kind]) for host in addresses.split(","))
    _require(not query)
    _require(kind != "server" or len(hosts) == 1)
    _require(kind != "cluster" or options["db"] == 0)
    return RedisAddress(kind, hosts, service, options)


def _host(text: str, port: int) -> Host:
    parts = urlsplit(f"//{text}")
    _require(bool(parts.hostname))
    return str(parts.hostname), parts.port or port


def _require(condition: bool) -> None:  # noqa: FBT001 - the condition itself
    if not condition:
        raise ValueError
