"""All experiments, in the order in which they run."""

from proof.experiment import Experiment
from proof.experiments import crowds, disk_faults, kills, silence, soak

EXPERIMENTS: list[Experiment] = [
    *kills.EXPERIMENTS,
    *disk_faults.EXPERIMENTS,
    *silence.EXPERIMENTS,
    *crowds.EXPERIMENTS,
    *soak.EXPERIMENTS,
]
