"""The client of a Petstore service."""

__version__ = "1.0.0"
