"""How a command says what went wrong: one line, never a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from petstore.errors import PetstoreError
from petstore.settings import SettingError


@contextmanager
def plain_failures() -> Iterator[None]:
    """Turn the errors a user can cause or meet into a line on standard error, and exit 1."""
    try:
        yield
    except PetstoreError as error:
        raise click.ClickException(error.message) from error
    except SettingError as error:
        raise click.UsageError(f"--{error}") from error
    except OSError as error:
        raise click.ClickException(str(error)) from error
