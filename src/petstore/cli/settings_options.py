"""The settings as options of a command."""

import types
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from petstore.cli.option_types import Integer, Number, SecretOption
from petstore.settings import SettingError, Settings

Command = TypeVar("Command", bound=Callable[..., Any])

SECTIONS = {
    "Where it listens": ("host", "port", "metrics_port", "trusted_proxy", "allowed_origin"),
    "Store": (
        *("database", "read_database", "redis", "database_connections", "database_timeout"),
        *("environment", "strict_categories", "reservation_minutes"),
    ),
    "Processes": ("workers", "pid_file", "shutdown_timeout", "drain_timeout"),
    "Logs and traces": (
        *("log_format", "log_level", "log_health_checks", "omit_addresses", "trace_endpoint"),
    ),
    "Limits of requests": (
        *("anonymous_per_minute", "address_table", "usage_per_minute"),
        *("key_refresh_seconds", "limits_save_seconds"),
    ),
    "Bans": (
        *("ban_strikes", "ban_strikes_divisor", "ban_grace_seconds", "ban_window_seconds"),
        *("ban_seconds", "ban_max_seconds", "ban_decay_seconds"),
    ),
    "Connections and messages": (
        *("connections", "connections_per_address", "buffer_bytes"),
        *("header_timeout", "body_timeout", "body_bytes"),
    ),
}
"""The settings by the sections of the help that their options stand in."""


database_option = click.option(
    "--database",
    cls=SecretOption,
    envvar="PETSTORE_DATABASE",
    show_envvar=True,
    default=Settings.database,
    show_default=True,
    metavar="URL",
    help="The store: sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/name.",
)


def settings_options(command: Command) -> Command:
    """Give ``command`` an option for every setting."""
    hints = get_type_hints(Settings)
    for setting in reversed(fields(Settings)):
        name = setting.name.replace("_", "-")
        hint = hints[setting.name]
        multiple = get_origin(hint) is tuple
        # `serve` writes the warning of a secret to its log.
        secret: dict[str, Any] = {"cls": SecretOption, "warns": False}
        option = click.option(
            f"--{name}",
            setting.name,
            is_flag=hint is bool,
            envvar=f"PETSTORE_{setting.name.upper()}",
            show_envvar=True,
            default=setting.default,
            show_default=not multiple,
            multiple=multiple,
            type=None if hint is bool else _type(hint, setting.metadata),
            help=setting.metadata["description"],
            **(secret if setting.metadata["secret"] else {}),
        )
        command = option(command)
    return command


def settings_from_environment() -> Settings:
    """Return the settings that the environment gives, where no command line is read.

    Raises:
        SettingError: a variable is mistyped or its value is not valid, or they do not fit together.
    """
    from petstore.cli.main import main, refuse_mistyped

    @click.command()
    @settings_options
    @click.pass_context
    def read(ctx: click.Context, /, **values: Any) -> Settings:
        refuse_mistyped(ctx, main)
        return Settings(**values)

    try:
        settings: Settings = read.main([], standalone_mode=False)
    except click.ClickException as error:
        raise SettingError(error.format_message()) from None
    settings.check()
    return settings


def warnings_of(ctx: click.Context) -> list[str]:
    """Return a warning for each password on the command line."""
    options = [option for option in ctx.command.params if isinstance(option, SecretOption)]
    warnings = (option.warning(ctx, ctx.params[str(option.name)]) for option in options)
    return [warning for warning in warnings if warning]


def _type(hint: Any, metadata: types.MappingProxyType[Any, Any]) -> click.ParamType[Any]:
    if hint is int:
        return Integer(metadata["ge"], metadata["le"])
    if hint is float:
        return Number(metadata["ge"], metadata["le"])
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return click.STRING
