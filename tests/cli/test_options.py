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
    "read_database": "postgresql://replica/store",
    "redis": "redis://localhost:6379",
    "trace_endpoint": "http://collector:4318/v1/traces",
    "metrics_port": 9000,
    "drain_timeout": 1.5,
    "environment": "staging",
    "log_format": "text",
    "log_level": "warning",
    "log_health_checks": True,
    "omit_addresses": True,
    "pid_file": "petstore.pid",
    "public_url": "https://api.shop.example",
    "security_contact": ("mailto:security@shop.example",),
    "trusted_proxy": ("10.0.0.0/8",),
    "allowed_origin": ("https://shop.example",),
    "webhook_network": ("10.0.0.0/8",),
    "secret_file": "/run/secrets/petstore",
    "no_deliveries": True,
    "strict_categories": True,
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


def outside(low: float, high: float) -> list[str]:
    return ["nan", "inf", "many", "", f"{low - 1:g}", f"{high + 1:.0f}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, low, high in RANGES for value in outside(low, high)],
)
def test_a_number_outside_its_range_is_refused_by_the_name_of_its_option(
    command: Command, name: str, value: str
) -> None:
    words = command.fail("serve", option(name), value, status=2)
    assert words.startswith(f"Invalid value for '{option(name)}'")
    assert "\n" not in words


@pytest.mark.parametrize(("name", "high"), [(name, high) for name, _, high in RANGES])
def test_a_variable_outside_its_range_is_refused_by_its_name(
    command: Command, name: str, high: float
) -> None:
    words = command.fail("serve", status=2, **{variable(name): f"{high + 1:.0f}"})
    assert f"'{variable(name)}'" in words


@pytest.mark.parametrize("name", ["environment", "log_level"])
def test_an_invalid_choice_is_refused(command: Command, name: str) -> None:
    words = command.fail("serve", option(name), "other", status=2)
    assert words.startswith(f"Invalid value for '{option(name)}'")


@pytest.mark.parametrize("network", ["here", "10.0.0.1/8", "10.0.0.0/33", ""])
def test_a_trusted_proxy_that_is_no_network_is_refused(command: Command, network: str) -> None:
    words = command.fail("serve", "--trusted-proxy", network, status=2)
    assert words.startswith("--trusted-proxy: expected a network such as 10.0.0.0/8; ")


def test_several_processes_are_refused_until_they_can_share_limits(command: Command) -> None:
    words = command.fail("serve", "--workers", "2", status=2)
    assert words == "--workers: more than one process needs --redis to share limits; expected 1"


def test_an_option_that_does_not_exist_is_refused(command: Command) -> None:
    assert command.fail("serve", "--prot", "80", status=2).startswith("No such option '--prot'")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_in_the_help(command: Command, name: str) -> None:
    help_text = " ".join(command.succeed("serve", "--help").split())
    assert f" {option(name)} " in help_text
    assert f"[env var: {variable(name)}" in help_text


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_an_option(name: str) -> None:
    changed = settings_of(*as_option(name, OTHERS[name]))
    assert asdict(changed) == {**asdict(Settings()), name: OTHERS[name]}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_an_environment_variable(name: str) -> None:
    changed = settings_of(**{variable(name): as_text(OTHERS[name])})
    assert asdict(changed) == {**asdict(Settings()), name: OTHERS[name]}


def test_an_option_counts_more_than_its_variable() -> None:
    assert settings_of("--port", "81", PETSTORE_PORT="82").port == 81


@pytest.mark.parametrize("name", ["trusted_proxy", "allowed_origin", "webhook_network"])
def test_a_setting_of_many_values_may_be_repeated(name: str) -> None:
    first, second = "10.0.0.0/8", "fd00::/8"
    repeated = settings_of(option(name), first, option(name), second)
    assert getattr(repeated, name) == (first, second)
    listed = settings_of(**{variable(name): f"{first} {second}"})
    assert getattr(listed, name) == (first, second)


def test_without_any_option_the_defaults_hold() -> None:
    assert settings_of() == Settings()
