"""The client of Redis and Valkey: the only package that imports the library ``redis``."""
