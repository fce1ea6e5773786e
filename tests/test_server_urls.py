"""The URLs of PostgreSQL and Redis: which options are taken, dropped and refused."""

import pytest
from redis.asyncio import Redis

from petstore.settings import postgres_url, redis_url

POSTGRES = "postgresql://petstore:s3cret@db:5432/shop"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("", ""),
        ("?sslmode=require", "?sslmode=require"),
        ("?sslmode=require&channel_binding=require", "?sslmode=require"),
        ("?sslmode=verify-full&sslrootcert=/ca.pem", "?sslmode=verify-full&sslrootcert=/ca.pem"),
        ("?host=/run/postgresql&application_name=shop", "?host=/run/postgresql"),
        ("?options=-csearch_path%3Dshop", "?options=-csearch_path%3Dshop"),
        ("?target_session_attrs=read-write", "?target_session_attrs=read-write"),
        ("?connect_timeout=10&tcp_user_timeout=1", ""),
        ("?keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3", ""),
        ("?gssencmode=disable&sslsni=1&sslcompression=0&client_encoding=utf8", ""),
        ("?pgbouncer=true&user=me@azure", "?user=me@azure"),
    ],
)
def test_the_driver_of_postgresql_gets_the_options_that_it_takes(given: str, taken: str) -> None:
    assert postgres_url(POSTGRES + given) == POSTGRES + taken


@pytest.mark.parametrize(
    ("url", "host", "port", "others"),
    [
        ("redis://cache", "cache", 6379, {}),
        ("redis://cache:1234/", "cache", 1234, {}),
        ("redis://[::1]:1234", "::1", 1234, {}),
        ("redis://cache/7", "cache", 6379, {"db": 7}),
        ("redis://cache?db=7", "cache", 6379, {"db": 7}),
        (
            "redis://user:p%40ss%2Fw%23rd@cache",
            *("cache", 6379, {"username": "user", "password": "p@ss/w#rd"}),
        ),
        ("redis://:s3@cret@cache", "cache", 6379, {"password": "s3@cret"}),
        (
            "rediss://cache?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=none",
            *("cache", 6379, {"ssl_ca_certs": "/etc/ca.pem", "ssl_cert_reqs": "none"}),
        ),
        ("rediss://cache?ssl_check_hostname=no", "cache", 6379, {"ssl_check_hostname": False}),
    ],
)
def test_the_driver_of_redis_gets_the_options_that_it_takes(
    url: str, host: str, port: int, others: dict[str, object]
) -> None:
    client = Redis.from_url(redis_url(url))
    pool = client.connection_pool
    connection = pool.make_connection()  # type: ignore[no-untyped-call]
    given = pool.connection_kwargs
    assert (connection.host, connection.port) == (host, port)
    assert {name: given[name] for name in others} == others


@pytest.mark.parametrize(
    ("url", "option"),
    [
        (f"{POSTGRES}?sslmod=require", "sslmod"),
        (f"{POSTGRES}?sslmode=require&schema=public", "schema"),
        (f"{POSTGRES}?require_auth=scram-sha-256", "require_auth"),
        (f"{POSTGRES}?statement_timeout=1&password=s3cret", "statement_timeout"),
        ("redis://:s3cret@cache?cluster=true", "cluster"),
        ("redis://cache?ssl_ca_certs=/etc/ca.pem", "ssl_ca_certs"),
        ("rediss://cache?db=1&sslmode=require", "sslmode"),
    ],
)
def test_the_refusal_of_an_unknown_option_names_it(url: str, option: str) -> None:
    setting, parse = ("redis", redis_url) if url.startswith("redis") else ("database", postgres_url)
    with pytest.raises(
        ValueError, match=f"^{setting}: unknown option '{option}' in the URL"
    ) as refusal:
        parse(url)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        *("redis", "redis://", "redis://:s3cret@", "redis://:pa#s3cret@cache"),
        *("redis://:pa/s3cret@cache", "redis://:pa?s3cret=1@cache", "redis://cache:s3cret"),
        *("redis://cache:70000", "redis://cache:0", "redis://cache:-1", "redis://[::1"),
        *("redis://[::g]", "redis://cache/s3cret", "redis://cache/+1", "redis://cache/1_0"),
        *("redis://cache/%EF%BC%91", "redis://a,b", "redis://cache?s3cret", "redis://cache?db=1&"),
        *("redis+sentinel://cache/shop", "http://s3cret", "unix:///s3cret", "Redis://cache"),
        *("postgresql://petstore:s3cret?x=1@db/shop", f"{POSTGRES}?sslmode", f"{POSTGRES}?a&"),
    ],
)
def test_a_malformed_url_is_refused_and_not_shown(url: str) -> None:
    parse = postgres_url if url.startswith("postgresql") else redis_url
    with pytest.raises(ValueError, match=r"^(redis|database): expected (redis|postg)") as refusal:
        parse(url)
    assert "s3cret" not in str(refusal.value)
    assert refusal.value.__cause__ is None
