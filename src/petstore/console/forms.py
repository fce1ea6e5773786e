"""Forms as browsers send them, what is wrong with one, and one that is kept to be sent again."""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import parse_qs

import multipart

from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import ContentTooLarge, InvalidBody, PetstoreError, UnsupportedMediaType
from petstore.time_slices import TimeSlices

_URLENCODED = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_MAX_FIELDS = 200
# Decoding more takes long, and is in memory. What is larger has a file, and is multipart.
_MAX_TEXT = 131_072
_PIECE = 65_536
# The name of a field begins the message of most errors.
_FIELD = re.compile(r"([A-Za-z]+): (.+)", re.DOTALL)
INSTEAD = "instead_"
"""What the name of a button begins with whose value counts in place of what its field has."""

_MAX_ADDRESS = 2000
# A page of the console, as its own links name it: no dots, no second slash, no other site.
_ADDRESS = re.compile(r"(?:/[A-Za-z0-9_-]+)+(?:\?[!-\[\]-~]*)?\Z")
_PREFIX = "typed."
_PATH = "again"
# What a form has for the service, beside what a person types.
_UNSEEN = re.compile(r"once|again|version|seen|until|back|chosen|was_.*")
_BREAKS = {ord("\r"): None, ord("\n"): None}


def line(text: str) -> str:
    """Return a text as an input of one line shows it: without line breaks (HTML, 4.10.5.1.2)."""
    return text.translate(_BREAKS).strip()


def typed_id(text: str) -> int | None:
    """Return the id that a person typed, ``None`` if nothing can have it. Zeros may lead it."""
    number = integer_in(text)
    return number if number is not None and 0 < number <= INT64_MAX else None


def number_or_text(text: str) -> int | str:
    """Return the integer that a person typed; other text stays, and will be refused."""
    number = integer_in(text)
    return text if number is None else number


class UploadedFile(NamedTuple):
    """A file that came with a form; its ``content`` is in a temporary file."""

    field: str
    name: str
    content: BinaryIO

    @property
    def size(self) -> int:
        return self.content.seek(0, 2)


