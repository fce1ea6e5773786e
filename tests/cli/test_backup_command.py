"""``petstore backup`` and ``petstore restore``: a store in a file, and back again."""

import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from petstore.databases.backups import last_backup
from petstore.databases.migrations import scripts
from support.callers import Customers
from support.command import Command
from support.full_disk import full_disk
from support.full_stores import assert_of_one_moment, contents, make_full_store, query
from support.next_version import become_next_version
from support.permissions import umask
from support.process import StartServer
from support.terminal import Terminal, shown_on_terminal
from support.waiting import within

OTHER = " expected another file"
VERSION = len(scripts("sqlite"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a backup that is not there yet."""
    return tmp_path / "kept" / "backup.db"


@pytest.fixture
def stocked(command: Command, file: Path) -> Command:
    """The command, on a store with something in every table."""
    make_full_store(command.database)
    file.parent.mkdir()
    return command


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Interrupt this process, as Ctrl-C does, where it opens a SQLite file."""

    def interrupt(_: apsw.Connection) -> None:
        raise KeyboardInterrupt

    apsw.connection_hooks.append(interrupt)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(interrupt)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        *(
            (f"{name} {{file}} --database postgresql://127.0.0.1/shop", 2, words)
            for name, words in dict.fromkeys(
                ("backup", "restore"),
                "for PostgreSQL, use its own programs: pg_dump, pg_restore and pg_basebackup",
            ).items()
        ),
        ("backup {odd} --force", 2, "Invalid value for 'FILE': {odd!r}: expected text in UTF-8."),
        ("restore {odd} --force", 2, "Invalid value for 'FILE': {odd!r}: expected text in UTF-8."),
        ("backup {file}", 1, "{file} already exists; use --force to replace it"),
        ("backup {link}", 1, "{link} already exists; use --force to replace it"),
        ("restore {file}", 1, "{database} already exists; use --force to replace it"),
        ("backup {none}/backup.db", 1, "{none}/backup.db: No such file or directory"),
        ("backup {link} --force", 1, "{database} is the database itself; expected another file"),
        ("restore {link} --force", 1, "{link} is the database itself; expected another file"),
        ("backup {pipe} --force", 1, "{pipe}: expected a file, found a folder, pipe or device"),
        ("backup {piped} --force", 1, "{piped}: expected a file, found a folder, pipe or device"),
        *(
            (
                f"restore {{file}} --force --database sqlite:///{{{target}}}",
                1,
                "{pipe}: expected a file, found a folder, pipe or device",
            )
            for target in ("pipe", "piped")
        ),
        ("restore {part} --force", 1, "{part} has the name of the temporary copy; rename it first"),
        *(
            (
                f"backup --force {{database}}{ending}",
                1,
                f"{{database}}{ending} is reserved for the time of the last backup;{OTHER}",
            )
            for ending in (".last-backup", ".last-backup.part")
        ),
    ],
)
def test_what_cannot_be_a_backup_or_a_store_is_refused(
    stocked: Command, file: Path, tmp_path: Path, arguments: str, status: int, words: str
) -> None:
    names = {"file": file, "database": stocked.database, "none": tmp_path / "none"}
    names |= {name: tmp_path / name for name in ("link", "pipe", "piped")}
    names |= {"odd": tmp_path / "backup\udcff.db", "part": Path(f"{stocked.database}.part")}
    stocked.succeed("backup", str(file))
    names["odd"].touch()
    names["part"].write_bytes(file.read_bytes())
    os.mkfifo(names["pipe"])
    names["piped"].symlink_to(names["pipe"])
    names["link"].symlink_to(stocked.database)
    before = file.read_bytes(), contents(stocked.url)
    shown = {name: str(path) for name, path in names.items()}
    assert stocked.fail(*arguments.format(**shown).split(), status=status) == words.format(**shown)
    assert (file.read_bytes(), contents(stocked.url)) == before
    assert names["pipe"].is_fifo()


def test_a_mistyped_store_is_refused(command: Command, tmp_path: Path) -> None:
    words = command.fail("backup", str(tmp_path / "backup.db"), status=1)
    assert words.startswith(f"there is no store at {command.database}")
    words = command.fail("backup", str(tmp_path / "b.db"), "--database", "shop.db", status=2)
    assert words.startswith("Invalid value for '--database'")
    assert ": expected sqlite:///" in words
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_previous_file(stocked: Command, file: Path) -> None:
    file.write_text("of yesterday")
    with full_disk():
        words = stocked.fail("backup", str(file), "--force", status=1)
    copying = f"{stocked.database} cannot be copied to {file}.part"
    assert words == f"{copying}: a disk is full or failing"
    assert file.read_text() == "of yesterday"
    assert list(file.parent.iterdir()) == [file]


