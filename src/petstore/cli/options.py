"""Options and variables that commands share: their types, secrets, and one for each setting."""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from petstore.clock import SECOND, Milliseconds
from petstore.domain.decoding import integer_in, moment_in, number_or_text
from petstore.errors import InvalidBody
from petstore.keys.model import LONGEST_LIFE
from petstore.settings import SECTIONS, SettingError, Settings, check_database, masked

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}

KEY = "PETSTORE_KEY"
"""The variable with the API key of a client; there is no option for it."""

_PREFIX = "PETSTORE_"
_LARGEST_SECRET = 64 * 1024


def file_variable(variable: str) -> str:
    return f"{variable}_FILE"


def read_secret(variable: str) -> str | None:
    """Return the value of ``variable``, or of the file that ``<variable>_FILE`` names."""
    value, file = os.environ.get(variable), os.environ.get(file_variable(variable))
    if not file:
        return value or None
    if value:
        msg = f"{variable} and {file_variable(variable)} are both set; expected only one"
        raise click.UsageError(msg)
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_LARGEST_SECRET + 1)
            text = content.decode().rstrip("\r\n")
    except OSError as error:
        raise click.UsageError(f"{file_variable(variable)}: {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        text = ""
    if not (text and text.isprintable() and len(content) <= _LARGEST_SECRET):
        msg = f"{file_variable(variable)}: {file}: expected one line, the value of {variable}"
        raise click.UsageError(msg)
    return text


def _variables_of(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        variables = parameter.envvar or ()
        yield from (variables,) if isinstance(variables, str) else variables
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from _variables_of(part)


def refuse_mistyped(ctx: click.Context, command: click.Command) -> None:
    """Refuse variables named ``PETSTORE_…`` that no part of ``command`` reads."""
    known = {*_variables_of(command), KEY, file_variable(KEY)}
    unknown = sorted(name for name in os.environ if name.startswith(_PREFIX) and name not in known)
    if unknown:
        msg = f"no such environment variable: {', '.join(unknown)}; see petstore serve --help"
        raise click.UsageError(msg, ctx)


class Integer(click.IntRange):
    name = "integer"  # in messages; click would call it an integer range


class Amount(Integer):
    """An amount of money as the interface has it, in the smallest unit of the currency."""

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, str) and (parts := re.fullmatch(r"([0-9]+)[.,]([0-9]{2})", value)):
            whole = int("".join(parts.groups()))
            self.fail(
                f"expected the smallest unit, such as cents: {whole} for {value}.", param, ctx
            )
        return super().convert(value, param, ctx)


ID = Integer(1, 2**63 - 1)


class Number(click.FloatRange):
    """A number within a range. NaN is not, though it compares as if it were."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


class Parsed(click.ParamType[Any]):
    """What ``parse`` makes of a text. It returns ``None`` for one that is not as ``expected``."""

    def __init__(self, name: str, parse: Callable[[str], Any], expected: str) -> None:
        self.name, self._parse, self._expected = name, parse, expected

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            parsed = self._parse(value)
        except InvalidBody as error:
            self.fail(error.message.partition(": ")[2], param, ctx)
        except ValueError:
            parsed = None
        if parsed is None:
            self.fail(f"{value!r}: expected {self._expected}.", param, ctx)
        return parsed


def _utf8(value: str) -> str:
    value.encode()
    return value


TEXT = Parsed("text", _utf8, "text in UTF-8")
CATEGORY = Parsed("category", lambda text: number_or_text(_utf8(text)), "text in UTF-8")
MOMENT = Parsed("time", moment_in, "a date and time such as 2026-12-24T10:00:00Z")
DAY = Parsed("date", date.fromisoformat, "a date such as 2026-12-24")


def duration(
    min_seconds: int = 0, max_seconds: int = LONGEST_LIFE // SECOND
) -> click.ParamType[Milliseconds]:
    """Return the type of durations within a range, such as 30d; in milliseconds."""

    def parse(value: str) -> Milliseconds | None:
        number, unit = integer_in(value[:-1]), _UNITS.get(value[-1:])
        seconds = -1 if number is None or unit is None else number * unit
        return seconds * SECOND if min_seconds <= seconds <= max_seconds else None

    return Parsed(
        "duration",
        parse,
        "a number and a unit (s, m, h, d or w), such as 30d,"
        f" from {min_seconds}s to {duration_text(max_seconds)}",
    )


def duration_text(seconds: int) -> str:
    """Return a number of seconds in the largest unit that divides it, such as 1d."""
    return next(f"{seconds // each}{unit}" for unit, each in _UNITS.items() if not seconds % each)


class SecretOption(click.Option):
    """Its value may be in a file. It warns of a password on the command line."""

    def __init__(self, *names: Any, envvar: str, **options: Any) -> None:
        variables = [envvar, file_variable(envvar)]
        super().__init__(*names, **options | {"envvar": variables, "show_envvar": True})
        self._variable = envvar

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        # A shell that completes a line shows no errors.
        return None if ctx.resilient_parsing else read_secret(self._variable)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        is_typed = ctx.get_parameter_source(str(self.name)) is ParameterSource.COMMANDLINE
        if is_typed and not ctx.resilient_parsing and masked(value) != value:
            click.echo(
                f"Warning: {self.opts[0]}: others on this machine can read a password on the"
                " command line; put the value into a file and name that in"
                f" {file_variable(self._variable)}",
                err=True,
            )
        return super().process_value(ctx, value)

    @property
    def source(self) -> str:
        file = os.environ.get(file_variable(self._variable))
        return f"file {file}" if file else "environment"


def database_url(value: str) -> str:
    try:
        check_database(value)
    except SettingError as error:
        raise click.BadParameter(str(error).removeprefix("database: ")) from None
    return value


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class SettingsCommand(click.Command):
    """A command with options for settings: its help has a section for each kind of them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        title_of, title = {}, "Options"
        for setting in fields(Settings):
            title = title_of[setting.name] = SECTIONS.get(setting.name, title)
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                title = title_of.get(str(parameter.name), "Options")
                sections.setdefault(title, []).append(record)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def settings_options(*names: str, **texts: str) -> Callable[[Command], Command]:
    """``texts`` are further names, with the help that their options have in place of the usual."""
    hints = get_type_hints(Settings)
    wanted = {*names, *texts} or hints

    def decorate(command: Command) -> Command:
        for setting in reversed(fields(Settings)):
            if setting.name in wanted:
                text = texts.get(setting.name, setting.metadata["description"])
                command = _setting_option(setting, hints[setting.name], text)(command)
        return command

    return decorate


def _setting_option(setting: Field[Any], hint: Any, text: str) -> Callable[[Command], Command]:
    multiple = get_origin(hint) is tuple
    is_secret = setting.metadata["secret"]
    secret: dict[str, Any] = {"cls": SecretOption, "metavar": "URL"} if is_secret else {}
    return click.option(
        f"--{setting.name.replace('_', '-')}",
        is_flag=hint is bool,
        envvar=f"PETSTORE_{setting.name.upper()}",
        show_envvar=True,
        default=setting.default,
        show_default=setting.default not in ("", ()),
        multiple=multiple,
        type=database_url if setting.name == "database" else _type(hint, setting.metadata),
        help=text,
        **secret,
    )


def _type(hint: Any, metadata: Mapping[str, Any]) -> click.ParamType[Any] | None:
    if hint is bool:
        return None
    if hint is int:
        return Integer(metadata["ge"], metadata["le"])
    if hint is float:
        return Number(metadata["ge"], metadata["le"])
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return click.STRING


database_option = settings_options("database")
