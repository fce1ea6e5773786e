"""Forms as browsers send them, the fields that pages describe once, and what is wrong with one."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qs

import multipart

from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import (
    ContentTooLarge,
    InvalidBody,
    PetstoreError,
    PreconditionFailed,
    UnsupportedMediaType,
)
from petstore.http.messages import Request

_URLENCODED = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_MAX_FIELDS = 200
# Decoding more takes long, and is in memory. What is larger has a file, and is multipart.
_MAX_TEXT = 131_072
# The name of a field begins the message of most errors.
_FIELD = re.compile(r"([A-Za-z]+): (.+)", re.DOTALL)
_MAX_ADDRESS = 2000
# A page of the console, as its own links name it: no dots, no second slash, no other site.
_ADDRESS = re.compile(r"(?:/[A-Za-z0-9_-]+)+(?:\?[!-\[\]-~]*)?\Z")
_PREFIX = "typed."
_PATH = "again"
# What a form has for the service, beside what a person types.
_UNSEEN = re.compile(r"once|again|version|seen|until|back|chosen|was_.*")
_ISOLATE, _END_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
# What would end the isolate around a text, or continue it: isolates of its own, and the ends of
# paragraphs (class B of UAX #9).
_BEYOND_ISOLATES = dict.fromkeys(range(0x2066, 0x206A), "") | dict.fromkeys(
    map(ord, "\n\r\x1c\x1d\x1e\x85\u2029"), " "
)
_BREAKS = {ord("\r"): None, ord("\n"): None, ord("\t"): " "}


def line(text: str) -> str:
    """Return a text as an input of one line shows it (HTML, 4.10.5.1.2); a tab is a blank."""
    return text.translate(_BREAKS).strip()


def isolated(text: str) -> str:
    """Return a text whose direction changes nothing around it, as ``<bdi>`` does in markup."""
    return f"{_ISOLATE}{text.translate(_BEYOND_ISOLATES)}{_END_ISOLATE}"


def typed_id(text: str) -> int | None:
    """Return the id that a person typed, ``None`` if nothing can have it. Zeros may lead it."""
    number = integer_in(text)
    return number if number is not None and 0 < number <= INT64_MAX else None


class UploadedFile(NamedTuple):
    """A file that came with a form. Another process can read it, so it is on the disk."""

    field: str
    name: str
    content: BinaryIO

    @property
    def size(self) -> int:
        return self.content.seek(0, 2)


class Form(NamedTuple):
    fields: Mapping[str, Sequence[str]]
    file: UploadedFile | None = None

    def text(self, name: str) -> str:
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        values = self.fields.get(name)
        return values[0] if values else ""

    def line(self, name: str) -> str:
        return line(self.raw(name))

    def all(self, name: str) -> Sequence[str]:
        return self.fields.get(name, ())


EMPTY = Form({})


class Problem(NamedTuple):
    """``field`` is empty if all of the form is wrong. ``others`` are what else is wrong."""

    field: str
    text: str
    label: str = ""
    others: Sequence["Problem"] = ()

    @property
    def all(self) -> Sequence["Problem"]:
        return (self, *self.others)

    def about(self, field: str) -> "Problem | None":
        return next((each for each in self.all if each.field == field), None)


def problem_of(error: PetstoreError, labels: Mapping[str, str] = {}) -> Problem:
    problems = [_problem(message, labels) for message in (error.message, *error.others)]
    order = ["", *labels]
    problems.sort(key=lambda each: order.index(each.field) if each.field in order else len(order))
    first, *others = problems
    return first._replace(others=tuple(others))


def _problem(message: str, labels: Mapping[str, str]) -> Problem:
    named = _FIELD.fullmatch(message)
    if named is None:
        return Problem("", message)
    name, text = named.groups()
    return Problem(name, text, labels.get(name) or in_words(name))


def decode_urlencoded(encoded: bytes) -> Form:
    _check_size(len(encoded))
    try:
        fields = parse_qs(
            encoded.decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=_MAX_FIELDS,
            errors="replace",
        )
    except ValueError:
        raise InvalidBody(f"the form: expected at most {_MAX_FIELDS} fields") from None
    return Form(fields)


async def decode_form(head: Request, body: BinaryIO, opened: ExitStack) -> Form:
    """Decode a body (URL standard, RFC 7578). The end of ``opened`` closes its file."""
    content_type = head.fields.get(b"content-type", b"").decode("latin-1")
    media_type, options = multipart.parse_options_header(content_type)
    if media_type == _URLENCODED:
        return decode_urlencoded(body.read(_MAX_TEXT + 1))
    if media_type != _MULTIPART or "boundary" not in options:
        raise UnsupportedMediaType(f"Content-Type: expected {_URLENCODED} or {_MULTIPART}")
    try:  # megabytes take a tenth of a second
        boundary = options["boundary"]
        parser = multipart.MultipartParser(body, boundary, part_limit=_MAX_FIELDS, strict=True)
        parts = await asyncio.to_thread(list, parser)
    except multipart.MultipartError:
        raise InvalidBody("the form: expected a complete multipart body") from None
    for part in parts:
        opened.callback(part.close)
    files = [part for part in parts if part.filename is not None]
    texts = [part for part in parts if part.filename is None]
    _check_size(sum(part.size for part in texts))
    fields: dict[str, list[str]] = {}
    for part in texts:
        fields.setdefault(part.name or "", []).append(part.raw.decode("utf-8", "replace"))
    if not files:
        return Form(fields)
    content = cast("BinaryIO", opened.enter_context(TemporaryFile()))  # noqa: SIM115
    copyfileobj(cast("BinaryIO", files[0].file), content)
    return Form(fields, UploadedFile(files[0].name or "", files[0].filename or "", content))


def _check_size(size: int) -> None:
    if size > _MAX_TEXT:
        raise ContentTooLarge(f"the form: expected at most {_MAX_TEXT} bytes")


def in_words(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", name).capitalize()


class SavedForm(NamedTuple):
    """A form to send again: the page that takes it, relative to the console, and its fields."""

    path: str
    fields: tuple[tuple[str, str], ...]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        return [(_PATH, self.path), *((_PREFIX + name, value) for name, value in self.fields)]

    @property
    def shown(self) -> list[tuple[str, str]]:
        return [
            (in_words(name), value)
            for name, value in self.fields
            if value and not _UNSEEN.fullmatch(name)
        ]


def again_of(path: str, form: Form) -> SavedForm:
    return SavedForm(path, tuple(each for each in _pairs(form) if each[0] != "current"))


def kept_in(form: Form) -> SavedForm | None:
    path = page_address(form.text(_PATH))
    if not path:
        return None
    fields = ((name, value) for name, value in _pairs(form) if name.startswith(_PREFIX))
    return SavedForm(path, tuple((name.removeprefix(_PREFIX), value) for name, value in fields))


def page_address(address: str) -> str:
    """Return the address of a page, relative to the console; empty if it leads elsewhere."""
    return address if len(address) <= _MAX_ADDRESS and _ADDRESS.match(address) else ""


def _pairs(form: Form) -> list[tuple[str, str]]:
    return [(name, value) for name, values in form.fields.items() for value in values]


Texts: TypeAlias = Mapping[str, str]
"""The texts of the fields of a form, by their names. Texts of a list are joined by spaces."""

Control: TypeAlias = Literal["input", "text", "choice", "moment", "boxes", "lines"]
"""How a field is filled in: a ``text`` may have line breaks, an ``input`` has none. A form does not
send ``boxes`` that are not checked."""

_OPENED = "was_"
_OWN_PASSWORD = {"current": "Your own password"}


class Field(NamedTuple):
    """``name`` is the field of the body, ``label`` what pages call it.

    ``show`` returns its text for a resource, or else the member is the text. ``parse`` returns the
    member of the body, ``None`` to leave it out or to remove it.
    """

    name: str
    label: str
    show: Callable[[Any], str] | None = None
    parse: Callable[[str], Any] = str
    control: Control = "input"
    options: Sequence[tuple[str, str]] = ()
    hint: str = ""
    type: str = "text"
    attributes: Mapping[str, Any] = {}

    def text_of(self, resource: Any) -> str:
        if self.show is not None:
            return self.show(resource)
        member = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", self.name)
        return line(getattr(resource, member) or "")

    def typed(self, form: Form, prefix: str = "") -> str:
        name = prefix + self.name
        if self.control == "text":
            return form.text(name).replace("\r\n", "\n")  # browsers send these two for each
        return words(form.all(name)) if self.control in ("boxes", "lines") else form.line(name)

    def was_in(self, form: Form) -> bool:
        return _OPENED + self.name in form.fields

    def is_in(self, form: Form) -> bool:
        return self.name in form.fields or (self.control == "boxes" and self.was_in(form))


class Difference(NamedTuple):
    """A field that another user has changed. ``typed`` is ``None`` if only they did."""

    label: str
    opened: str
    now: str
    typed: str | None
    name: str


class Edit(NamedTuple):
    opened: Texts
    typed: Texts

    @property
    def changes(self) -> dict[str, str]:
        return {name: text for name, text in self.typed.items() if self.opened.get(name) != text}


class ShownForm(NamedTuple):
    """After a conflict it has what is there now, with what the person changed of it.

    ``differences`` say what others changed, and ``problem`` is any other refusal.
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
    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def only(self, *names: str) -> "FieldSet":
        named = {field.name: field for field in self.fields}
        return FieldSet(*(named[name] for name in names))

    def texts(self, resource: Any) -> dict[str, str]:
        return {field.name: field.text_of(resource) for field in self.fields}

    def typed(self, form: Form) -> dict[str, str]:
        return {field.name: field.typed(form) for field in self.fields}

    def edit(self, form: Form) -> Edit:
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
        """Refuse to change a resource whose version changes as it is used, if others changed it."""
        if self._differences(self.edit(form), self.texts(resource)):
            raise PreconditionFailed("another user changed this since the form was opened")

    @property
    def labels(self) -> dict[str, str]:
        return {field.name: field.label for field in self.fields}

    def problem(self, error: PetstoreError | None) -> Problem | None:
        return None if error is None else problem_of(error, self.labels | _OWN_PASSWORD)

    def new(
        self, sent: Form, error: PetstoreError | None = None, defaults: Texts | None = None
    ) -> ShownForm:
        typed = self.typed(sent)
        if error is None and defaults:
            typed |= {name: text for name, text in defaults.items() if name not in sent.fields}
        return ShownForm(self.fields, typed, typed, problem=self.problem(error))

    def shown(self, now: Texts, version: str, sent: Form, error: PetstoreError | None) -> ShownForm:
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


GRACES = (("86400", "in 1 day"), ("604800", "in 7 days"), ("3600", "in 1 hour"), ("0", "at once"))
"""When an old token or secret ends: what the field ``graceSeconds`` has, and words for it."""


def undo_fields(before: Texts, after: Texts, version: str = "") -> dict[str, str]:
    return {**before, **{_OPENED + name: text for name, text in after.items()}, "version": version}


def optional(text: str) -> str | None:
    return text or None


def words(texts: Iterable[str]) -> str:
    return " ".join(sorted({word for text in texts for word in text.split()}))
