"""Requests out of bytes (RFC 9112). llhttp checks the heads; bodies are framed here."""

import re

from httptools import (
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)

from petstore.http.messages import Refusal, Request

MAX_HEAD = 16 * 1024  # bytes of a head, with its request line
_MAX_TARGET = 8 * 1024  # bytes of a request target
_MAX_FIELDS = 100
_MAX_FRAMING = 4096  # bytes of a chunked body that are not content
_MAX_PIECE = 2048  # bytes of a chunked body that one call parses, up to the end of a chunk
_BLANK_LINE = b"\r\n\r\n"
_EMPTY_LINES = re.compile(rb"(?:\r\n)*")
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"  # RFC 9110 section 5.6.2
_TOKEN_START = re.compile(_TOKEN)
_TARGET = rb"(([^ \r\n#?]++)(?:\?([^ \r\n#]*+))?)"  # and its path and query
_REQUEST_LINE = re.compile(rb"(%b) %b HTTP/1\.([0-9])\r\n" % (_TOKEN, _TARGET))
_FRAGMENT = re.compile(rb"%b [^ \r\n#]*+#" % _TOKEN)
_FIELD = rb"%b:[\t -~\x80-\xff]*+\r\n" % _TOKEN
_TRAILERS = re.compile(rb"(?:%b)*+" % _FIELD)
# RFC 9112 section 7.1.1, without white space around the semicolon.
_QUOTED = rb'"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*+"'
_SIZE = rb"([0-9A-Fa-f]{1,16})(?:;%b(?:=(?:%b|%b))?)*+\r\n" % (_TOKEN, _TOKEN, _QUOTED)
_FIRST_CHUNK = re.compile(_SIZE)
_NEXT_CHUNK = re.compile(rb"\r\n" + _SIZE)
_SIZE_BEGINS = rb"(?:[0-9A-Fa-f]{1,16}(?:;[^\r\n]*+)?\r?)?\Z"
_FIRST_BEGINS = re.compile(_SIZE_BEGINS)
_NEXT_BEGINS = re.compile(rb"\r?\Z|\r\n" + _SIZE_BEGINS)
_FRAMING_FIELDS = frozenset((b"content-length", b"transfer-encoding"))
_CLOSE = re.compile(rb"(?:\A|,)[ \t]*close[ \t]*(?:,|\Z)", re.IGNORECASE)
_NONE: frozenset[bytes] = frozenset()
_NO_REQUEST_LINE = "the request line: expected a method, a target and HTTP/1.1"
_BROKEN = "its framing is broken"
_TOO_MUCH_FRAMING = f"its chunks are too small: their framing has over {_MAX_FRAMING} bytes"


