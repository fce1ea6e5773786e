"""A differential fuzz of the HTTP parser, in every segmentation and against h11."""

import time

import uvloop

from proof.experiment import Experiment, Trial
from proof.http_grammar import message
from proof.parsers import STRICTER, OurParser, disagreement, parse_with_h11, segmentations


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


EXPERIMENTS = [
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
    )
]
