"""How a command says what went wrong: one line, never a traceback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from petstore.cli.tables import printable
from petstore.errors import PetstoreError
from petstore.settings import SettingError


@contextmanager
def plain_failures() -> Iterator[None]:
    """Turn the errors a user can cause or meet into a line on standard error, and exit 1."""
    try:
        yield
    except PetstoreError as error:
        raise click.ClickException(printable(str(error))) from error
    except SettingError as error:
        msg = f"--{error}"
        raise click.UsageError(msg) from error
    except BrokenPipeError:  # whoever read our output has had enough, as `head` does
        raise
    except OSError as error:
        msg = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise click.ClickException(msg) from error


@contextmanager
def interruptible(outcome: Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C into a line that says what came of the work and how to go on, and exit 1."""
    try:
        yield
    except KeyboardInterrupt:
        msg = f"interrupted: {outcome()}"
        raise click.ClickException(printable(msg)) from None
