"""Petstore: an HTTP JSON service for the pets a store offers."""

__version__ = "1.0.0"
