"""Petstore: an HTTP JSON service for the animals a store offers."""

__version__ = "2.0.0"
