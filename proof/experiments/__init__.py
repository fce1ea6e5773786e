"""All experiments, in the order in which they run."""

from proof.experiment import Experiment
from proof.experiments import disk_faults, kills

EXPERIMENTS: list[Experiment] = [
    *kills.EXPERIMENTS,
    *disk_faults.EXPERIMENTS,
]
