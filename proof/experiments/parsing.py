"""A differential fuzz of the HTTP parser, in every segmentation and against h11."""

import time

import uvloop

from proof.experiment import Experiment, Trial
from proof.http_grammar import lasting_requests, message
from proof.parsers import STRICTER, OurParser, disagreement, parse_with_h11, segmentations

_NEXT = b"GET /next HTTP/1.1\r\nHost: petstore\r\n\r\n"


def _run(trial: Trial) -> None:
    uvloop.run(_compare(trial))


async def _compare(trial: Trial) -> None:
    ends = time.monotonic() + trial.seconds
    parser = OurParser()
    try:
        while time.monotonic() < ends:
            await compare_one(trial, parser, message(trial.random))
    finally:
        parser.close()


async def compare_one(trial: Trial, parser: OurParser, data: bytes) -> None:
    """Expect a message to be the same in every segmentation, and what h11 makes of it."""
    whole = await parser.parse([data])
    for pieces in segmentations(data):
        verdict = await parser.parse(pieces)
        trial.count("segmentations")
        same = verdict.agrees_with(whole)
        trial.expect(same, f"{pieces!r} is {verdict}, and in one piece {whole}")
    theirs = parse_with_h11(data)
    differs = disagreement(whole, theirs)
    if differs and whole.end == "unfinished":
        # To h11 a line feed alone ends it; we judge it once it is whole.
        differs = disagreement(await parser.parse([data, b"\r\n\r\n"]), theirs)
    trial.expect(not differs, f"{data!r}: {differs}")
    trial.count("messages")
    trial.count(f"messages that are {whole.end}")
    trial.count("messages that both parsers read alike", whole.agrees_with(theirs))


def _run_lasting(trial: Trial) -> None:
    uvloop.run(_compare_lasting(trial))


async def _compare_lasting(trial: Trial) -> None:
    parser = OurParser()
    try:
        for request in lasting_requests():
            await compare_next(trial, parser, request)
    finally:
        parser.close()


async def compare_next(trial: Trial, parser: OurParser, request: bytes) -> None:
    """Expect a second request on the connection to be read, or not, as h11 does."""
    theirs = parse_with_h11(request + _NEXT)
    for pieces in ([request + _NEXT], [request, _NEXT]):
        differs = disagreement(await parser.parse(pieces), theirs)
        trial.expect(not differs, f"{pieces!r}: {differs}")
    trial.count("requests with another behind them")
    trial.count("connections that stay open", len(theirs.requests) - 1)


EXPERIMENTS = [
    Experiment(
        "a second request",
        "Our parser keeps a connection open after the same requests as h11, and reads the next"
        " request on it, whatever fields the first request had: nobody can spoil a connection that"
        " a proxy shares among its clients.",
        "Every combination of method, version, body and the fields `Connection`,"
        " `Proxy-Connection`, `Keep-Alive` and `Upgrade`, with a plain request behind it, at once"
        " and later.",
        _run_lasting,
        0.2,
    ),
    Experiment(
        "the HTTP parser",
        "However a message is split, the parser reads the same requests or refuses it in the same"
        " way. h11 reads the same requests. Our parser refuses these, and h11 does not: "
        + "; ".join(STRICTER)
        + ".",
        "A grammar generates messages, one to three in a row, with bytes inserted, removed,"
        " replaced and doubled. Each goes through our connection as a whole, split in two at every"
        " position and byte by byte, and through h11.",
        _run,
        3,
    ),
]
