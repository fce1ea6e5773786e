"""The defaults are the numbers that were decided on, and what does not fit is refused."""

from dataclasses import Field, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from petstore.settings import SettingError, Settings, masked, sqlite_path

ORIGIN = "https://shop.example:8443"
DATABASES = (
    *("", "petstore.db", "sqlite:petstore.db", "sqlite://petstore.db", "sqlite:///"),
    *("sqlite:///:memory:", "sqlite:///pet\0store.db", "sqlite:///pet\udcffstore.db"),
    *("SQLITE:///petstore.db", "mysql://petstore", "postgresql:petstore"),
)
NETWORKS = ("", "here", "10.0.0.1/8", "10.0.0.0/33", "fd00::/129")
ORIGINS = ("shop.example", f"{ORIGIN}/", "https://", "https://u:s3cret@shop/", "*.example")
URLS = (
    *("api.example.com", "//api.example.com", "ftp://api.example.com", "https://", "https:///x"),
    *("https://api.example.com/v1", "https://api.example.com/shop/v1/", "https://a b", "https://ä"),
    *("https://shop:s3cret@api.example.com", "https://api.example.com?", "https://a/x?y=1"),
    *("https://api.example.com/#top", "https://a//b", "https://a/b//", "https://a/<b>"),
    *("https://a:0", "https://a:65536", "https://a:port", "https://a:", "https://a\n"),
    *("https://[::1", "https://[::::]"),
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"database": url}, "database: expected sqlite:///relative.db, ") for url in DATABASES),
    *(
        ({name: ("127.0.0.0/8", network)}, f"{name}: expected a network such as 10.0.0.0/8")
        for name in ("trusted_proxy", "webhook_network")
        for network in NETWORKS
    ),
    *(
        ({"currency": currency}, "currency: expected three capital letters")
        for currency in ("", "usd", "US", "EURO", "€", "USD ")
    ),
    *(({"allowed_origin": (ORIGIN, it)}, "allowed-origin: expected ") for it in ORIGINS),
    *(({"public_url": url}, "public-url: expected a URL such as https://") for url in URLS),
    ({"workers": 2}, "workers: more than one process needs --redis"),
    ({"redis": "localhost:6379"}, "redis: expected redis://"),
    (
        {"shutdown_timeout": 5, "drain_timeout": 3.5},
        "drain-timeout: expected at most --shutdown-timeout less",
    ),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_a_setting_that_does_not_fit_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        replace(Settings(), **values).check()
    assert str(raised.value).startswith(message.replace("_", "-"))
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "values",
    [
        {"database": "postgresql://me@host/store"},
        {"database": "postgres:///store"},
        {"workers": 2, "redis": "redis://localhost"},
        {"shutdown_timeout": 5, "drain_timeout": 3},
        *(
            {"public_url": url}
            for url in (
                *("", "https://api.example.com", "https://api.example.com/", "http://127.0.0.1:80"),
                *("https://[2001:db8::1]:8443/shop/eu", "https://Api.Example.com/v1beta"),
                *("http://a/v10/", "https://api.example.com/v1/shop"),
            )
        ),
    ],
)
def test_a_setting_that_fits_is_accepted(values: dict[str, Any]) -> None:
    replace(Settings(), **values).check()


def test_delivering_needs_a_master_secret() -> None:
    on_postgres = replace(Settings(), database="postgresql:///store")
    assert not on_postgres.delivers
    assert replace(on_postgres, secret_file=str(Path("webhooks"))).delivers


def test_the_defaults_have_their_documented_values() -> None:
    assert vars(Settings()).items() >= {
        ("environment", "production"),
        ("workers", 1),
        ("trusted_proxy", ()),
        ("allowed_origin", ()),
        ("strict_categories", False),
        ("reservation_minutes", 24 * 60),
        ("anonymous_per_minute", 300),
        ("ban_strikes", 20),
        ("ban_grace_seconds", 1),
        ("ban_seconds", 5 * 60),
        ("max_body_bytes", 64 * 1024),
        ("body_timeout", 10),
        ("header_timeout", 10),
        ("shutdown_timeout", 10),
    }


@pytest.mark.parametrize(
    ("name", "high"),
    [("database_timeout", 2), ("key_refresh_seconds", 0.5), ("limits_save_seconds", 1)],
)
def test_a_default_keeps_the_promised_retention(name: str, high: float) -> None:
    assert getattr(Settings(), name) < high


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_a_default_lies_within_the_range_of_its_setting(setting: Field[Any]) -> None:
    default, metadata = setting.default, setting.metadata
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        assert metadata["ge"] <= default <= metadata["le"]
    assert metadata["description"].endswith(".")


@pytest.mark.parametrize(
    ("database", "path"),
    [
        ("sqlite:///petstore.db", Path("petstore.db")),
        ("sqlite:///data/pets.db", Path("data/pets.db")),
        ("sqlite:////var/lib/petstore.db", Path("/var/lib/petstore.db")),
        ("sqlite:///a file.db?x=y", Path("a file.db?x=y")),
    ],
)
def test_a_database_is_named_by_the_path_of_its_file(database: str, path: Path) -> None:
    assert sqlite_path(database) == path


def test_networks_are_of_ipv4_or_ipv6() -> None:
    named = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")
    networks = (ip_network("10.0.0.0/8"), ip_network("192.0.2.7/32"), ip_network("fd00::/8"))
    settings = replace(Settings(), trusted_proxy=named, webhook_network=named)
    assert settings.trusted_networks == settings.webhook_networks == networks


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({}, Path("petstore.db.secret")),
        ({"database": "sqlite:////var/lib/shop.db"}, Path("/var/lib/shop.db.secret")),
        ({"database": "postgresql://db/shop"}, None),
        ({"database": "postgresql://db/shop", "secret_file": "/run/secret"}, Path("/run/secret")),
        ({"secret_file": "secret"}, Path("secret")),
    ],
)
def test_the_secret_file_is_beside_the_database_or_at_its_setting(
    values: dict[str, Any], path: Path | None
) -> None:
    assert replace(Settings(), **values).secret_path == path


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///petstore.db", "sqlite:///petstore.db"),
        ("postgresql://petstore@db:5432/shop", "postgresql://petstore@db:5432/shop"),
        ("postgresql://petstore:s3cret@db/shop", "postgresql://petstore:***@db/shop"),
        ("postgresql://petstore:s3@c/r@et@db/shop", "postgresql://petstore:***@db/shop"),
        ("postgresql://me@azure:s3cret@db/shop", "postgresql://me@azure:***@db/shop"),
        ("postgresql://petstore:s3\ncret@db/shop", "postgresql://petstore:***@db/shop"),
        ("http://otel/v1/traces?api_key=s3cret&a=b", "http://otel/v1/traces?api_key=***&a=b"),
        ("http://otel/v1/traces?X-Token=s3cret", "http://otel/v1/traces?X-Token=***"),
        ("postgresql://db/shop?password=s3cret&a=b", "postgresql://db/shop?password=***&a=b"),
        ("postgresql://db/shop?a=b&sslpassword=s3cret", "postgresql://db/shop?a=b&sslpassword=***"),
        ("redis://:s3cret@a:6379", "redis://:***@a:6379"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
