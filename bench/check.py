"""Check whether peers do the work of interface.md, as they must before they are measured."""

import argparse
import sys
import tempfile
from pathlib import Path

from peers.conformance import PETS, differences, issue_keys
from peers.contract import PEERS, Peer, missing_packages, peer
from stage import SharedStage, SqliteStage, Stage, postgres_server
from stock import fill


def main() -> None:
    """Check, print what differs, and end with status 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", type=peer, help="of peers; else all")
    parser.add_argument("--shared", action="store_true", help="on PostgreSQL and Redis")
    options = parser.parse_args()
    peers = options.names or [one for one in PEERS if one.shared or not options.shared]
    with tempfile.TemporaryDirectory() as folder:
        found = (
            _check_shared(peers, Path(folder))
            if options.shared
            else check(SqliteStage(Path(folder)), peers)
        )
    for one in peers:
        print(f"{one.name}: {len(found[one.name])} differences")
        for difference in found[one.name]:
            print(f"  {difference}")
    sys.exit(any(found.values()))


def _check_shared(peers: list[Peer], folder: Path) -> dict[str, list[str]]:
    with postgres_server() as postgres:
        return check(SharedStage(postgres, folder), peers)


def check(stage: Stage, peers: list[Peer]) -> dict[str, list[str]]:
    """Fill the stage; return what each peer does otherwise than the interface says, by name.

    A peer that does not start differs in that.
    """
    fill(stage.folder, stage.url, PETS)
    keys = issue_keys(stage.url)
    found = {}
    for one in peers:
        if missing := missing_packages(one.needs):
            found[one.name] = [f"it needs {' '.join(missing)}"]
            continue
        one.build()
        with stage.copy(f"{one.name}-checked") as environment:
            try:
                with one.started(environment) as server:
                    found[one.name] = differences(server.url, environment.url, keys, one.does)
            except RuntimeError as error:
                found[one.name] = [f"it does not start: {error}"]
    return found


if __name__ == "__main__":
    main()
