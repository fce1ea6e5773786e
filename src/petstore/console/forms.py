"""Forms as browsers send them, and what is wrong with one."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qs

import multipart

from petstore.domain.fields import INT64_MAX
from petstore.errors import ContentTooLarge, InvalidBody, PetstoreError, UnsupportedMediaType

_URLENCODED = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_MAX_FIELDS = 200
# Decoding more takes long. What is larger has a file, and is multipart.
_MAX_URLENCODED = 131_072
# The name of a field begins the message of most errors.
_FIELD = re.compile(r"([A-Za-z]+): (.+)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_BREAKS = {ord("\r"): None, ord("\n"): None}


def line(text: str) -> str:
    """Return a text as an input of one line shows it: without line breaks (HTML, 4.10.5.1.2)."""
    return text.translate(_BREAKS).strip()


def whole_number(text: str) -> int | None:
    """Return the integer that a person typed, ``None`` if the text is anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def typed_id(text: str) -> int | None:
    """Return the id that a person typed, ``None`` if nothing can have it. Zeros may lead it."""
    number = whole_number(text)
    return number if number is not None and 0 < number <= INT64_MAX else None


def number_or_text(text: str) -> int | str:
    """Return the integer that a person typed; other text stays, and will be refused."""
    number = whole_number(text)
    return text if number is None else number


class File(NamedTuple):
    """A file that came with a form."""

    name: str
    content: bytes


class Form(NamedTuple):
    """The fields of a form, or of the query of an address, and the files that came with it."""

    fields: Mapping[str, Sequence[str]]
    files: Mapping[str, File] = {}

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
        """Return every value of a field, such as the checked ones of several boxes."""
        return self.fields.get(name, ())


EMPTY = Form({})


class Problem(NamedTuple):
    """What is wrong with a form, in words for a person. ``field`` is empty if it is all of it.

    ``label`` is what the page calls the field.
    """

    field: str
    text: str
    label: str = ""


# What programs are told exactly, and what a person needs of it.
_PLAIN_WORDS = {
    "a string of ": "",
    ", not only white space and without U+0000": ", not only spaces",
    ", without U+0000": "",
    "an integer from -2^63 to 2^63 - 1": "a whole number of up to 18 digits",
}

NO_LABELS: Mapping[str, str] = {}


def problem_of(error: PetstoreError, labels: Mapping[str, str] = NO_LABELS) -> Problem:
    """Return what an error of an operation says about a form.

    ``labels`` are what the page calls its fields; others get their name as words.
    """
    named = _FIELD.fullmatch(error.message)
    if named is None:
        return Problem("", error.message)
    name, text = named.groups()
    return Problem(name, in_plain_words(text), labels.get(name) or in_words(name))


def in_plain_words(text: str) -> str:
    """Return what a value has to be as a person would say it: no types, no names of characters."""
    for exact, plain in _PLAIN_WORDS.items():
        text = text.replace(exact, plain)
    return text


def decode_urlencoded(encoded: bytes) -> Form:
    """Decode a query or a body (application/x-www-form-urlencoded, URL standard).

    Raises:
        ContentTooLarge: it is too long.
        InvalidBody: it has too many fields.
    """
    if len(encoded) > _MAX_URLENCODED:
        msg = f"the form: expected at most {_MAX_URLENCODED} bytes"
        raise ContentTooLarge(msg)
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


def decode_form(content_type: str, body: bytes) -> Form:
    """Decode the body of a form (URL standard, RFC 7578).

    Raises:
        ContentTooLarge: it is too long for a form without a file.
        UnsupportedMediaType: it is not a form.
        InvalidBody: it is malformed, or has too many fields.
    """
    media_type, options = multipart.parse_options_header(content_type)  # type: ignore[no-untyped-call]
    if media_type == _URLENCODED:
        return decode_urlencoded(body)
    if media_type != _MULTIPART or "boundary" not in options:
        msg = f"Content-Type: expected {_URLENCODED} or {_MULTIPART}"
        raise UnsupportedMediaType(msg)
    fields: dict[str, list[str]] = {}
    files = {}
    try:
        for name, filename, content in _parts(options["boundary"], body):
            if filename is None:
                fields.setdefault(name, []).append(content.decode("utf-8", "replace"))
            else:
                files[name] = File(filename, content)
    except multipart.MultipartError:
        msg = "the form: expected a complete multipart body"
        raise InvalidBody(msg) from None
    return Form(fields, files)


def _parts(boundary: str, body: bytes) -> list[tuple[str, str | None, bytes]]:
    """Return the name, the file name and the content of each part."""
    parts: list[tuple[str, str | None, bytearray]] = []
    with multipart.PushMultipartParser(
        boundary, len(body), max_segment_count=_MAX_FIELDS, strict=True
    ) as parser:
        for event in parser.parse(body):
            if isinstance(event, multipart.MultipartSegment):
                parts.append((event.name or "", event.filename, bytearray()))
            elif event:
                parts[-1][2].extend(event)
    return [(name, filename, bytes(content)) for name, filename, content in parts]


def in_words(name: str) -> str:
    """Return the name of a field as words: ``categoryId`` is "Category id"."""
    return re.sub("[A-Z]", lambda capital: f" {capital[0].lower()}", name).capitalize()