class RequestParser:
    """The caller adds what arrives to ``unparsed``, and takes each request, then its body."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._fields = Fields()
        self._reset()
        self._searched = 0  # bytes of an unfinished head that do not hold its end
        self._is_chunked = False
        self._chunk_head = _FIRST_CHUNK
        self._left = self._framing = 0
        self.unparsed = b""
        self.head_begins = False  # the last call found the first bytes of a head, not its end
        self.is_whole = True  # the body of the last request is complete
        self.keeps_alive = True  # another request may follow the last one

    def next_request(self) -> Request | None:
        data = self.unparsed
        if data.startswith(b"\r"):  # empty lines may precede a request (RFC 9112 section 2.2)
            data = self.unparsed = _EMPTY_LINES.sub(b"", data, 1)
        end = data.find(_BLANK_LINE, self._searched) + len(_BLANK_LINE)
        if end < len(_BLANK_LINE):
            self._check_beginning(data)
            return None
        request = self._parse_head(data[:end])
        self.unparsed, self._searched = data[end:], 0
        return request

    def next_piece(self) -> bytes:
        """Return what has arrived of the body, of a chunked body some 2 KiB."""
        if self._is_chunked:
            return self._next_chunks()
        piece, self.unparsed = self.unparsed[: self._left], self.unparsed[self._left :]
        self._left -= len(piece)
        self.is_whole = self._left == 0
        return piece

    def _check_beginning(self, data: bytes) -> None:
        self.head_begins = False
        if data in (b"", b"\r"):
            return
        if not _TOKEN_START.match(data):
            raise Refusal(400, _NO_REQUEST_LINE)
        if len(data) > MAX_HEAD:
            raise _too_large(data)
        new = data[self._searched :]
        is_cut = data.startswith(b"\r\n", self._searched - 1)  # its CR is behind us
        if new.count(b"\n") > new.count(b"\r\n") + is_cut:
            raise Refusal(400, "the head: expected lines that end with CR LF")
        self.head_begins = not self._searched
        self._searched = max(1, len(data) - len(_BLANK_LINE) + 1)

    def _parse_head(self, head: bytes) -> Request:
        if len(head) > MAX_HEAD:
            raise _too_large(head)
        line = _REQUEST_LINE.match(head)
        if line is None:
            no_fragment = "the target: expected no fragment"
            raise Refusal(400, no_fragment if _FRAGMENT.match(head) else _NO_REQUEST_LINE)
        method, target, path, query, minor = line.groups(b"")
        if len(target) > _MAX_TARGET:
            raise _too_large(head)
        fields, repeated = self._parse_fields(head)
        version = "1.0" if minor == b"0" else "1.1"  # a later minor version is treated as 1.1
        if not path.startswith(b"/"):
            path = _path_of_url(path, fields)
        connection = fields.get(b"connection")
        has_close = connection is not None and _CLOSE.search(connection) is not None
        self.keeps_alive = version == "1.1" and not has_close
        if not _FRAMING_FIELDS.isdisjoint(fields):
            self._expect_body(fields, version)
        return Request(
            method.decode("ascii"),
            path.decode("latin-1"),
            query,
            self._client,
            fields,
            repeated,
            version,
            "none" if self.is_whole else "waiting",
        )

    def _parse_fields(self, head: bytes) -> tuple[dict[bytes, bytes], frozenset[bytes]]:
        if head.count(b"\n") > _MAX_FIELDS + 2:
            raise Refusal(431, f"the head: expected at most {_MAX_FIELDS} fields")
        collected = self._fields
        fields = collected.by_name = {}
        try:
            self._llhttp.feed_data(head)
        except HttpParserUpgrade:
            self._reset()  # an offer of another protocol, which we decline (RFC 9110 section 7.8)
        except HttpParserInvalidMethodError:
            raise Refusal(501, "the method: expected one of HTTP, such as GET") from None
        except HttpParserError as error:
            raise Refusal(400, f"the head: expected an HTTP/1.1 request; {error}") from None
        if not collected.repeated:
            return fields, _NONE
        repeated, collected.repeated = frozenset(collected.repeated), []
        return fields, repeated

    def _expect_body(self, fields: dict[bytes, bytes], version: str) -> None:
        """Prepare for a body (RFC 9112 section 6)."""
        self._reset()  # llhttp would wait for the body
        coding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
        self._is_chunked = coding is not None
        if coding is None and length is not None and length.isdigit():
            self._left = int(length.lstrip(b"0") or b"0")  # Python limits the digits of an int
            self.is_whole = self._left == 0
            return
        codings = [one.strip() for one in (coding or b"").lower().split(b",")]
        if version != "1.1" or codings[-1] != b"chunked" or length is not None:
            msg = "the body: expected a Content-Length, or chunks as the last transfer coding"
            raise Refusal(400, msg)
        if len(codings) > 1:
            raise Refusal(501, "Transfer-Encoding: expected only chunked")
        self._chunk_head, self._left, self._framing = _FIRST_CHUNK, 0, 0
        self.is_whole = False

    def _next_chunks(self) -> bytes:
        """Return the content of the next chunks (RFC 9112 section 7.1)."""
        data, at, waiting, pieces = self.unparsed, 0, 0, []
        while at < min(len(data), _MAX_PIECE) and not self.is_whole:
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                self._framing -= len(piece)
                at += len(piece)
                pieces.append(piece)
                continue
            begin, at = at, self._parse_chunk_head(data, at)
            if at == begin:
                waiting = len(data) - at
                break
        self.unparsed = data[at:]
        self._framing += at
        if self._framing + waiting > _MAX_FRAMING:
            raise Refusal(400, _TOO_MUCH_FRAMING)
        return b"".join(pieces)

    def _parse_chunk_head(self, data: bytes, start: int) -> int:
        line = self._chunk_head.match(data, start)
        if line is None:
            begins = _FIRST_BEGINS if self._chunk_head is _FIRST_CHUNK else _NEXT_BEGINS
            if not begins.match(data, start):
                raise Refusal(400, _BROKEN)
            return start
        self._left = int(line[1], 16)
        if self._left:
            self._chunk_head = _NEXT_CHUNK
            return line.end()
        end = data.find(_BLANK_LINE, line.end() - 2)
        if end < 0:
            return start
        self._check_trailers(data[line.end() : end + 2])
        self.is_whole = True
        return end + len(_BLANK_LINE)

    def _check_trailers(self, trailers: bytes) -> None:
        """Check the fields behind a body. They are ignored, except for ``Connection: close``."""
        if not _TRAILERS.fullmatch(trailers):
            raise Refusal(400, _BROKEN)
        for line in trailers.lower().split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name in _FRAMING_FIELDS:
                raise Refusal(400, _BROKEN)
            if name == b"connection" and _CLOSE.search(value):
                self.keeps_alive = False

    def _reset(self) -> None:
        self._llhttp = HttpRequestParser(self._fields)
        # We check the request line, and decide from Connection alone whether another may follow:
        # llhttp would take Proxy-Connection too, which has no meaning (RFC 9112 appendix C.2.2).
        self._llhttp.set_dangerous_leniencies(lenient_version=True, lenient_keep_alive=True)


class Fields:
    """Collects the fields of a head; apart from the parser, or they would refer to each other."""

    __slots__ = ("by_name", "repeated")

    def __init__(self) -> None:
        self.by_name: dict[bytes, bytes] = {}
        self.repeated: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        name, value = name.lower(), value.rstrip(b" \t")
        if name in self.by_name:
            self.repeated.append(name)
            # A cookie is one list, however many lines have it (RFC 9113 section 8.2.3).
            value = self.by_name[name] + (b"; " if name == b"cookie" else b", ") + value
        self.by_name[name] = value


def _too_large(head: bytes) -> Refusal:
    if len(head.partition(b"\r\n")[0]) > _MAX_TARGET:
        return Refusal(414, f"the target: expected at most {_MAX_TARGET} bytes")
    return Refusal(431, f"the head: expected at most {MAX_HEAD} bytes")


def _path_of_url(target: bytes, fields: dict[bytes, bytes]) -> bytes:
    """RFC 9112 section 3.2.2: the host of such a target takes the place of that in ``fields``."""
    if b"://" not in target:
        return target
    try:
        path = parse_url(target).path or b"/"
    except HttpParserInvalidURLError:
        raise Refusal(400, "the target: expected a path or a URL") from None
    authority = target.partition(b"://")[2].partition(b"/")[0]
    if b"host" in fields:
        fields[b"host"] = authority.rpartition(b"@")[2]
    return path
