"""A whole store as tables of rows, to be copied from one database to another."""
