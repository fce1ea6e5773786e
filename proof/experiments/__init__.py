"""All experiments, in the order in which they run."""

from proof.experiment import Experiment
from proof.experiments import kills

EXPERIMENTS: list[Experiment] = [
    *kills.EXPERIMENTS,
]
