"""What the service weighs for a reader, so that nobody makes it heavier unseen."""

import ast
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

import petstore
from support.service import Service
from support.visitor import signed_in_person

ROOT = Path(petstore.__file__).parent


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def errors_raised_again() -> list[str]:
    """Return where an error is raised that was made before: its traceback has what has the error.

    Only the garbage collector frees such a circle, with the frames and all that they hold.
    """
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Raise) and not _is_new(node.exc, function)
    ]


def _is_new(error: ast.expr | None, function: ast.AST) -> bool:
    """Return whether an error is made as it is raised, from a class too, or is being handled."""
    if not isinstance(error, ast.Name | ast.Attribute):
        return error is None or isinstance(error, ast.Call | ast.Await)
    name = error.id if isinstance(error, ast.Name) else error.attr
    handlers = (node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler))
    return name[0].isupper() or name in {handler.name for handler in handlers}


_is_counted: ContextVar[bool] = ContextVar("_is_counted", default=False)
"""Whether a task was started by the act, and not by the service in the background."""


async def files_run(act: Callable[[int], Awaitable[object]]) -> set[str]:
    """Return the files whose functions ``act`` runs, each time that it is called with a number."""
    runs: list[set[str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(ROOT)) and _is_counted.get():
            runs[-1].add(Path(file).relative_to(ROOT).as_posix())

    token = _is_counted.set(True)
    sys.setprofile(note)
    try:
        for number in range(1, 6):
            runs.append(set())
            await act(number)
    finally:
        sys.setprofile(None)
        _is_counted.reset(token)
    return set.intersection(*runs)


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_no_function_has_more_than_60_lines() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} {lines}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (lines := _lines(node)) > 60
    ]
    assert found == []


def test_no_class_name_is_used_twice() -> None:
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_error_is_stored_and_raised_later() -> None:
    assert errors_raised_again() == []


@pytest.mark.anyio
async def test_a_cold_list_runs_few_files(service: Service) -> None:
    token = (await service.issue()).token
    files = await files_run(
        lambda number: service.request("GET", f"/v1/pets?limit={number}", token)
    )
    assert len(files) <= 20, sorted(files)


@pytest.mark.anyio
@pytest.mark.usefixtures("dogs")
async def test_a_change_in_the_console_runs_few_files(service: Service) -> None:
    visitor = await signed_in_person(service, role="clerk")
    await visitor.submit("/pets", name="0", categoryId="1", status="available", once="a")
    files = await files_run(
        lambda number: visitor.post("/pets/1", was_name=str(number - 1), name=str(number))
    )
    assert len(files) <= 33, sorted(files)
