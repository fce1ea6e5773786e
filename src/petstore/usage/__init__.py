"""Usage: what each key has used."""
