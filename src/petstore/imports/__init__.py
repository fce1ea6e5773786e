"""Imports: files of pets, read, decided about, added and undone."""
