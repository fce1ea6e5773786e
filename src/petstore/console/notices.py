"""What a change tells the person on the next page, and how to undo it.

A notice is in the address of that page, sealed with the secret of the session: nobody else can read
it, and no link of somebody else shows one.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from petstore.interface.sealing import seal, unseal

_UNDO = "Undo"
_PURPOSE = b"petstore console notice"
# The header of a response must fit the 4 KiB that proxies have for it.
_MAX_SEALED = 3072
# What a few kilobytes could grow to, when they are decompressed, is bounded.
_MAX_TEXT = 64 * 1024


class Undo(msgspec.Struct, frozen=True):
    """A form that undoes a change: the page that takes it, and its fields with their values."""

    path: str
    fields: Mapping[str, str] = {}
    label: str = _UNDO


class Notice(msgspec.Struct, frozen=True):
    """A sentence about what was done, perhaps with a way back."""

    text: str
    undo: Undo | None = None


def change_notice(name: str, done: str, undo: Undo, pressed: str) -> Notice:
    """Return the notice of a change of ``name``: ``done``, or that it was undone.

    ``pressed`` is the label of the undo that sent the change, empty if a person typed it.
    """
    if pressed != _UNDO:
        return Notice(done, undo)
    redo = replace(undo, label="Redo") if undo.label == _UNDO else undo
    return Notice(f"{name} is as it was before.", redo)


def seal_notice(notice: Notice, secret: bytes) -> str:
    """Return a notice as the query of an address has it; if it is too long, without its undo."""
    text = msgspec.json.encode(notice)
    sealed = urlsafe_b64encode(seal(zlib.compress(text), secret, _PURPOSE)).decode("ascii")
    is_too_long = len(sealed) > _MAX_SEALED or len(text) > _MAX_TEXT
    if is_too_long and notice.undo is not None:
        return seal_notice(replace(notice, undo=None), secret)
    return sealed


def open_notice(sealed: str, secret: bytes) -> Notice | None:
    """Return a notice that was sealed in the same session.

    A person knows the secret of the own session, and can seal anything with it.
    """
    try:
        text = unseal(urlsafe_b64decode(sealed), secret, _PURPOSE)
        if text is None:
            return None
        text = zlib.decompressobj().decompress(text, _MAX_TEXT)
        return msgspec.json.decode(text, type=Notice)
    except (ValueError, zlib.error, msgspec.MsgspecError):  # or it is not in base64
        return None
