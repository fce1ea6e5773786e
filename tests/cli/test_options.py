"""Every setting is an option, an environment variable and a line of the help."""

from dataclasses import asdict, fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from petstore.cli.options import settings_options
from petstore.settings import Settings
from support.command import Command

SETTINGS = [setting.name for setting in fields(Settings)]
RANGES = [
    (setting.name, setting.metadata["ge"], setting.metadata["le"])
    for setting in fields(Settings)
    if setting.metadata["ge"] is not None
]
OTHERS: dict[str, Any] = {
    "host": "::1",
    "database": "sqlite:///other.db",
    "redis": "redis://localhost:6379",
    "trace_endpoint": "http://collector:4318/v1/traces",
    "metrics_port": 9000,
    "drain_timeout": 1.5,
    "environment": "staging",
    "log_format": "text",
    "log_level": "warning",
    "log_health_checks": True,
    "omit_addresses": True,
    "public_url": "https://api.shop.example",
    "other_environment_url": "https://staging.shop.example",
    "security_contact": ("mailto:security@shop.example",),
    "trusted_proxy": ("10.0.0.0/8",),
    "allowed_origin": ("https://shop.example",),
    "webhook_network": ("10.0.0.0/8",),
    "secret_file": "/run/secrets/petstore",
    "no_deliveries": True,
    "strict_categories": True,
    "currency": "EUR",
    "time_zone": "Europe/Berlin",
    "buyer_days": 30,
    **{name: low for name, low, _ in RANGES if low != getattr(Settings, name)},
    "workers": 2,
    "ban_grace_seconds": 0.5,
    "connections_per_address": 50,
}


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return f"PETSTORE_{name.upper()}"


def as_option(name: str, value: Any) -> list[str]:
    return [option(name)] if value is True else [option(name), as_text(value)]


def as_text(value: Any) -> str:
    return value[0] if isinstance(value, tuple) else str(value)


def settings_of(*arguments: str, **environment: str) -> Settings:
    """Return the settings that a command with these arguments gets."""
    found = []

    @click.command()
    @settings_options()
    def command(**options: Any) -> None:
        found.append(Settings(**options))

    result = CliRunner().invoke(command, arguments, env=environment)
    assert result.exit_code == 0, result.output
    return found[0]


@pytest.mark.parametrize(("name", "low", "high"), RANGES)
def test_a_number_outside_its_range_is_refused_naming_the_option_or_variable(
    command: Command, name: str, low: float, high: float
) -> None:
    for value in (f"{low - 1:g}", f"{high + 1:.0f}"):
        words = command.fail("serve", option(name), value, status=2)
        assert words.startswith(f"Invalid value for '{option(name)}'")
        assert "\n" not in words
    assert f"'{variable(name)}'" in command.fail("serve", status=2, **{variable(name): value})


@pytest.mark.parametrize("name", ["port", "drain_timeout"])  # an integer, and a number
def test_a_value_that_is_not_a_number_is_refused(command: Command, name: str) -> None:
    for value in ("nan", "inf", "many", ""):
        words = command.fail("serve", option(name), value, status=2)
        assert words.startswith(f"Invalid value for '{option(name)}'")


@pytest.mark.parametrize("port", ["+80", " 80", "8_0", "\uff18\uff10", "80.0"])
def test_an_integer_that_is_not_in_plain_digits_is_refused(command: Command, port: str) -> None:
    words = command.fail("serve", "--port", port, status=2)
    assert words.endswith(f" {port!r} is not a valid integer.")


@pytest.mark.parametrize("network", ["here", "10.0.0.1/8", "10.0.0.0/33", ""])
def test_a_trusted_proxy_that_is_not_a_network_is_refused(command: Command, network: str) -> None:
    words = command.fail("serve", "--trusted-proxy", network, status=2)
    assert words.startswith("--trusted-proxy: expected a network such as 10.0.0.0/8; ")


def test_several_processes_are_refused_without_shared_limits(command: Command) -> None:
    words = command.fail("serve", "--workers", "2", status=2)
    assert words == "--workers: more than one process needs --redis to share limits; expected 1"


@pytest.mark.parametrize(
    ("name", "url"),
    [("database", "postgresql://me:s3cret@db/shop"), ("redis", "redis://:s3cret@cache")],
)
def test_an_unknown_option_of_a_url_is_named(command: Command, name: str, url: str) -> None:
    for arguments in (("serve",), ("serve", "--check")):
        result = command(*arguments, option(name), f"{url}?cluster=true")
        assert result.exit_code == 2
        assert "unknown option 'cluster' in the URL" in result.output
        assert "s3cret" not in result.output.replace(f"{url}?", "")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_an_option_or_an_environment_variable(name: str) -> None:
    changed = {**asdict(Settings()), name: OTHERS[name]}
    assert asdict(settings_of(*as_option(name, OTHERS[name]))) == changed
    assert asdict(settings_of(**{variable(name): as_text(OTHERS[name])})) == changed


def test_an_option_overrides_its_variable() -> None:
    assert settings_of("--port", "81", PETSTORE_PORT="82").port == 81


@pytest.mark.parametrize("name", ["trusted_proxy", "allowed_origin", "webhook_network"])
def test_a_setting_with_many_values_can_be_repeated(name: str) -> None:
    first, second = "10.0.0.0/8", "fd00::/8"
    repeated = settings_of(option(name), first, option(name), second)
    assert getattr(repeated, name) == (first, second)
    listed = settings_of(**{variable(name): f"{first} {second}"})
    assert getattr(listed, name) == (first, second)
