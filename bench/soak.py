"""Put the mix on the service for long: does its memory grow, or the time of its responses?

One process on SQLite, 32 connections. The first seconds, which warm it up, do not count.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import machine
from peers.contract import peer
from rounds import measure
from servers import Server, leave_one_core
from soak_report import Slice, Soak, report, save
from stage import SqliteStage
from stock import fill, issue_many
from works import KEYS, sources, work

_CONNECTIONS = 32
_WARM_UP = 20  # s
_SLICE = 10  # s


def main() -> None:
    """Measure, print the report, save it if that is wanted; with status 1 if something grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--save", action="store_true", help="into results/")
    options = parser.parse_args()
    core, load = leave_one_core(), machine.load_average()
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=Path(__file__).parent) as folder:
        stage = SqliteStage(Path(folder))
        fill(stage.folder, stage.url)
        tokens = issue_many(stage.url, KEYS, stage.folder)
        with (
            stage.copy("served") as environment,
            peer("petstore").started(environment, core) as server,
        ):
            requests = work("mix", sources(server.url, tokens), _SLICE).requests
            measure(server, requests, _CONNECTIONS, _WARM_UP)
            slices = [
                _slice(server, requests, number)
                for number in range(round(options.minutes * 60 / _SLICE))
            ]
    soak = Soak(
        machine=machine.machine(), system=machine.system(), load_average=load, slices=slices
    )
    print(report(soak))
    if options.save:
        save(soak)
    sys.exit(not soak.is_steady)


def _slice(server: Server, requests: list[bytes], number: int) -> Slice:
    load = measure(server, requests, _CONNECTIONS, _SLICE)
    until = (number + 1) * _SLICE
    print(f"after {until} s: {load.rate:,.0f} requests a second", file=sys.stderr)
    return Slice(until=until, megabytes=round(server.megabytes, 2), load=load)


if __name__ == "__main__":
    main()
