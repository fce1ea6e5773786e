"""A form that changes something: what it showed when it was opened, and what was typed since."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from petstore.console.forms import Form, Problem, problem_of
from petstore.errors import NotFound, PetstoreError, PreconditionFailed

_OPENED = "was_"


class Difference(NamedTuple):
    """A field that somebody else has changed. ``typed`` is ``None`` if only they did."""

    field: str
    opened: str
    now: str
    typed: str | None


class Edit(NamedTuple):
    """The texts of the fields of a form, as it was opened and as it was sent."""

    opened: Mapping[str, str]
    typed: Mapping[str, str]

    @property
    def changes(self) -> dict[str, str]:
        """The fields that the person changed."""
        return {name: text for name, text in self.typed.items() if self.opened.get(name) != text}

    def differences(self, now: Mapping[str, str]) -> list[Difference]:
        """Return what others have changed since the form was opened; ``now`` has every field."""
        changes = self.changes
        return [
            Difference(name, opened, now[name], changes.get(name))
            for name, opened in self.opened.items()
            if now[name] != opened
        ]

    def over(self, base: Mapping[str, str]) -> "Edit":
        """Return the edit of a whole form: fields that were not sent are as in ``base``."""
        opened = {**base, **self.opened}
        return Edit(opened, {**opened, **self.typed})

    def whole(self, names: Sequence[str], gone: NotFound) -> dict[str, str]:
        """Return the texts of a whole form, to add anew what is ``gone``.

        Raises:
            NotFound: the form was opened without all of ``names``; it is ``gone``.
        """
        if set(self.opened) != set(names):
            raise gone
        return {**self.opened, **self.typed}

    def onto(self, now: Mapping[str, str]) -> "Edit":
        """Return the same changes of what is there ``now``: what others changed stays changed."""
        return Edit(now, {**now, **self.changes})


class Editor(NamedTuple):
    """A form as a page shows it: ``edit`` has its texts, and ``version`` what it changes.

    After a conflict it has what is there now with what the person changed of it, and
    ``differences`` say what others changed. ``problem`` is any other refusal.
    """

    edit: Edit
    version: str
    differences: Sequence[Difference] = ()
    problem: Problem | None = None


def editor(
    now: Mapping[str, str],
    tag: str,
    sent: Edit | None,
    sent_version: str,
    error: PetstoreError | None,
    labels: Mapping[str, str],
) -> Editor:
    """Return the form of a resource that is as ``now``, and whose version is ``tag``.

    ``sent`` is what was sent for ``sent_version`` and refused with ``error``; ``None`` if the form
    is only opened.
    """
    edit = unchanged(now) if sent is None else sent.over(now)
    if error is None:
        return Editor(edit, tag)
    if isinstance(error, PreconditionFailed):
        return Editor(edit.onto(now), tag, edit.differences(now))
    return Editor(edit, sent_version or tag, problem=problem_of(error, labels))


def unchanged(fields: Mapping[str, str]) -> Edit:
    """Return the form that shows ``fields``."""
    return Edit(fields, fields)


def decode_edit(form: Form, names: Sequence[str]) -> Edit:
    """Return the edit of the fields ``names``; a form may lack some."""
    return Edit(
        {name: form.line(_OPENED + name) for name in names if _OPENED + name in form.fields},
        {name: form.line(name) for name in names if name in form.fields},
    )


def undo_fields(before: Mapping[str, str], after: Mapping[str, str], tag: str) -> dict[str, str]:
    """Return the fields of a form that changes ``after``, whose version is ``tag``, back."""
    return {**before, **{_OPENED + name: text for name, text in after.items()}, "version": tag}
