"""Request bodies, received within their size and time."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from petstore.errors import (
    ContentTooLarge,
    IncompleteBody,
    Overloaded,
    PetstoreError,
    RequestTimeout,
    Unavailable,
    UnsupportedMediaType,
)
from petstore.http.messages import Overload, Receive, Request
from petstore.interface.operation import FileBody
from petstore.periodic_tasks import PeriodicTask

MERGE_PATCH = "application/merge-patch+json"

ACCEPT_PATCH = f"{MERGE_PATCH}, application/json"
"""The media types of a PATCH, for ``Accept-Patch`` (RFC 5789 section 3.1)."""

MAX_UPLOAD = 8 * 2**20
"""The maximum size of a body that is a file, in bytes."""

# Bytes a second: lines of phones are often no faster.
_SLOWEST_UPLOAD = 65_536
_PIECE = 65_536
_JSON = b"application/json"
# With every character escaped, 100 pets with the longest names are not five times as large.
_LIST_FACTOR = 8
_PATCHES = (_JSON, MERGE_PATCH.encode("ascii"))


@contextmanager
def room_for_file() -> Iterator[None]:
    """Tell the client that the disk is full if the block cannot write a file (``OSError``)."""
    try:
        yield
    except OSError as error:
        detail = f"cannot write a file: {error}"
        raise Unavailable(detail, "there is no room for the file now; try again") from error


class BodyReader:
    """Receives bodies of at most ``largest`` bytes, lists of eight times as many, in ``seconds``.

    A timer for each body would cost more than all the rest of receiving it, so the deadlines are
    kept in one place, and ``end_late`` looks at them.
    """

    def __init__(self, largest: int, seconds: float) -> None:
        self._largest = largest
        self._seconds = seconds
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        self.periodic_task = PeriodicTask(self.end_late, 0.1, "cannot close timed-out requests")

    async def read(self, request: Request, receive: Receive, *, is_list: bool = False) -> bytes:
        if request.body != "none":  # of no content, curl and others say that it is a form
            taken = _PATCHES if request.method == "PATCH" else (_JSON,)
            _require_media_type(request, taken, default=_JSON)
        largest = self._largest * (_LIST_FACTOR if is_list else 1)
        return await self.read_any(request, receive, largest)

    async def read_any(self, request: Request, receive: Receive, largest: int) -> bytes:
        body = bytearray()
        if request.content is None:
            await self._read(request, receive, body.extend, largest)
            return bytes(body)
        if len(request.content) > largest:
            raise _too_large(largest)
        return request.content

    async def read_file(
        self, request: Request, receive: Receive, largest: int, seconds: float = 0
    ) -> BinaryIO:
        """Return what ``read_any`` does in a file without a name; the caller closes it.

        Its time grows with what has arrived, up to ``seconds`` more than other bodies have.
        """
        with room_for_file():
            file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the caller closes it
            try:
                if request.content is None:
                    request.keeps_body = False
                    await self._read(request, receive, file.write, largest, seconds)
                else:
                    file.write(await self.read_any(request, receive, largest))
                file.seek(0)
            except BaseException:
                with suppress(OSError):
                    file.close()  # tries once more to write
                raise
            return file

    async def read_upload(
        self, request: Request, receive: Receive, media_types: Sequence[str]
    ) -> FileBody:
        """Return a body that is a file of one of these media types; the caller closes it."""
        media_type = _require_media_type(request, [each.encode() for each in media_types])
        content = await self.read_file(request, receive, MAX_UPLOAD, MAX_UPLOAD / _SLOWEST_UPLOAD)
        return FileBody(content, media_type, await digest_of(content))

    async def discard(self, request: Request, receive: Receive) -> None:
        """Take in a body that was not asked for, or the connection could serve no other request."""
        # Who expects 100 (Continue) has not sent the body yet, and shall not.
        if request.body == "waiting" and b"expect" not in request.fields:
            request.keeps_body = False
            with suppress(PetstoreError):
                await self._read(request, receive, len, self._largest)

    async def end_late(self) -> None:
        now = time.monotonic()
        for task, deadline in list(self._deadlines.items()):
            if deadline <= now:
                del self._deadlines[task]
                task.cancel()

    async def _read(
        self,
        request: Request,
        receive: Receive,
        take: Callable[[bytes], object],
        largest: int,
        seconds: float = 0,
    ) -> None:
        length = request.fields.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > largest:
            raise _too_large(largest)
        request.body = "broken"
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - every coroutine runs in a task
        self._deadlines[task] = time.monotonic() + self._seconds

        def take_in_time(piece: bytes) -> None:
            take(piece)
            self._deadlines[task] += seconds * len(piece) / largest

        try:
            await _receive(receive, take_in_time, largest)
        except asyncio.CancelledError:
            if task in self._deadlines:
                raise
            task.uncancel()
            pace = f"all of it within {self._seconds:g} seconds"
            if seconds:
                pace = f"at least {largest / seconds:,.0f} bytes a second"
            raise RequestTimeout(f"the body: expected {pace}") from None
        finally:
            self._deadlines.pop(task, None)
        request.body = "read"


async def digest_of(file: BinaryIO) -> bytes:
    def compute() -> bytes:
        digest = sha256()
        file.seek(0)
        while piece := file.read(_PIECE):
            digest.update(piece)
        return digest.digest()

    return await asyncio.to_thread(compute)


def _require_media_type(request: Request, taken: Sequence[bytes], default: bytes = b"") -> str:
    """Return the media type of a body that is one of those taken, and without a coding."""
    given = request.fields.get(b"content-type", default).partition(b";")[0].strip().lower()
    if given not in taken:
        msg = f"Content-Type: expected {b' or '.join(taken).decode()}"
        is_patch = request.method == "PATCH"
        raise UnsupportedMediaType(msg, {"Accept-Patch": ACCEPT_PATCH} if is_patch else None)
    if b"content-encoding" in request.fields:
        msg = "Content-Encoding: expected none; send the body without encoding"
        raise UnsupportedMediaType(msg, {"Accept-Encoding": "identity"})
    return given.decode("ascii")


async def _receive(receive: Receive, take: Callable[[bytes], None], largest: int) -> None:
    size = 0
    try:
        while piece := await receive():
            size += len(piece)
            if size > largest:
                raise _too_large(largest)
            take(piece)
    except Overload as error:
        raise Overloaded(str(error)) from error
    except ConnectionError as error:
        raise IncompleteBody(f"the body: expected all of it; {error}") from error


def _too_large(largest: int) -> ContentTooLarge:
    return ContentTooLarge(f"the body: expected at most {largest} bytes")
