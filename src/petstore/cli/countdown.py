"""Waiting, in view of whoever waits."""

import sys
from collections.abc import Callable
from typing import TypeAlias

import click

Sleep: TypeAlias = Callable[[float], object]

_CLEAR_LINE = "\r\x1b[K"


def wait(seconds: int, reason: str, sleep: Sleep) -> None:
    """Sleep so long: on a terminal count down in one line, elsewhere say so once."""
    if not sys.stderr.isatty():
        click.echo(f"{reason} Trying again in {seconds} s.", err=True)
        sleep(seconds)
        return
    try:
        for left in range(seconds, 0, -1):
            text = f"{_CLEAR_LINE}{reason} Trying again in {left} s"
            click.echo(text, nl=False, err=True)
            sleep(1)
    finally:
        click.echo(_CLEAR_LINE, nl=False, err=True)
