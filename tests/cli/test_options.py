"""Every setting is an option and an environment variable; a secret may be in a file."""

from dataclasses import Field, asdict, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import pytest
from click.testing import CliRunner

from petstore.cli.options import settings_options
from petstore.settings import Settings
from support.command import Command
from support.process import ServerProcess
from support.shop import Shop

NUMBERS = [setting for setting in fields(Settings) if setting.metadata["ge"] is not None]


def another(setting: Field[Any]) -> Any:
    """Return a value that is not the default."""
    hint = get_type_hints(Settings)[setting.name]
    if setting.metadata["ge"] is not None:
        low, high = setting.metadata["ge"], setting.metadata["le"]
        return high if low == setting.default else low
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != setting.default)
    text = "sqlite:///another" if setting.name == "database" else "another"
    return {bool: True, str: text}.get(hint, ("another",))


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return f"PETSTORE_{name.upper()}"


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


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_a_number_outside_its_range_is_refused_naming_the_option_or_variable(
    command: Command, setting: Field[Any]
) -> None:
    named = option(setting.name)
    for value in (f"{setting.metadata['ge'] - 1:g}", f"{setting.metadata['le'] + 1:.0f}"):
        words = command.fail("serve", named, value, status=2)
        assert words.startswith(f"Invalid value for '{named}'")
        assert "\n" not in words
        in_environment = {variable(setting.name): value}
        assert f"'{variable(setting.name)}'" in command.fail("serve", status=2, **in_environment)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, text)
            for name in ("--port", "--drain-timeout")
            for text in ("nan", "inf", "x", "")
        ),
        ("--port", "80.0"),
    ],
)
def test_a_value_that_is_not_a_number_is_refused(command: Command, name: str, value: str) -> None:
    assert command.fail("serve", name, value, status=2).startswith(f"Invalid value for '{name}'")


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


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_every_setting_can_be_an_option_or_an_environment_variable(setting: Field[Any]) -> None:
    value = another(setting)
    changed = {**asdict(Settings()), setting.name: value}
    text = value[0] if isinstance(value, tuple) else str(value)
    named = [option(setting.name)] if value is True else [option(setting.name), text]
    assert asdict(settings_of(*named)) == changed
    assert asdict(settings_of(**{variable(setting.name): text})) == changed


def test_an_option_overrides_its_variable() -> None:
    assert settings_of("--port", "81", PETSTORE_PORT="82").port == 81


@pytest.mark.parametrize("name", ["trusted_proxy", "allowed_origin", "webhook_network"])
def test_a_setting_with_many_values_can_be_repeated(name: str) -> None:
    first, second = "10.0.0.0/8", "fd00::/8"
    assert getattr(settings_of(option(name), first, option(name), second), name) == (first, second)
    assert getattr(settings_of(**{variable(name): f"{first} {second}"}), name) == (first, second)


# Secrets in files, and unknown names


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"one\ntwo\n", b"\xff\xfe", b"a\0b", b"long" * 20_000, None]
)
def test_a_secret_file_that_cannot_be_used_is_refused_and_named(
    command: Command, tmp_path: Path, content: bytes | None
) -> None:
    secret = tmp_path / "secret"
    reason = "expected one line, the value of PETSTORE_DATABASE"
    if content is None:
        reason = "No such file or directory"
    else:
        secret.write_bytes(content)
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    words = command.fail("keys", "list", status=2, **files)
    assert words == f"PETSTORE_DATABASE_FILE: {secret}: {reason}"


def test_a_secret_that_is_given_twice_is_refused(command: Command) -> None:
    words = command.fail("keys", "list", status=2, PETSTORE_DATABASE_FILE="secret")
    assert words == "PETSTORE_DATABASE and PETSTORE_DATABASE_FILE are both set; expected only one"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_database_and_a_key_can_be_in_a_file(
    command: Command, server: ServerProcess, token: str, tmp_path: Path, end: str
) -> None:
    command.make_store()
    secret = tmp_path / "secret"
    secret.write_text(f"sqlite:///{command.database}{end}", newline="")
    files = {"PETSTORE_DATABASE": "", "PETSTORE_DATABASE_FILE": str(secret)}
    assert command.succeed("keys", "list", "--json", **files) == "[]\n"
    secret.write_text("sqlite:///nowhere.db")  # an option overrides it
    assert command.succeed("keys", "list", "--json", "--database", command.url, **files) == "[]\n"
    secret.write_text(f"{token}{end}", newline="")
    shop = Shop(server.url, "")
    assert shop.succeed("pets", "list", "--json", PETSTORE_KEY_FILE=str(secret)).startswith("[")


@pytest.mark.parametrize(
    ("arguments", "option", "variable"),
    [
        (("keys", "list"), "--database", "PETSTORE_DATABASE_FILE"),
        (("copy", "--from", "sqlite:///x.db"), "--to", "PETSTORE_TO_FILE"),
        (("serve", "--workers", "2"), "--database", "PETSTORE_DATABASE_FILE"),
    ],
)
def test_a_password_on_the_command_line_causes_a_warning(
    command: Command, arguments: tuple[str, ...], option: str, variable: str
) -> None:
    url = "postgresql://me:geheim@127.0.0.1:1/shop"
    assert "Warning" not in command(*arguments, **{variable.removesuffix("_FILE"): url}).output
    result = command(*arguments, option, url)
    assert result.stderr.startswith(
        f"Warning: {option}: others on this machine can read a password on the command line; put"
        f" the value into a file and name that in {variable}\n"
    )
    assert "geheim" not in result.output


def test_every_command_refuses_an_unknown_variable(command: Command) -> None:
    mistyped = {f"PETSTORE_{name}": "1" for name in ("XYZZY", "PROT", "HOST_FILE")}
    for arguments in (("serve",), ("keys", "list"), ("pets", "list")):
        assert command.fail(*arguments, status=2, **mistyped) == (
            "no such environment variable: PETSTORE_HOST_FILE, PETSTORE_PROT, PETSTORE_XYZZY; see"
            " petstore serve --help"
        )
