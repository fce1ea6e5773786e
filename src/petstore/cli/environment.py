"""Environment variables: secrets in files, and unknown names."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

KEY = "PETSTORE_KEY"
"""The variable with the API key of a client; there is no option for it."""

_PREFIX = "PETSTORE_"
_LARGEST_SECRET = 64 * 1024
# Kubernetes sets these in a pod for each Service that is named petstore or petstore-….
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    rf"{_PREFIX}(\w+_)?"
    r"(SERVICE_(HOST|PORT(_\w+)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LINKED_PORT = re.compile(r"(tcp|udp|sctp)://")


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
        msg = f"{file_variable(variable)}: {file}: {error.strerror}"
        raise click.UsageError(msg) from error
    except UnicodeDecodeError:
        text = ""
    if not (text and text.isprintable() and len(content) <= _LARGEST_SECRET):
        msg = f"{file_variable(variable)}: {file}: expected one line, the value of {variable}"
        raise click.UsageError(msg)
    return text


def _variables_of(command: click.Command) -> Iterator[str]:
    """Yield the environment variables of a command and of its subcommands."""
    for parameter in command.params:
        variables = parameter.envvar or ()
        yield from (variables,) if isinstance(variables, str) else variables
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from _variables_of(part)


def refuse_mistyped(ctx: click.Context, command: click.Command) -> None:
    """Refuse variables named ``PETSTORE_…`` that no part of ``command`` reads.

    Variables that Kubernetes sets for Services are removed from the environment: ``PETSTORE_PORT``
    can be one of them, and is a setting.
    """
    known = {*_variables_of(command), KEY, file_variable(KEY)}
    ours = [name for name in os.environ if name.startswith(_PREFIX)]
    for name in filter(_is_service_link, ours):
        del os.environ[name]
    unknown = sorted(name for name in ours if name in os.environ and name not in known)
    if unknown:
        msg = f"no such environment variable: {', '.join(unknown)}; see petstore serve --help"
        raise click.UsageError(msg, ctx)


def _is_service_link(name: str) -> bool:
    is_port = name.endswith("_PORT") and _LINKED_PORT.match(os.environ[name])
    return bool(is_port or _SERVICE_LINK.fullmatch(name))
