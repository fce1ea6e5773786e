"""What may import what: packages in one order, and the store behind the operations."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import petstore

ROOT = Path(petstore.__file__).parent
OPENERS = (
    "petstore.databases.sqlite",
    "petstore.databases.postgres_connection",
    "petstore.databases.postgres",
    "petstore.databases.sqlite_connection",
    "petstore.databases.sqlite_commits",
    "petstore.databases.migrations",
    "petstore.databases.backups",
    "petstore.databases.store_copies",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            source = node.module or ""
            names = (f"{source}.{alias.name}" for alias in node.names)
            found.update(name if name in MODULES else source for name in names)
    return frozenset(found)


def own_imports(module: str) -> frozenset[str]:
    return imports(module) & MODULES.keys() - {"petstore"}


def is_in_any(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def users_of(library: str) -> list[str]:
    return [
        module for module in MODULES if any(is_in_any(name, (library,)) for name in imports(module))
    ]


RESOURCES = (
    *("pets", "orders", "categories", "keys", "events", "webhooks", "usage"),
    *("sales", "people", "imports"),
)
ORDER = (
    *("time_slices", "http", "clock", "errors", "coalescing", "generations"),
    *(
        "domain",
        "model",
        "logs",
        "periodic_tasks",
        "settings",
        "redis_client",
        "databases",
        "limits",
    ),
    *("store", "interface", "operations", "console", "pages", "observability", "backends"),
    *("app", "server", "samples", "cli", "commands", "agents", "asgi", "__main__"),
)
"""The packages and, of the resources, the layers: each imports itself and what is before it."""

LAYERS = {"operations": ("operations",), "pages": ("pages",), "commands": ("commands",)}
"""The last word of the names of the modules in each layer of a resource.

Every other module is in the layer ``store`` if it reads or writes the database, else in ``model``.
"""

LISTS = {
    "petstore.interface.operations": ("operations",),
    "petstore.console.console": ("pages",),
    "petstore.cli.main": ("commands", "agents"),
}
"""The modules that list what each resource has in a layer, and so import what is after them."""

# A pet has a category and is sold on its own page; the page of a key shows its usage.
SHARED = ("categories.pages", "orders.pages", "usage.operations")
"""The modules of the upper layers that another resource imports."""


@cache
def place(module: str) -> str:
    package, _, name = module.removeprefix("petstore.").partition(".")
    if package not in RESOURCES:
        return package
    for layer, endings in LAYERS.items():
        if name.split("_")[-1] in endings:
            return layer
    return "store" if any(map(is_store, own_imports(module))) else "model"


@cache
def is_store(module: str) -> bool:
    if place(module) == "databases":
        return module != "petstore.databases.private_files"
    is_above = ORDER.index(place(module)) > ORDER.index("store")
    return not is_above and any(map(is_store, own_imports(module)))


def test_a_module_imports_only_what_is_before_it_in_the_order() -> None:
    found = []
    for module in MODULES.keys() - {"petstore"}:
        allowed = (*ORDER[: ORDER.index(place(module)) + 1], *LISTS.get(module, ()))
        found += [(module, name) for name in own_imports(module) if place(name) not in allowed]
    assert found == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    TopologicalSorter({module: own_imports(module) for module in MODULES}).prepare()


def test_a_resource_imports_no_operations_pages_or_commands_of_another() -> None:
    found = [
        (module, name)
        for module in MODULES
        for name in own_imports(module)
        if place(module) in LAYERS and place(name) in LAYERS
        if module.split(".")[1] != name.split(".")[1]
    ]
    assert {name for _, name in found} == {f"petstore.{name}" for name in SHARED}


def test_a_model_is_pure() -> None:
    assert [name for name in MODULES if name.endswith(".model") and is_store(name)] == []


CALLERS_OF_OPERATIONS = ("console", "pages", "cli", "commands", "agents")
PAST_OPERATIONS = {
    # Work on the database as a whole.
    "cli.databases",
    # Where the feed of events is, before a page is read: no operation gives it alone.
    "console.console",
    # Names of callers, and the order before a pet's event: no operation gives them.
    "console.history",
    # Until the command line carries out operations alone.
    "orders.commands",
}
"""What still imports stores. A module that no longer does must leave this list."""


def uses_store(module: str) -> bool:
    return any(map(is_store, own_imports(module))) or any(
        isinstance(node, ast.Attribute) and node.attr == "store" for node in ast.walk(tree(module))
    )


def test_only_operations_and_what_they_are_made_of_use_the_store() -> None:
    found = {
        module.removeprefix("petstore.")
        for module in MODULES
        if place(module) in CALLERS_OF_OPERATIONS and uses_store(module)
    }
    assert found == PAST_OPERATIONS


COMMAND_LINE = (
    *("petstore.agents", "petstore.cli"),
    *(module for module in MODULES if place(module) == "commands"),
)
LIBRARIES = {
    "apsw": OPENERS,
    "argon2": ("petstore.people.passwords",),
    "asyncpg": OPENERS,
    **dict.fromkeys(("redis", "hiredis"), ("petstore.redis_client",)),
    "opentelemetry": ("petstore.observability",),
    "python_calamine": ("petstore.imports.tables",),
    "httptools": ("petstore.http", "petstore.webhooks.sender"),
    "uvloop": ("petstore.server",),
    "jinja2": ("petstore.console.templates",),
    "multipart": ("petstore.console.forms",),
    "mcp": ("petstore.agents",),
    **dict.fromkeys(("click", "petstore_client"), COMMAND_LINE),
}
"""Each with its adapters, which alone import it."""


def test_a_library_is_imported_only_by_its_adapter() -> None:
    for library, adapters in LIBRARIES.items():
        users = users_of(library)
        assert users != [], library
        assert [user for user in users if not is_in_any(user, adapters)] == [], library
