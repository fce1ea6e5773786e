"""Forms that add or change a resource. Each field is described once.

From the description follow what the form shows, what was typed, the body of the operation, what
others changed meanwhile, and the form that undoes a change.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from petstore.console.forms import INSTEAD, Form, Problem, line, problem_of
from petstore.errors import InvalidBody, NotFound, PetstoreError, PreconditionFailed

Texts: TypeAlias = Mapping[str, str]
"""The texts of the fields of a form, by their names. Those of a list are joined by spaces."""

Control: TypeAlias = Literal["input", "text", "choice", "moment", "box", "boxes", "lines"]
"""How a field is filled in: a ``text`` may have line breaks, an ``input`` has none. A form does not
send a ``box`` or ``boxes`` that nobody checked."""

_OPENED = "was_"
_OWN_PASSWORD = {"current": "Your own password"}
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")


class Field(NamedTuple):
    """A field of a form.

    ``name`` is that of the member of the body. ``label`` is what pages call it; the form itself may
    say more in a ``caption``. ``show`` returns its text for a resource, or else the member is the
    text. ``parse`` returns the member of the body, ``None`` to leave it out or to remove it.
    ``attributes`` are those of an input in HTML.
    """

    name: str
    label: str
    show: Callable[[Any], str] | None = None
    parse: Callable[[str], Any] = str
    control: Control = "input"
    options: Sequence[tuple[str, str]] = ()
    hint: str = ""
    caption: str = ""
    type: str = "text"
    attributes: Mapping[str, Any] = {}

    def text_of(self, resource: Any) -> str:
        if self.show is not None:
            return self.show(resource)
        return line(getattr(resource, _in_snake_case(self.name)) or "")

    def typed(self, form: Form, prefix: str = "") -> str:
        """Return what a person typed or picked, empty if the form lacks the field."""
        name = prefix + self.name
        if not prefix and (instead := form.line(INSTEAD + name)):
            return instead
        if self.control == "text":
            return form.text(name).replace("\r\n", "\n")  # browsers send these two for each
        return words(form.all(name)) if self.control in ("boxes", "lines") else form.line(name)

    def was_in(self, form: Form) -> bool:
        return _OPENED + self.name in form.fields

    def is_in(self, form: Form) -> bool:
        """Return whether a form has the field, perhaps as boxes that nobody checked."""
        is_box = self.control in ("box", "boxes")
        return self.name in form.fields or (is_box and self.was_in(form))


class Difference(NamedTuple):
    """A field that somebody else has changed. ``typed`` is ``None`` if only they did.

    ``name`` is that of the member of the resource.
    """

    label: str
    opened: str
    now: str
    typed: str | None
    name: str


class Edit(NamedTuple):
    """The texts of the fields of a form, as it was opened and as it was sent."""

    opened: Texts
    typed: Texts

    @property
    def changes(self) -> dict[str, str]:
        return {name: text for name, text in self.typed.items() if self.opened.get(name) != text}

    def before(self, now: Texts) -> dict[str, str]:
        """Return the texts before the change, of a resource that has these ``now``."""
        return {**now, **{name: self.opened.get(name, "") for name in self.changes}}


class ShownForm(NamedTuple):
    """A form as a page shows it: what it was ``opened`` with, and what it has now.

    ``version`` is that of the resource that it changes. After a conflict it has what is there now
    with what the person changed of it, and ``differences`` say what others changed. ``problem`` is
    any other refusal.
    """

    fields: Sequence[Field]
    opened: Texts
    typed: Texts
    version: str = ""
    problem: Problem | None = None
    is_conflict: bool = False
    differences: Sequence[Difference] = ()

    @property
    def is_changed(self) -> bool:
        return any(self.typed[name] != text for name, text in self.opened.items())


class FieldSet:
    """The fields of a form."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def only(self, *names: str) -> "FieldSet":
        named = {field.name: field for field in self.fields}
        return FieldSet(*(named[name] for name in names))

    def texts(self, resource: Any) -> dict[str, str]:
        return {field.name: field.text_of(resource) for field in self.fields}

    def typed(self, form: Form) -> dict[str, str]:
        """Return the texts of a form that adds a resource, or that finds some."""
        return {field.name: field.typed(form) for field in self.fields}

    def edit(self, form: Form) -> Edit:
        """Return what a form that changes a resource has; it may lack some fields."""
        fields = self.fields
        return Edit(
            {each.name: each.typed(form, _OPENED) for each in fields if each.was_in(form)},
            {each.name: each.typed(form) for each in fields if each.is_in(form)},
        )

    def body(self, texts: Texts) -> dict[str, Any]:
        return {name: value for name, value in self.values(texts).items() if value is not None}

    def patch(self, form: Form) -> dict[str, Any]:
        return self.values(self.edit(form).changes)

    def require_unchanged(self, form: Form, resource: Any) -> None:
        """Refuse to change a resource that is not as the form was opened.

        This is for resources whose version changes as they are used.
        """
        if self._differences(self.edit(form), self.texts(resource)):
            msg = "somebody else changed this since the form was opened"
            raise PreconditionFailed(msg)

    @property
    def labels(self) -> dict[str, str]:
        return {field.name: field.label for field in self.fields}

    def problem(self, error: PetstoreError | None) -> Problem | None:
        return None if error is None else problem_of(error, self.labels | _OWN_PASSWORD)

    def new(
        self, sent: Form, error: PetstoreError | None = None, defaults: Texts | None = None
    ) -> ShownForm:
        """Return the form of a new resource, and why it was refused.

        What the address does not have is as the ``defaults``.
        """
        typed = self.typed(sent)
        if error is None and defaults:
            typed |= {name: text for name, text in defaults.items() if name not in sent.fields}
        return ShownForm(self.fields, typed, typed, problem=self.problem(error))

    def anew(self, sent: Form, gone: NotFound) -> ShownForm:
        """Return a form that changed what is ``gone`` as one that adds it anew."""
        edit = self.edit(sent)
        if len(edit.opened) < len(self.fields) or not edit.opened.keys() & sent.fields.keys():
            raise NotFound(gone.message)
        typed = {**edit.opened, **edit.typed}
        return ShownForm(self.fields, typed, typed)

    def shown(self, now: Texts, version: str, sent: Form, error: PetstoreError | None) -> ShownForm:
        """Return the form of a resource that is as ``now``.

        ``sent`` was refused with the ``error``, if there is one.
        """
        if error is None:
            return ShownForm(self.fields, now, now, version)
        edit = self.edit(sent)
        if isinstance(error, PreconditionFailed):
            typed, differences = {**now, **edit.changes}, self._differences(edit, now)
            return ShownForm(
                self.fields, now, typed, version, is_conflict=True, differences=differences
            )
        opened = {**now, **edit.opened}
        typed, version = {**opened, **edit.typed}, sent.text("version") or version
        return ShownForm(self.fields, opened, typed, version, self.problem(error))

    def values(self, texts: Texts) -> dict[str, Any]:
        """Return what the body of an operation has for texts, or why a text has no meaning."""
        named = {field.name: field for field in self.fields}
        return {name: _value(named[name], text) for name, text in texts.items()}

    def _differences(self, edit: Edit, now: Texts) -> list[Difference]:
        """Return what others have changed since the form was opened."""
        changes = edit.changes
        return [
            Difference(field.label, opened, now[field.name], changes.get(field.name), field.name)
            for field in self.fields
            if (opened := edit.opened.get(field.name, now[field.name])) != now[field.name]
        ]


def _value(field: Field, text: str) -> Any:
    try:
        return field.parse(text)
    except InvalidBody as error:  # the operation refuses it, with all others
        return error


def choice(name: str, label: str, *options: tuple[str, str], **others: Any) -> Field:
    return Field(name, label, control="choice", options=options, **others)


def undo_fields(before: Texts, after: Texts, version: str = "") -> dict[str, str]:
    """Return the fields of a form that changes ``after``, whose version is this one, back."""
    return {**before, **{_OPENED + name: text for name, text in after.items()}, "version": version}


def optional(text: str) -> str | None:
    return text or None


def utc_moment(typed: str) -> str | None:
    """Return a typed moment as the interface takes it. Without a zone it is in UTC."""
    if _WITHOUT_ZONE.fullmatch(typed) is None:
        return typed or None
    return f"{typed}{':00' if typed.count(':') == 1 else ''}Z"


def words(texts: Iterable[str]) -> str:
    """Return the words in the texts of a list as the text of its field."""
    return " ".join(sorted({word for text in texts for word in text.split()}))


def _in_snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
