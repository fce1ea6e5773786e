"""The version of the distribution, which is released together with the service."""

__version__ = "1.0.0"
