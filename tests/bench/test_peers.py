"""Each peer can be started in the same way."""

import os
from pathlib import Path

import pytest

from peers.contract import PEERS, Peer, missing_packages, peer

FOLDER = Path(__file__).parent.parent.parent / "bench/peers"


@pytest.mark.parametrize("one", PEERS, ids=lambda one: one.name)
def test_a_peer_has_the_programs_that_start_it(one: Peer) -> None:
    for program in ("start", "versions"):
        assert os.access(FOLDER / one.name / program, os.X_OK)


def test_every_folder_is_a_peer() -> None:
    folders = [file.parent.name for file in FOLDER.glob("*/start")]
    assert sorted(folders) == sorted(one.name for one in PEERS)


def test_an_unknown_peer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no peer 'rails', only petstore, fastapi,"):
        peer("rails")


def test_the_packages_of_programs_and_files_that_are_missing_are_named() -> None:
    needs = {"sh": "dash", "/": "base-files", "no-such-program": "b", "/no/such/file": "a"}
    assert missing_packages(needs, {"another": "c"}) == ["a", "b", "c"]
