"""All experiments, in the order in which they run."""

from proof.experiment import Experiment
from proof.experiments import (
    clocks,
    console,
    crowds,
    disk_faults,
    imports,
    kills,
    lists,
    mirrors,
    power_cuts,
    restarts,
    silence,
    soak,
    store_copies,
)

EXPERIMENTS: list[Experiment] = [
    *kills.EXPERIMENTS,
    *power_cuts.EXPERIMENTS,
    *disk_faults.EXPERIMENTS,
    *clocks.EXPERIMENTS,
    *restarts.EXPERIMENTS,
    *imports.EXPERIMENTS,
    *store_copies.EXPERIMENTS,
    *lists.EXPERIMENTS,
    *mirrors.EXPERIMENTS,
    *silence.EXPERIMENTS,
    *crowds.EXPERIMENTS,
    *console.EXPERIMENTS,
    *soak.EXPERIMENTS,
]
