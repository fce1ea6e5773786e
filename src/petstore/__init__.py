"""Petstore: an HTTP JSON service for the animals a store offers."""

__version__ = "1.0.0"
