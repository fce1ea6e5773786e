"""Imports: files of pets as shops have them, read, understood and added."""
