"""The layers of the program: which package may import which."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import petstore

ROOT = Path(petstore.__file__).parent
OPENERS = (
    "petstore.databases.sqlite",
    "petstore.databases.postgres",
    "petstore.databases.postgres_connection",
    "petstore.databases.sqlite_connection",
    "petstore.databases.migrations",
    "petstore.databases.backups",
    "petstore.databases.copies",
    "petstore.databases.last_writes",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def imports(module: str) -> Iterator[str]:
    """Yield what ``module`` imports, wherever in it: modules, not names out of them."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            source = node.module or ""
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                yield submodule if submodule in MODULES else source


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_in_any(module: str, packages: tuple[str, ...]) -> bool:
    return any(is_in(module, package) for package in packages)


def modules_of(*packages: str) -> list[str]:
    return [module for module in MODULES if is_in_any(module, packages)]


BASICS = ("clock", "errors")
KNOWN = {
    "clock": (),
    "errors": (),
    "chores": BASICS,
    "logs": BASICS,
    "domain": BASICS,
    "settings": (*BASICS, "domain"),
    "redis_client": BASICS,
    "rate_limits": (*BASICS, "domain", "redis_client"),
    "databases": (*BASICS, "domain"),
    "store": (
        *(*BASICS, "domain", "rate_limits.contract"),
        *("databases.contract", "databases.copies.contract"),
    ),
    "api": (
        *(*BASICS, "domain", "store", "logs"),
        *("databases.contract", "databases.replicas", "databases.secret_files", "http.messages"),
        *("rate_limits.contract", "rate_limits.minutes"),
    ),
    "console": (
        *(*BASICS, "domain", "store", "api"),
        *("databases.contract", "http.messages", "rate_limits.contract", "rate_limits.minutes"),
    ),
    "webhooks": (*BASICS, "domain", "store", "chores", "logs", "databases.contract"),
    "http": (),
    "observability": (
        *(*BASICS, "domain", "store", "api", "chores", "http", "logs"),
        *("databases.contract", "rate_limits.contract"),
    ),
}
"""The table of docs/architecture.md: what a package may import besides itself."""

WIRING = ("app", "asgi", "cli", "server")
"""Which may import anything, but for the command line."""


@pytest.mark.parametrize("module", modules_of(*(f"petstore.{name}" for name in KNOWN)))
def test_a_module_knows_only_what_its_package_may_know(module: str) -> None:
    package = module.split(".")[1]
    allowed = tuple(f"petstore.{name}" for name in (package, *KNOWN[package]))
    known = [name for name in imports(module) if is_in(name, "petstore")]
    assert [name for name in known if not is_in_any(name, allowed)] == []


@pytest.mark.parametrize("module", MODULES)
def test_only_entry_points_import_the_command_line(module: str) -> None:
    # petstore.asgi reads the settings of the environment as the command line does.
    if not is_in_any(module, ("petstore.cli", "petstore.__main__", "petstore.asgi")):
        assert [name for name in imports(module) if is_in(name, "petstore.cli")] == []


def test_every_package_has_its_rule() -> None:
    packages = {module.split(".")[1] for module in MODULES if "." in module}
    assert packages == {*KNOWN, *WIRING, "__main__", "samples"}


@pytest.mark.parametrize(
    ("library", "packages"),
    [
        ("apsw", OPENERS),
        ("asyncpg", OPENERS),
        ("redis", ("petstore.redis_client",)),
        ("prometheus_client", ("petstore.observability",)),
        ("opentelemetry", ("petstore.observability",)),
        ("cryptography", ("petstore.domain.sealing", "petstore.domain.webhook_secrets")),
        ("httptools", ("petstore.http", "petstore.webhooks.sender")),
        ("uvloop", ("petstore.server",)),
        ("jinja2", ("petstore.console.templates",)),
        ("multipart", ("petstore.console.forms",)),
        *((library, ("petstore.cli",)) for library in ("click", "rich", "petstore_client")),
    ],
)
def test_a_library_stays_behind_its_adapter(library: str, packages: tuple[str, ...]) -> None:
    users = [module for module in MODULES if any(is_in(name, library) for name in imports(module))]
    assert users != []
    assert [user for user in users if not is_in_any(user, packages)] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(TREES[module])


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_printed_past_the_command_line_and_the_log(module: str) -> None:
    names = [node for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)]
    assert "print" not in {name.id for name in names}
