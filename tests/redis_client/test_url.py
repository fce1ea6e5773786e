"""Where Redis is, as a URL says it."""

from typing import Any

import pytest

from petstore.redis_client.url import RedisAddress, parse_redis_url


def options(user: str | None = None, secret: str | None = None, **others: Any) -> dict[str, Any]:
    return {"username": user, "password": secret, "db": 0, **others}


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", RedisAddress("server", (("cache", 6379),), "", options())),
        ("redis://cache:1234/", RedisAddress("server", (("cache", 1234),), "", options())),
        ("redis://[::1]:1234", RedisAddress("server", (("::1", 1234),), "", options())),
        ("redis://cache/7", RedisAddress("server", (("cache", 6379),), "", options(db=7))),
        (
            "redis://user:p%40ss%2Fw%23rd@cache",
            RedisAddress("server", (("cache", 6379),), "", options("user", "p@ss/w#rd")),
        ),
        (
            "redis://:secret@cache",
            RedisAddress("server", (("cache", 6379),), "", options(None, "secret")),
        ),
        ("rediss://cache", RedisAddress("server", (("cache", 6379),), "", options(ssl=True))),
        (
            "rediss://cache?ssl_ca_certs=/etc/ca.pem&ssl_certfile=c&ssl_keyfile=k",
            RedisAddress(
                "server",
                (("cache", 6379),),
                "",
                options(ssl=True, ssl_ca_certs="/etc/ca.pem", ssl_certfile="c", ssl_keyfile="k"),
            ),
        ),
        (
            "redis://a,b:2/?cluster=true",
            RedisAddress("cluster", (("a", 6379), ("b", 2)), "", options()),
        ),
        (
            "redis://[::1],b?cluster=true",
            RedisAddress("cluster", (("::1", 6379), ("b", 6379)), "", options()),
        ),
        ("redis://a?cluster=false", RedisAddress("server", (("a", 6379),), "", options())),
        (
            "redis+sentinel://:secret@a,[::1]:2/shop",
            RedisAddress("sentinel", (("a", 26379), ("::1", 2)), "shop", options(None, "secret")),
        ),
    ],
)
def test_a_url_names_an_address(url: str, address: RedisAddress) -> None:
    assert parse_redis_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis",
        "redis://",
        "redis://:secret@",
        "redis://:pa#secret@cache",
        "redis://:pa/secret@cache",
        "redis://cache:secret",
        "redis://cache:70000",
        "redis://cache:-1",
        "redis://[::1",
        "redis://cache/secret",
        *("redis://cache/+1", "redis://cache/-1", "redis://cache/1_0", "redis://cache/%EF%BC%91"),
        "redis://a,b",
        "redis://a,",
        "redis://cache?secret=1",
        "redis://cache?secret",
        "redis://cache?cluster=secret",
        "redis://cache?cluster=",
        "redis://cache?cluster=false&",
        "redis://cache/1?cluster=true",
        "redis://cache?ssl_ca_certs=x",
        "redis+sentinel://cache",
        "redis+sentinel://cache/shop?cluster=true",
        "rediss+sentinel://cache/shop",
        "http://secret",
        "unix:///secret",
    ],
)
def test_an_invalid_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match=r"^redis: expected redis://host") as refusal:
        parse_redis_url(url)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None
