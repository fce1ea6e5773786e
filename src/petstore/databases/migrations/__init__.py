"""The schema, as numbered SQL files of each kind of database."""

import re
from functools import cache
from pathlib import Path

from petstore.errors import UnusableDatabase

APPLICATION_ID = 0x50455453  # "PETS": marks a SQLite file as a store, and names the migration lock


@cache
def scripts(database: str) -> tuple[str, ...]:
    """Return the SQL of each version of the schema of ``database``, the first one first."""
    is_script = re.compile(rf"{database}_[0-9]+\.sql").fullmatch
    paths = sorted(path for path in Path(__file__).parent.iterdir() if is_script(path.name))
    return tuple(path.read_text("utf-8") for path in paths)


def require_known(version: int, newest: int) -> int:
    if version > newest:
        raise UnusableDatabase(
            f"the database has schema version {version}, made by a newer petstore;"
            f" this one knows versions up to {newest}: install the newer version"
        )
    return version
