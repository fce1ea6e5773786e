"""Two stores that a program keeps equal, while it and both services are killed."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.mirrors import Shop, client_of, kept_rows, pets, start_mirror
from support.waiting import within

_KILLS = 12
_EQUAL_SECONDS = 60.0


@contextmanager
def _stores(trial: Trial, number: int) -> Iterator[tuple[Deployment, Deployment]]:
    """Run two services, each at an address that outlives kills, until the block ends."""
    with ExitStack() as stack:
        shop, copy = (
            stack.enter_context(
                deployed(
                    trial.folder / f"{name}-{number}",
                    listener=stack.enter_context(socket.create_server(("127.0.0.1", 0))),
                )
            )
            for name in ("shop", "copy")
        )
        yield shop, copy


def _run(trial: Trial) -> None:
    for number in trial.rounds():
        with _stores(trial, number) as (shop, copy):
            # The state of the program belongs to these two stores.
            folder = trial.folder / f"mirror-{number}"
            folder.mkdir()
            keep_equal(trial, folder, shop, copy)


def keep_equal(trial: Trial, folder: Path, shop: Deployment, copy: Deployment) -> None:
    """Kill the program and the services in turn while pets change, then compare the stores.

    The program keeps its state in ``folder``.
    """
    with client_of(shop) as client, client_of(copy) as other:
        mirror = start_mirror(folder, shop, copy)
        targets = {
            "the program": mirror.stop_and_start,
            "the service of the shop": shop.kill_service,
            "the service of the copy": copy.kill_service,
        }
        try:
            with Shop(client, trial.random) as trading:
                for turn in range(_KILLS):
                    trading.stop.wait(trial.random.uniform(0.1, 0.6))
                    name = [*targets][turn % 4 % 3]  # the program twice as often
                    targets[name]()
                    trial.count(f"kills of {name}")
                    trial.count("kills")
            is_equal = within(_EQUAL_SECONDS, lambda: pets(client) == pets(other))
            trial.expect(is_equal, "the stores are not equal")
            if is_equal:
                total = pets(client).total()
                is_lean = within(_EQUAL_SECONDS, lambda: kept_rows(folder) == total)
                trial.expect(is_lean, "the program keeps rows of deleted pets")
            trial.expect(mirror.is_running, "the program ended by itself")
            trial.count("pets compared", pets(client).total())
        finally:
            mirror.stop()


EXPERIMENTS = [
    Experiment(
        "two equal stores",
        "The program of [the guide](../docs/sync.md) keeps a store equal to"
        " another, whatever is killed: it misses no change and adds no pet twice.",
        "Pets are added, changed and deleted without pause. Every 0.1 to 0.6 s the program or"
        " one of the two services gets `kill -9` and starts again. At the end the pets of both"
        " stores are compared by name, category and status.",
        _run,
        1,
        20,
    )
]
