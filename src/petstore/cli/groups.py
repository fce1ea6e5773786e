"""Groups of commands."""

from typing import Any

import click

_WHOLE_SENTENCE = 1000


class SectionedGroup(click.Group):
    """A group whose help lists its commands in sections, in the order in which they were added."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sections: dict[str, str] = {}  # by the name of the command

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add ``commands``, and a section of the help for them."""
        for command in commands:
            self.add_command(command)
            self._sections[str(command.name)] = title

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title; commands without one come last."""
        del ctx
        others = dict.fromkeys(self.commands.keys() - self._sections.keys(), "Other commands")
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, title in {**self._sections, **others}.items():
            text = self.commands[name].get_short_help_str(_WHOLE_SENTENCE)
            sections.setdefault(title, []).append((name, text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
