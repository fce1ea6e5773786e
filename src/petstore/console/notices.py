"""What a change tells the person on the next page, and how to undo it."""

import secrets
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

_UNDO = "Undo"


class Undo(msgspec.Struct, frozen=True):
    """A form that undoes a change: the page that takes it, and its fields with their values."""

    path: str
    fields: Mapping[str, str | Sequence[str]] = {}
    label: str = _UNDO


class Notice(msgspec.Struct, frozen=True):
    """A sentence about what was done, perhaps with a way back. ``id`` is in the address."""

    text: str
    undo: Undo | None = None
    id: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(6))


def change_notice(name: str, done: str, undo: Undo, pressed: str) -> Notice:
    """Return the notice of a change of ``name``: ``done``, or that it was undone.

    ``pressed`` is the label of the undo that sent the change, empty if a person typed it.
    """
    if pressed != _UNDO:
        return Notice(done, undo)
    redo = replace(undo, label="Redo") if undo.label == _UNDO else undo
    return Notice(f"{name} is as it was before.", redo)


def encode_notice(notice: Notice) -> str:
    """Return a notice as a session keeps it."""
    return msgspec.json.encode(notice).decode()


def decode_notice(stored: str, wanted: str) -> Notice | None:
    """Return the stored notice if its id is ``wanted``: another page may have one since."""
    if not stored or not wanted:
        return None
    notice = msgspec.json.decode(stored, type=Notice)
    return notice if notice.id == wanted else None
