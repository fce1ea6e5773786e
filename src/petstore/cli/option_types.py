"""What options take, checked and told in the words of this project."""

import math
import os
import re
from typing import Any

import click
from click.core import ParameterSource

from petstore.cli.environment import file_variable, read_secret
from petstore.clock import SECOND, Milliseconds
from petstore.domain.api_keys import LONGEST_LIFE
from petstore.settings import masked

_LONGEST_NAME = 100
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class Integer(click.IntRange):
    """An integer within a range."""

    name = "integer"


class Number(click.FloatRange):
    """A number within a range; NaN is within none, though it compares as if it were."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in ``value``."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


class Duration(click.ParamType[Milliseconds]):
    """A number and a unit, such as 30d, of at least ``least`` seconds; in milliseconds."""

    name = "duration"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Milliseconds:
        """Return the milliseconds that ``value`` names."""
        match = re.fullmatch(r"([0-9]{1,10})([smhdw])", value, re.ASCII)
        seconds = int(match[1]) * _UNITS[match[2]] if match else -1
        if not self._least <= seconds <= LONGEST_LIFE // SECOND:
            self.fail(
                f"{value!r}: expected a number and a unit (s, m, h, d or w), such as 30d,"
                f" from {self._least}s to 100 years.",
                param,
                ctx,
            )
        return seconds * SECOND


class OrWord(click.ParamType[Any]):
    """What ``other`` takes, or ``word``, which stands for none of it."""

    def __init__(self, other: click.ParamType[Any], word: str) -> None:
        self._other = other
        self._word = word
        self.name = f"{other.name}|{word}"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return ``word`` itself, or what ``other`` makes of ``value``."""
        return value if value == self._word else self._other.convert(value, param, ctx)


class SecretOption(click.Option):
    """An option whose value may hold a password, and may be in a file (see ``read_secret``).

    Unless told otherwise, it warns of a password on the command line.
    """

    def __init__(self, *names: Any, envvar: str, warns: bool = True, **options: Any) -> None:
        super().__init__(*names, envvar=[envvar, file_variable(envvar)], **options)
        self._variable = envvar
        self._warns = warns

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return what the environment says."""
        # Whoever parses after a failure wants the other options: the file may be what failed.
        return None if ctx.resilient_parsing else read_secret(self._variable)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value that ``value`` stands for."""
        processed = super().process_value(ctx, value)
        if self._warns and (warning := self.warning(ctx, processed)):
            click.echo(f"Warning: {warning}", err=True)
        return processed

    @property
    def source(self) -> str:
        """Where the value is, if it comes from the environment."""
        file = os.environ.get(file_variable(self._variable))
        return f"file {file}" if file else "environment"

    def warning(self, ctx: click.Context, value: str) -> str:
        """Return a warning of a password in ``value``, if that is on the command line; else ''."""
        source = ctx.get_parameter_source(str(self.name))
        if source is not ParameterSource.COMMANDLINE or masked(value) == value:
            return ""
        return (
            f"{self.opts[0]}: others on this machine can read a password on the command line; put"
            f" the value into a file and name that in {file_variable(self._variable)}"
        )


class KeyName(click.ParamType[str]):
    """The name of a key: something a person can read on one line."""

    name = "name"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return ``value`` if it is a name."""
        if not (1 <= len(value) <= _LONGEST_NAME and value.isprintable() and value.strip()):
            self.fail("expected 1 to 100 printable characters, not only white space.", param, ctx)
        return str(value)