def test_a_restore_brings_back_the_backup(stocked: Command, file: Path, tmp_path: Path) -> None:
    said = stocked.succeed("backup", str(file))
    assert said == f"{stocked.database} is backed up in {file}.\n"
    before = contents(url_of(stocked.database))
    elsewhere = tmp_path / "elsewhere.db"
    said = stocked.succeed("restore", str(file), "--database", url_of(elsewhere))
    assert said == f"{elsewhere} is restored from {file}.\n"
    assert contents(url_of(elsewhere)) == before


def test_a_backup_is_one_file_that_only_its_owner_can_read(stocked: Command, file: Path) -> None:
    stocked.database.chmod(0o644)
    with umask(0):
        stocked.succeed("backup", str(file))
    assert [path.name for path in file.parent.iterdir()] == ["backup.db"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert query(url_of(file), "PRAGMA journal_mode") == [("delete",)]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_symlink_as_backup_file_is_replaced_with_force(
    stocked: Command, file: Path, tmp_path: Path, *, is_there: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if is_there:
        elsewhere.write_text("of somebody else")
    file.symlink_to(elsewhere)
    stocked.succeed("backup", str(file), "--force")
    assert not file.is_symlink()
    assert contents(url_of(file)) == contents(url_of(stocked.database))
    assert not is_there or elsewhere.read_text() == "of somebody else"
    assert elsewhere.exists() == is_there


def test_a_backup_includes_changes_that_are_only_in_the_wal(stocked: Command, file: Path) -> None:
    other = apsw.Connection(str(stocked.database))
    other.execute("INSERT INTO usage VALUES (1, 7, 7)")
    stocked.succeed("backup", str(file))
    other.close()
    assert (1, 7, 7) in query(url_of(file), "SELECT key_id, day, requests FROM usage")


def test_a_damaged_database_is_not_backed_up(stocked: Command, file: Path) -> None:
    page = query(
        url_of(stocked.database), "SELECT rootpage FROM sqlite_schema WHERE name = 'pets_by_status'"
    )[0][0]
    with stocked.database.open("r+b") as damaged:
        damaged.seek((page - 1) * 4096 + 4000)
        damaged.write(b"\7" * 90)
    words = stocked.fail("backup", str(file), status=1)
    assert words.startswith(f"{stocked.database}: it is damaged: ")
    assert list(file.parent.iterdir()) == []


def test_the_database_of_another_program_is_not_backed_up(command: Command, file: Path) -> None:
    with sqlite3.connect(command.database) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    file.parent.mkdir()
    words = command.fail("backup", str(file), status=1)
    assert words == f"{command.database}: it contains no petstore store"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it contains no petstore store"),
        (b"name,categoryId\nRex,1\n" * 100, "file is not a database"),
    ],
)
def test_a_file_that_is_not_a_backup_is_refused(
    stocked: Command, file: Path, content: bytes, words: str
) -> None:
    file.write_bytes(content)
    before = contents(url_of(stocked.database))
    said = stocked.fail("restore", str(file), "--force", status=1)
    assert said.startswith(f"{file}: ")
    assert words in said
    assert contents(url_of(stocked.database)) == before


@pytest.mark.parametrize(
    ("name", "sql", "words"),
    [
        ("backup", "DROP INDEX open_orders", f"version {VERSION}: index open_orders is missing"),
        ("restore", "DROP TABLE usage", f"version {VERSION}: table usage is missing"),
        (
            "restore",
            "INSERT INTO usage VALUES (99, 1, 1)",
            "it is damaged: a row of usage refers to one of api_keys that does not exist",
        ),
    ],
    ids=["missing index", "missing table", "broken reference"],
)
def test_a_store_with_a_changed_schema_is_not_backed_up_or_restored(
    stocked: Command, file: Path, name: str, sql: str, words: str
) -> None:
    stocked.succeed("backup", str(file))
    source, target = (stocked.database, file) if name == "backup" else (file, stocked.database)
    query(url_of(source), sql)
    before = contents(url_of(target))
    said = stocked.fail(name, str(file), "--force", status=1)
    assert said.startswith(f"{source}: ")
    assert said.endswith(words)
    assert contents(url_of(target)) == before


