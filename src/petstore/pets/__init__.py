"""Pets: list, find, add, change, delete, import and export."""
