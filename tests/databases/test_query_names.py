"""Names of statements, which metrics and traces use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import petstore

SOURCE = Path(petstore.__file__).parent
TAKE_NAMES = ("databases/pages.py", "events/search.py", "imports/store.py")
"""The modules with a function that makes statements, and takes their names from its callers."""
IS_OF_TABLE = re.compile(r"f'[a-z]+_\{(self\.)?(table|items)\}'").fullmatch
IS_FIXED = re.compile(r"[a-z]+(_[a-z]+)*").fullmatch


def statements() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Statement":
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def test_every_statement_has_a_name_without_caller_data() -> None:
    found = dict(statements())
    assert len(found) > 40
    for location, call in found.items():
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert "name" in given, f"{location}: expected name="
        name = given["name"]
        text = ast.unparse(name)
        is_parameter = text == "name" and location.partition(":")[0] in TAKE_NAMES
        is_table = IS_OF_TABLE(text) is not None
        is_constant = re.fullmatch("_[A-Z]+", text) is not None
        assert is_parameter or is_table or is_constant or IS_FIXED(ast.literal_eval(name)), location
