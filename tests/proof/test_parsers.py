"""Our HTTP parser and h11 on the same bytes: what is compared, and where we are stricter."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from proof.experiment import Trial
from proof.experiments.parsing import compare_next, compare_one
from proof.http_grammar import lasting_requests, message
from proof.parsers import (
    STRICTER,
    OurParser,
    Parsed,
    Verdict,
    disagreement,
    parse_with_h11,
)

pytestmark = pytest.mark.anyio

HEAD = b"POST /v1/pets HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
EXAMPLES = {
    "a fragment in the target": b"GET /#x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a method that no standard defines": b"GETS / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a line that ends without CR LF": b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "bytes that cannot become a request line": b"GET / HTTP/1.1\nHost: a\r\n\r\n",
    "control characters": HEAD + b"X: \x01\r\n\r\n",
    "a field folded": HEAD + b"X: a\r\n b\r\n\r\n",
    "invalid characters in a target": b"GET ?x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a URL as target": b"GET http://a:/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "`Content-Length` more than once": HEAD + b"Content-Length: 1, 1\r\n\r\nx",
    "`Transfer-Encoding` beside": CHUNKED + b"Content-Length: 1\r\n\r\n0\r\n\r\n",
    "an invalid chunk extension": CHUNKED + b"\r\n1;\ra\r\nx\r\n0\r\n\r\n",
    "HTTP/1.2 and later without": b"GET / HTTP/1.2\r\nHHost: a\r\n\r\n",
    "a tab after": HEAD + b"Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"\r\n0\r\n\r\n",
}
REQUEST = Parsed("GET", "/", b"", {b"host": b"a"}, b"")
NONE = Verdict([], "whole")
ONE = Verdict([REQUEST], "whole")


@pytest.fixture
async def parser() -> AsyncIterator[OurParser]:
    parser = OurParser()
    yield parser
    parser.close()


async def test_messages_are_parsed_the_same_in_every_segmentation_and_by_h11(
    parser: OurParser, tmp_path: Path
) -> None:
    random = Random(5)  # noqa: S311 - what is drawn is no secret
    trial = Trial(0, random, tmp_path)
    for _ in range(12):
        await compare_one(trial, parser, message(random))
    assert trial.broken == []
    assert trial.seen["messages"] == 12
    assert trial.seen["messages that both parsers read alike"] > 5


async def test_no_header_of_a_request_affects_the_next_one_on_the_connection(
    parser: OurParser, tmp_path: Path
) -> None:
    trial = Trial(0, Random(5), tmp_path)  # noqa: S311 - what is drawn is no secret
    for request in list(lasting_requests())[::23]:
        await compare_next(trial, parser, request)
    assert trial.broken == []
    assert trial.seen["requests with another behind them"] > 500
    assert trial.seen["connections that stay open"] > 150


@pytest.mark.parametrize(
    "data",
    [
        CHUNKED + b"\r\n0\r\nX: y\r\n\n\r\n",  # we wait for the end, which h11 has seen
        CHUNKED.replace(b"chunked", b"Chunked") + b"\r\n0\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET z HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
async def test_a_harmless_difference_is_not_a_disagreement(
    parser: OurParser, tmp_path: Path, data: bytes
) -> None:
    trial = Trial(0, Random(5), tmp_path)  # noqa: S311 - what is drawn is no secret
    await compare_one(trial, parser, data)
    assert trial.broken == []


@pytest.mark.parametrize("beginning", EXAMPLES)
async def test_each_documented_strictness_refuses_a_message_that_h11_accepts(
    parser: OurParser, beginning: str
) -> None:
    assert len(EXAMPLES) == len(STRICTER)
    assert sum(name.startswith(beginning) for name in STRICTER) == 1
    ours = await parser.parse([EXAMPLES[beginning]])
    theirs = parse_with_h11(EXAMPLES[beginning])
    assert (ours.end, ours.requests) == ("refused", [])
    assert len(theirs.requests) == 1
    assert disagreement(ours, theirs) == ""


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (ONE, Verdict([REQUEST._replace(body=b"x")], "whole"), "we read "),
        (ONE, Verdict([], "refused", "no"), "and h11 refuses: no"),
        (NONE, ONE, "we are whole, and h11 reads"),
        (Verdict([], "unfinished"), ONE, "we are unfinished, and h11 reads"),
        (Verdict([], "refused", "for no good reason"), ONE, "we refuse (for no good reason)"),
        (ONE, Verdict([REQUEST], "refused", "no"), "we are whole, and h11 is refused: no"),
    ],
)
async def test_a_difference_that_strictness_does_not_explain_is_a_disagreement(
    ours: Verdict, theirs: Verdict, said: str
) -> None:
    assert said in disagreement(ours, theirs)
