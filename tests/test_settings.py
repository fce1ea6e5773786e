"""The defaults are the numbers that were decided on, and what does not fit is refused."""

from dataclasses import Field, fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from petstore.settings import SettingError, Settings, masked, sqlite_path


@pytest.mark.parametrize(
    "database",
    [
        "",
        "petstore.db",
        "sqlite:petstore.db",
        "sqlite://petstore.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///pet\0store.db",
        "sqlite:///pet\udcffstore.db",
        "SQLITE:///petstore.db",
        "mysql://petstore",
        "postgresql:petstore",
    ],
)
def test_an_unknown_kind_of_database_is_refused(database: str) -> None:
    with pytest.raises(SettingError, match=r"^database: expected sqlite:///relative.db, "):
        sqlite_path(database)
    with pytest.raises(SettingError, match=r"^database: "):
        replace(Settings(), database=database).check()


@pytest.mark.parametrize("network", ["", "here", "10.0.0.1/8", "10.0.0.0/33", "fd00::/129"])
def test_a_trusted_proxy_that_is_not_a_network_is_refused(network: str) -> None:
    with pytest.raises(
        SettingError, match=r"^trusted-proxy: expected a network such as 10.0.0.0/8"
    ):
        replace(Settings(), trusted_proxy=("127.0.0.0/8", network)).check()


@pytest.mark.parametrize("database", ["postgresql://me@host/store", "postgres:///store"])
def test_a_postgresql_database_is_accepted(database: str) -> None:
    replace(Settings(), database=database).check()


def test_delivering_needs_a_master_secret() -> None:
    on_postgres = replace(Settings(), database="postgresql:///store")
    assert not on_postgres.delivers
    assert replace(on_postgres, secret_file=str(Path("webhooks"))).delivers


def test_more_than_one_process_is_refused_without_redis() -> None:
    with pytest.raises(SettingError, match=r"^workers: more than one process needs --redis"):
        replace(Settings(), workers=2).check()
    replace(Settings(), workers=2, redis="redis://localhost").check()


def test_an_invalid_redis_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^redis: expected redis://"):
        replace(Settings(), redis="localhost:6379").check()


def test_the_drain_timeout_cannot_exceed_the_shutdown_timeout() -> None:
    with pytest.raises(
        SettingError, match=r"^drain-timeout: expected at most --shutdown-timeout less"
    ):
        replace(Settings(), shutdown_timeout=5, drain_timeout=3.5).check()
    replace(Settings(), shutdown_timeout=5, drain_timeout=3).check()


@pytest.mark.parametrize("days", [1, 30])
def test_histories_are_kept_at_least_as_long_as_the_usage_shows(days: int) -> None:
    with pytest.raises(
        SettingError, match=r"^history-days: expected 0 or at least 31; GET /v1/usage"
    ):
        replace(Settings(), history_days=days).check()
    for kept in (0, 31):
        replace(Settings(), history_days=kept).check()


@pytest.mark.parametrize(
    ("name", "default"),
    [
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
    ],
)
def test_a_default_has_its_documented_value(name: str, default: object) -> None:
    assert getattr(Settings(), name) == default


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


def test_trusted_proxies_are_ipv4_or_ipv6_networks() -> None:
    settings = replace(Settings(), trusted_proxy=("10.0.0.0/8", "192.0.2.7", "fd00::/8"))
    assert settings.trusted_networks == (
        ip_network("10.0.0.0/8"),
        ip_network("192.0.2.7/32"),
        ip_network("fd00::/8"),
    )


@pytest.mark.parametrize("network", ["", "here", "10.0.0.1/8", "10.0.0.0/33"])
def test_an_invalid_webhook_network_is_refused(network: str) -> None:
    with pytest.raises(
        SettingError, match=r"^webhook-network: expected a network such as 10.0.0.0/8"
    ):
        replace(Settings(), webhook_network=("127.0.0.0/8", network)).check()


def test_webhook_networks_are_ipv4_or_ipv6_networks() -> None:
    settings = replace(Settings(), webhook_network=("10.0.0.0/8", "fd00::/8"))
    assert settings.webhook_networks == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


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
    "origin",
    [
        "shop.example",
        "https://shop.example/",
        "https://",
        "https://u:s3cret@shop/",
        "*.example",
    ],
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(SettingError, match=r"^allowed-origin: expected [^@]*\Z"):
        replace(Settings(), allowed_origin=("https://shop.example:8443", origin)).check()


@pytest.mark.parametrize(
    "url",
    [
        *(
            "api.example.com",
            "//api.example.com",
            "ftp://api.example.com",
            "https://",
            "https:///x",
        ),
        *(
            "https://api.example.com/v1",
            "https://api.example.com/shop/v1/",
            "https://a b",
            "https://ä",
        ),
        *("https://shop:pa55word@api.example.com", "https://api.example.com?", "https://a/x?y=1"),
        *("https://api.example.com/#top", "https://a//b", "https://a/b//", "https://a/<b>"),
        *(
            "https://a:0",
            "https://a:65536",
            "https://a:port",
            "https://a:",
            "https://[::1",
            "https://a\n",
        ),
        "https://[::::]",
    ],
)
def test_a_public_url_that_clients_cannot_use_is_refused(url: str) -> None:
    with pytest.raises(
        SettingError, match=r"^public-url: expected a URL such as https://"
    ) as raised:
        replace(Settings(), public_url=url).check()
    assert "pa55word" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("", "https://api.example.com", "https://api.example.com/", "http://127.0.0.1:8000"),
        *("https://[2001:db8::1]:8443/shop/eu", "https://Api.Example.com/v1beta", "http://a/v10/"),
        "https://api.example.com/v1/shop",
    ],
)
def test_a_public_url_may_have_a_port_and_a_path(url: str) -> None:
    replace(Settings(), public_url=url).check()


@pytest.mark.parametrize(
    "contact",
    [
        *("security@example.com", "http://example.com/report", "mailto:", "mailto:security"),
        *("https://", "tel:", "tel:now", "mailto:a@b\nCanonical: x", "mailto:ä@example.com"),
    ],
)
def test_a_security_contact_that_cannot_be_contacted_is_refused(contact: str) -> None:
    usual = "mailto:security@example.com"
    with pytest.raises(SettingError, match=r"^security-contact: expected mailto:"):
        replace(Settings(), security_contact=(usual, contact)).check()


def test_a_security_contact_is_an_email_a_page_or_a_phone_number() -> None:
    contacts = ("mailto:a@example.com", "https://example.com/report", "tel:+1-201-555-0123")
    replace(Settings(), security_contact=contacts).check()


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


@pytest.mark.parametrize("currency", ["", "usd", "US", "EURO", "€", "USD "])
def test_a_currency_that_is_no_code_is_refused(currency: str) -> None:
    with pytest.raises(SettingError, match=r"^currency: expected three capital letters"):
        Settings(currency=currency).check()
