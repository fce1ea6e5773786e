"""Attack the service, and see what a good client beside the attackers notices.

    python bench/attacks.py                              every attack, on this tree
    python bench/attacks.py pipeline chunks              those whose names begin so
    python bench/attacks.py --against ../other           on another tree too, in turn
    python bench/attacks.py --json attacks.json          writes the results to a file too

Each attack has a server of its own: ``petstore serve`` of the tree, with the ``.venv`` of that, on
SQLite in a temporary folder. The good client asks for a list and a get in turn, 100 requests a
second, with a key that has no limits; its times count from when a request was due. Attackers call
from many addresses, unless the attack is about one: a cap for each address must not be all that
holds.

Where there are two cores, the server has one and everything else the other. All of it stays on the
loopback network. An attack takes some 10 s for each tree, and longer where the server freezes.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

import attackers
import machine
from attackers import Kind, Target, costly, pipeline
from attacks_report import Attacks, Outcome, report, save
from good_client import Requests, request_steadily
from servers import Server, allow_many_files, free_port, leave_one_core, running
from stock import fill, issue_key, petstore

_HERE = Path(__file__).resolve().parent.parent
_STOCK = 2_000
_WARM_UP = 1  # s
_MANY = 100_000


class Attack(NamedTuple):
    """One attack: how many callers of a kind, from how many addresses, on which server.

    ``options`` are those of the server; one that it does not know is left out. The attack takes
    ``seconds`` instead of what is asked for, if given, and ends ``after`` seconds later. Where the
    good client does not keep its connections it needs a new one for each request.
    """

    name: str
    kind: Kind
    callers: int
    addresses: int = _MANY
    options: tuple[tuple[str, str], ...] = ()
    seconds: float | None = None
    after: float = 0
    keeps_alive: bool = True


class Tree(NamedTuple):
    """A checkout of the service with a store of its own, and the tokens of two keys for that.

    ``help`` is what its ``petstore serve --help`` says.
    """

    name: str
    python: str
    store: Path
    unlimited: str
    limited: str
    help: str


async def _nothing(_: attackers.Caller) -> None:
    """Leave the good client alone."""


_GET_WITHOUT_HOST = ("GET / HTTP/1.1",)
_GET = ("GET / HTTP/1.1", "Host: petstore")
_TRUST = (("--trusted-proxy", "127.0.0.1"),)
_FEW_CONNECTIONS = (
    ("--max-connections", "600"),
    ("--connections", "600"),  # before 3.0
    ("--connections-per-address", "100"),
)
_NO_BANS = (("--ban-strikes", "1000000000"),)
_PETS = "/v1/pets"
_FLOATS = msgspec.json.encode({"unknown": [0.1] * 15_000}).decode()
_MEMBERS = msgspec.json.encode({f"{number:04x}": 0 for number in range(6_500)}).decode()

ATTACKS = (
    Attack("alone", _nothing, 0),
    Attack("pipeline, no Host", pipeline(*_GET_WITHOUT_HOST), 100),
    Attack("pipeline, no Host", pipeline(*_GET_WITHOUT_HOST), 300),
    Attack("pipeline, no Host", pipeline(*_GET_WITHOUT_HOST), 1_000),
    Attack("pipeline", pipeline(*_GET), 100),
    Attack("pipeline", pipeline(*_GET), 1_000),
    Attack("pipeline and read", attackers.pipeline_and_read, 100),
    Attack("chunks", attackers.chunks, 30),
    Attack("chunks", attackers.chunks, 1_000),
    Attack("heads", attackers.head, 4_000),
    Attack("idle", attackers.idle, 600, 1, _FEW_CONNECTIONS, seconds=10, keeps_alive=False),
    Attack("limited", attackers.limited, 64, 1, _NO_BANS),
    Attack("limited, pipelined", attackers.limited_pipeline, 64, 1, _NO_BANS),
    Attack("stop", attackers.stop, 9, 1, seconds=5, after=10),
    Attack("read slowly", attackers.read_slowly, 1, 1, seconds=20),
    Attack("made-up tokens", attackers.make_up_tokens, 64, 1),
    Attack("mistyped tokens", attackers.mistype_tokens, 64, 1),
    Attack("forwarded hops", attackers.forward_hops, 16, 1, _TRUST),
    Attack("forwarded zones", attackers.forward_zones, 16, 1, _TRUST),
    Attack("drip heads", attackers.drip_head, 1_000, seconds=10, after=2),
    Attack("drip bodies", attackers.drip_body, 1_000, seconds=10, after=2),
    Attack("console files", attackers.work_on_files, 16),
    Attack("costly: a list", costly("GET", _PETS), 1),
    Attack("costly: parameters", costly("GET", f"{_PETS}?{'&a' * 8_100}"), 1),
    Attack("costly: ids", costly("GET", f"{_PETS}?{'&id=1' * 3_276}"), 1),
    Attack("costly: floats", costly("POST", _PETS, body=_FLOATS), 1),
    Attack("costly: members", costly("POST", _PETS, body=_MEMBERS), 1),
    Attack("costly: If-Match", costly("PATCH", f"{_PETS}/7", "{}", f"If-Match: {',' * 20_000}"), 1),
)


def main() -> None:
    """Attack, print the table, and write it as JSON if that is wanted."""
    options = _options()
    allow_many_files()
    core, load = leave_one_core(), machine.load_average()
    with tempfile.TemporaryDirectory() as folder:
        trees = [
            _tree(checkout.absolute(), Path(folder) / str(number))
            for number, checkout in enumerate((*options.against, _HERE))
        ]
        outcomes = [
            _outcome(attack, tree, options.seconds, core)
            for attack in ATTACKS
            if attack.name.startswith(tuple(options.names or [""]))
            for tree in trees
        ]
    attacks = Attacks(
        machine=machine.machine(), system=machine.system(), load_average=load, outcomes=outcomes
    )
    print(report(attacks))
    if options.json:
        save(attacks, options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="how names begin; else all")
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="TREE")
    parser.add_argument("--seconds", type=float, default=6, help="of most attacks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def _tree(checkout: Path, folder: Path) -> Tree:
    """Fill a store of a checkout in ``folder``.

    Raises:
        RuntimeError: a command of the checkout failed; the message is what it said.
    """
    folder.mkdir()
    python, store = str(checkout / ".venv/bin/python"), folder / "store.db"
    database = f"sqlite:///{store}"
    fill(folder, database, _STOCK, python)
    return Tree(
        name=checkout.name,
        python=python,
        store=store,
        unlimited=issue_key(database, python=python),
        limited=issue_key(database, plan="free", python=python),
        help=petstore("serve", "--help", python=python),
    )


def _outcome(attack: Attack, tree: Tree, seconds: float, core: str | None) -> Outcome:
    """Attack a server of the tree, on a copy of its store."""
    print(f"{attack.name}, {attack.callers:,} callers, on {tree.name}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=tree.store.parent) as folder:
        store = shutil.copy(tree.store, folder)
        port = free_port()
        served = ("serve", "--port", str(port), "--database", f"sqlite:///{store}")
        command = (tree.python, "-m", "petstore", *served, *options_of(attack, tree.help))
        with running(command, port, Path(folder) / "log", core=core) as server:
            return _attack(attack, tree, server, attack.seconds or seconds)


def options_of(attack: Attack, known: str) -> list[str]:
    """Return the options of the server that is attacked, of those in the help ``known``."""
    return [word for option in attack.options if option[0] in known.split() for word in option]


def _attack(attack: Attack, tree: Tree, server: Server, seconds: float) -> Outcome:
    asyncio.run(request_steadily(server.port, tree.unlimited, _WARM_UP))
    usual = _good_client(server, tree, _WARM_UP)[1] / _WARM_UP
    megabytes = server.megabytes
    target = Target(server.port, server.pid, tree.unlimited, tree.limited)
    callers = attack.callers, attack.addresses, seconds, attack.after
    with attackers.attacking(attack.kind, target, *callers) as seen:
        good, spent = _good_client(server, tree, seconds, keeps_alive=attack.keeps_alive)
        peak = server.peak_megabytes
    responses = sum(times for name, times in seen.items() if name.isdigit())
    return Outcome(
        attack=attack.name,
        tree=tree.name,
        callers=attack.callers,
        p50=round(good.percentile(0.5), 1),
        p99=round(good.percentile(0.99), 1),
        worst=round(max(good.times), 1),
        asked=len(good.times),
        failed=good.failed,
        megabytes=round(peak - megabytes, 1),
        cores=round(spent / good.seconds, 2),
        cpu=round((spent - usual * seconds) / responses * 1e6) if responses else None,
        seen=dict(seen),
    )


def _good_client(
    server: Server, tree: Tree, seconds: float, *, keeps_alive: bool = True
) -> tuple[Requests, float]:
    """Return what the good client saw in ``seconds``, and the CPU of the server in seconds."""
    before = server.cpu_seconds
    asking = request_steadily(server.port, tree.unlimited, seconds, keeps_alive=keeps_alive)
    return asyncio.run(asking), server.cpu_seconds - before


if __name__ == "__main__":
    main()
