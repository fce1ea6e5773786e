"""Pages that quote results: a program writes the tables between two comments of a page.

``<!-- table: NAME -->`` begins the table of that name, ``<!-- end -->`` ends it.
"""

import re

_TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def quoted(text: str, tables: dict[str, str]) -> str:
    """Return a page with these tables in their places.

    Raises:
        ValueError: the page does not have a place for each of the tables and for no other.
    """
    names = [found[2] for found in _TABLE.finditer(text)]
    if sorted(names) != sorted(tables):
        msg = f"the page has places for {names}, not for {list(tables)}"
        raise ValueError(msg)
    return _TABLE.sub(lambda found: f"{found[1]}{tables[found[2]]}\n{found[3]}", text)
