"""Deprecated operations, and the keys that still call them."""
