"""All experiments, in the order in which they run."""

from proof.experiment import Experiment
from proof.experiments import (
    bad_requests,
    console,
    crowds,
    disk_faults,
    imports,
    kills,
    lists,
    mirrors,
    parsing,
    plans,
    properties,
    restarts,
    silence,
    soak,
)

EXPERIMENTS: list[Experiment] = [
    *kills.EXPERIMENTS,
    *disk_faults.EXPERIMENTS,
    *restarts.EXPERIMENTS,
    *imports.EXPERIMENTS,
    *lists.EXPERIMENTS,
    *mirrors.EXPERIMENTS,
    *silence.EXPERIMENTS,
    *crowds.EXPERIMENTS,
    *console.EXPERIMENTS,
    *plans.EXPERIMENTS,
    *parsing.EXPERIMENTS,
    *bad_requests.EXPERIMENTS,
    *properties.EXPERIMENTS,
    *soak.EXPERIMENTS,
]