class Form(NamedTuple):
    """The fields of a form, or of the query of an address, and the file that came with it."""

    fields: Mapping[str, Sequence[str]]
    file: UploadedFile | None = None

    def text(self, name: str) -> str:
        """Return the first value of a field without white space around it, empty if absent."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """Return the first value of a field as it was sent, empty if absent."""
        values = self.fields.get(name)
        return values[0] if values else ""

    def line(self, name: str) -> str:
        """Return the first value of a field as an input of one line shows it."""
        return line(self.raw(name))

    def all(self, name: str) -> Sequence[str]:
        return self.fields.get(name, ())


EMPTY = Form({})


class Problem(NamedTuple):
    """What is wrong with a form, in words for a person. ``field`` is empty if it is all of it.

    ``label`` is what the page calls the field. ``ways`` are buttons that mend it: each has a name
    and a value, which the form then has, and a text. ``others`` are what else is wrong.
    """

    field: str
    text: str
    label: str = ""
    ways: Sequence[tuple[str, str, str]] = ()
    others: Sequence["Problem"] = ()

    @property
    def all(self) -> Sequence["Problem"]:
        return (self, *self.others)

    def about(self, field: str) -> "Problem | None":
        return next((each for each in self.all if each.field == field), None)

    def changed(self, field: str, **changes: Any) -> "Problem":
        """Return the same, but for what is told about a field."""
        problems = [each._replace(others=()) for each in self.all]
        first, *others = (
            each._replace(**changes) if each.field == field else each for each in problems
        )
        return first._replace(others=tuple(others))


_NO_LABELS: Mapping[str, str] = {}


def problem_of(error: PetstoreError, labels: Mapping[str, str] = _NO_LABELS) -> Problem:
    """Return what an error of an operation says about a form.

    ``labels`` are what the page calls its fields, in their order; others get their name as words.
    """
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
    """Decode a query or a body (application/x-www-form-urlencoded, URL standard)."""
    _check_size(len(encoded))
    try:
        fields = parse_qs(
            encoded.decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=_MAX_FIELDS,
            errors="replace",
        )
    except ValueError:
        msg = f"the form: expected at most {_MAX_FIELDS} fields"
        raise InvalidBody(msg) from None
    return Form(fields)


async def decode_form(content_type: str, body: BinaryIO, opened: ExitStack) -> Form:
    """Decode the body of a form (URL standard, RFC 7578), in slices that let others in.

    The end of ``opened`` closes its file.
    """
    media_type, options = multipart.parse_options_header(content_type)
    if media_type == _URLENCODED:
        return decode_urlencoded(body.read(_MAX_TEXT + 1))
    if media_type != _MULTIPART or "boundary" not in options:
        msg = f"Content-Type: expected {_URLENCODED} or {_MULTIPART}"
        raise UnsupportedMediaType(msg)
    parts = _Parts(opened)
    slices = TimeSlices()
    try:
        with multipart.PushMultipartParser(
            options["boundary"], max_segment_count=_MAX_FIELDS, strict=True
        ) as parser:
            while piece := body.read(_PIECE):
                for event in parser.parse(piece):
                    parts.take(event)
                await slices.rest()
    except multipart.MultipartError:
        msg = "the form: expected a complete multipart body"
        raise InvalidBody(msg) from None
    return parts.form()


class _Parts:
    """The parts of a multipart form so far: texts in memory, and one file on the disk."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._texts: list[tuple[str, bytearray]] = []
        self._file: UploadedFile | None = None
        self._is_file = False
        self._size = 0

    def take(self, event: multipart.MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, multipart.MultipartSegment):
            self._begin(event.name or "", event.filename)
        elif event and self._is_file:
            assert self._file is not None  # noqa: S101 - the part has begun
            self._file.content.write(event)
        elif event:
            self._size += len(event)
            _check_size(self._size)
            self._texts[-1][1].extend(event)

    def form(self) -> Form:
        fields: dict[str, list[str]] = {}
        for name, content in self._texts:
            fields.setdefault(name, []).append(content.decode("utf-8", "replace"))
        return Form(fields, self._file)

    def _begin(self, name: str, filename: str | None) -> None:
        self._is_file = filename is not None
        if filename is None:
            self._texts.append((name, bytearray()))
            return
        if self._file is not None:
            msg = "the form: expected one file"
            raise InvalidBody(msg)
        content = cast("BinaryIO", self._opened.enter_context(TemporaryFile()))  # noqa: SIM115
        self._file = UploadedFile(name, filename, content)


def _check_size(size: int) -> None:
    if size > _MAX_TEXT:
        msg = f"the form: expected at most {_MAX_TEXT} bytes"
        raise ContentTooLarge(msg)


def in_words(name: str) -> str:
    """Return the name of a field as words: ``categoryId`` is "Category id"."""
    return re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", name).capitalize()


class PendingForm(NamedTuple):
    """A form to send again: the page that takes it, relative to the console, and its fields."""

    path: str
    fields: tuple[tuple[str, str], ...]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        return [(_PATH, self.path), *((_PREFIX + name, value) for name, value in self.fields)]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The fields that mean something to the person."""
        return [
            (in_words(name), value)
            for name, value in self.fields
            if value and not _UNSEEN.fullmatch(name)
        ]


def again_of(path: str, form: Form) -> PendingForm:
    """Return a form as it arrived, to be sent again; it keeps no password."""
    return PendingForm(path, tuple(each for each in _pairs(form) if each[0] != "current"))


def kept_in(form: Form) -> PendingForm | None:
    path = page_address(form.text(_PATH))
    if not path:
        return None
    fields = ((name, value) for name, value in _pairs(form) if name.startswith(_PREFIX))
    return PendingForm(path, tuple((name.removeprefix(_PREFIX), value) for name, value in fields))


def page_address(address: str) -> str:
    """Return the address of a page, relative to the console; empty if it leads elsewhere."""
    is_page = len(address) <= _MAX_ADDRESS and _ADDRESS.match(address) is not None
    return address if is_page else ""


def _pairs(form: Form) -> list[tuple[str, str]]:
    return [(name, value) for name, values in form.fields.items() for value in values]
