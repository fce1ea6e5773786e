"""How ``petstore serve`` says that it cannot start: as its log would."""

import logging
from typing import Any, NoReturn

import click

from petstore.cli.settings_options import SECTIONS
from petstore.logs import Event, is_for_person, record_text


class ServeCommand(click.Command):
    """A command whose help has its settings in sections.

    It fails with a line of its log, where the log is JSON.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that are no settings, then a section for each kind of setting."""
        records = {
            parameter.name: record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx))
        }
        settings = {title: [records.pop(name) for name in SECTIONS[title]] for title in SECTIONS}
        for title, rows in ({"Options": [*records.values()]} | settings).items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments.

        Raises:
            click.ClickException: one is not what it should be, and the log is for a person.
            click.exceptions.Exit: so it is, and the log has a line.
        """
        given = [*args]  # parsing takes them
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            self.refuse(error, info_name, given, parent)

    def refuse(
        self,
        error: click.ClickException,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None,
    ) -> NoReturn:
        """Fail before the arguments are parsed, for what ``error`` says.

        Raises:
            click.ClickException: the log is for a person.
            click.exceptions.Exit: it is not, and the log has a line.
        """
        lenient = click.Context(self, parent, info_name, resilient_parsing=True)
        self.parse_args(lenient, [*args])
        _fail(error, lenient)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the service.

        Raises:
            click.ClickException: it cannot start, and the log is for a person.
            click.exceptions.Exit: so it is, and the log has a line.
        """
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            _fail(error, ctx)


def _fail(error: click.ClickException, ctx: click.Context) -> NoReturn:
    # A format that is none is taken for the default, as one that was not given.
    if is_for_person(ctx.params.get("log_format") or "auto"):
        raise error
    record = {
        "name": __name__,
        "levelno": logging.ERROR,
        "levelname": "ERROR",
        "msg": Event("start_failed", error.format_message()),
    }
    click.echo(record_text(logging.makeLogRecord(record), for_person=False), err=True)
    raise click.exceptions.Exit(error.exit_code)
