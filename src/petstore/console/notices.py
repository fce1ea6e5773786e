"""What a change tells the person on the next page, and how to undo it.

A notice is in a cookie that the next page deletes, signed with the secret of the session: another
site below the same domain could set a cookie, but not one whose undo a person then presses.
"""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hmac import compare_digest, digest

import msgspec
from msgspec.structs import replace

_UNDO = "Undo"
_PURPOSE = b"petstore console notice"
_SIGNATURE_LENGTH = 32
# The header of a response must fit the 4 KiB that proxies have for it.
_MAX_SIGNED = 3072
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


def sign_notice(notice: Notice, secret: bytes) -> str:
    """Return a notice as the value of its cookie; if it is too long, without its undo."""
    text = msgspec.json.encode(notice)
    record = zlib.compress(text)
    signed = urlsafe_b64encode(_signature(record, secret) + record).decode("ascii")
    is_too_long = len(signed) > _MAX_SIGNED or len(text) > _MAX_TEXT
    if is_too_long and notice.undo is not None:
        return sign_notice(replace(notice, undo=None), secret)
    return signed


def read_notice(signed: str, secret: bytes) -> Notice | None:
    """Return the notice in the value of a cookie if it was signed in the same session.

    A person knows the secret of the own session, and can sign anything with it.
    """
    try:
        value = urlsafe_b64decode(signed)
        signature, record = value[:_SIGNATURE_LENGTH], value[_SIGNATURE_LENGTH:]
        if not compare_digest(signature, _signature(record, secret)):
            return None
        text = zlib.decompressobj().decompress(record, _MAX_TEXT)
        return msgspec.json.decode(text, type=Notice)
    except (ValueError, zlib.error, msgspec.MsgspecError):  # or it is not in base64
        return None


def _signature(record: bytes, secret: bytes) -> bytes:
    return digest(digest(secret, _PURPOSE, "sha256"), record, "sha256")