def test_a_backup_of_an_older_version_is_migrated(
    stocked: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stocked.succeed("backup", str(file))
    become_next_version(monkeypatch)
    stocked.succeed("restore", str(file), "--force")
    assert query(url_of(stocked.database), "PRAGMA user_version") == [(VERSION + 1,)]
    assert query(url_of(file), "PRAGMA user_version") == [(VERSION,)]


def test_the_wal_of_the_previous_store_is_not_applied_to_the_restored_one(
    stocked: Command, file: Path, tmp_path: Path
) -> None:
    """As after a power cut: there are changes in the log that are not in the database yet."""
    stocked.succeed("backup", str(file))
    kept = contents(url_of(stocked.database))
    living = apsw.Connection(str(stocked.database))
    living.execute("DELETE FROM orders")
    crashed = tmp_path / "crashed.db"
    for ending in ("", "-wal"):
        copied = stocked.database.with_name(stocked.database.name + ending).read_bytes()
        crashed.with_name(crashed.name + ending).write_bytes(copied)
    living.close()
    stocked.succeed("restore", str(file), "--force", "--database", url_of(crashed))
    assert contents(url_of(crashed)) == kept


def test_a_database_beyond_repair_can_be_replaced(stocked: Command, file: Path) -> None:
    stocked.succeed("backup", str(file))
    kept = contents(url_of(stocked.database))
    stocked.database.write_bytes(b"nothing of use" * 1000)
    link = file.with_name("link.db")
    link.symlink_to(stocked.database)
    file.chmod(0o644)
    with umask(0):
        stocked.succeed("restore", str(file), "--force", "--database", url_of(link))
    assert link.is_symlink()
    assert stocked.database.stat().st_mode & 0o777 == 0o600
    assert contents(url_of(stocked.database)) == kept


def test_a_terminal_shows_the_progress_of_backup_and_restore(stocked: Command, file: Path) -> None:
    for arguments, words in ((("backup",), "Backing up"), (("restore", "--force"), "Restoring")):
        shown = shown_on_terminal(*arguments, str(file), PETSTORE_DATABASE=stocked.url)
        assert words in shown.text
        assert re.search(r": ([0-9]+) of \1\n", shown.text)


def test_a_service_in_use_is_not_replaced(start: StartServer, tmp_path: Path) -> None:
    server, command, file = start(), Command(tmp_path / "petstore.db"), str(tmp_path / "backup.db")
    command.succeed("backup", file)
    words = command.fail("restore", file, "--force", status=1)
    assert words == f"{command.database} is in use: first stop the program that uses it"
    server.stop()
    command.succeed("restore", file, "--force")


def test_a_backup_under_load_loses_no_change(start: StartServer, tmp_path: Path) -> None:
    server = start()
    file, restored = str(tmp_path / "backup.db"), Command(tmp_path / "restored.db")
    with Customers(server, server.issue()) as buyers:
        assert within(30, lambda: len(buyers.orders) > 20)
        pets_before, orders_before = list(buyers.pets), list(buyers.orders)
        Command(tmp_path / "petstore.db").succeed("backup", file)
        buyers.order_more(1)
    assert 503 not in buyers.statuses
    restored.succeed("restore", file)
    assert query(restored.url, "PRAGMA integrity_check") == [("ok",)]
    assert_of_one_moment(contents(restored.url), pets_before, orders_before)


@pytest.mark.parametrize(
    ("name", "end"),
    [("backup", signal.SIGKILL), ("backup", signal.SIGINT), ("restore", signal.SIGKILL)],
)
def test_an_interrupted_run_leaves_the_old_file_or_a_complete_one(
    stocked: Command, file: Path, name: str, end: signal.Signals
) -> None:
    stocked.succeed("backup", str(file))
    source, target = (stocked.database, file) if name == "backup" else (file, stocked.database)
    query(
        url_of(source),
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)"
        " INSERT INTO pets (name, category_id) SELECT 'pet ' || i, i FROM n",
    )
    kept = target.read_bytes()
    beside = {path.name for path in target.parent.iterdir()}
    arguments = (name, "--force", str(file), "--database", url_of(stocked.database))
    with Terminal(*arguments, cwd=file.parent) as terminal:
        part = target.with_name(f"{target.name}.part")
        assert within(30, lambda: part.exists() and part.stat().st_size)
        terminal.process.send_signal(end)
        terminal.wait()
    assert "Traceback" not in terminal.text
    count, all_of_them = "SELECT count(*) FROM pets", [(40_007,)]
    assert target.read_bytes() == kept or query(url_of(target), count) == all_of_them
    assert part.exists() <= (end == signal.SIGKILL)
    stocked.succeed(*arguments)
    assert query(url_of(target), count) == all_of_them
    assert {path.name for path in target.parent.iterdir()} == beside


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_an_interrupted_run_says_that_nothing_was_changed(
    stocked: Command, file: Path, name: str
) -> None:
    stocked.succeed("backup", str(file))
    target = file if name == "backup" else stocked.database
    before = contents(url_of(target))
    with interrupted_at_once():
        words = stocked.fail(name, "--force", str(file), status=1)
    assert words == f"interrupted: {target} is unchanged; run the same command again"
    assert contents(url_of(target)) == before
    assert not target.with_name(f"{target.name}.part").exists()


def test_the_time_of_a_successful_backup_is_recorded(stocked: Command, file: Path) -> None:
    before = time.time()
    stocked.succeed("backup", str(file))
    assert before - 0.001 <= last_backup(stocked.database) <= time.time()
    os.utime(f"{stocked.database}.last-backup", (1, 1))
    stocked.fail("backup", str(stocked.database), "--force", status=1)
    assert last_backup(stocked.database) == 1
