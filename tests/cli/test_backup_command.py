"""``petstore backup`` and ``petstore restore``: a store in a file, and back again."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from petstore.databases.backups import last_backup, note_of
from petstore.databases.migrations import scripts
from support.callers import Customers
from support.command import Command
from support.full_stores import assert_of_one_moment, contents, make_full_store, query
from support.next_version import become_next_version
from support.permissions import full_disk, umask
from support.process import StartServer
from support.terminal import Terminal, shown_on_terminal
from support.waiting import within

OTHER = " expected another file"
NO_FILE = "expected a file, found a folder, pipe or device"
FOR_POSTGRESQL = "for PostgreSQL, use its own programs: pg_dump, pg_restore and pg_basebackup"
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


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("backup {file} --database postgresql://127.0.0.1/shop", 2, FOR_POSTGRESQL),
        ("restore {file} --database postgresql://127.0.0.1/shop", 2, FOR_POSTGRESQL),
        ("backup {odd} --force", 2, "Invalid value for 'FILE': {odd!r}: expected text in UTF-8."),
        ("restore {odd} --force", 2, "Invalid value for 'FILE': {odd!r}: expected text in UTF-8."),
        ("backup {none} --database sqlite:///{none}", 1, "there is no store at {none}; petstore"),
        ("backup {file}", 1, "{file} already exists; use --force to replace it"),
        ("backup {link}", 1, "{link} already exists; use --force to replace it"),
        ("backup {dangling}", 1, "{dangling} already exists; use --force to replace it"),
        ("restore {file}", 1, "{database} already exists; use --force to replace it"),
        ("backup {none}/backup.db", 1, "{none}/backup.db: No such file or directory"),
        ("backup {link} --force", 1, "{database} is the database itself; expected another file"),
        ("restore {link} --force", 1, "{link} is the database itself; expected another file"),
        ("backup {pipe} --force", 1, f"{{pipe}}: {NO_FILE}"),
        ("backup {piped} --force", 1, f"{{piped}}: {NO_FILE}"),
        ("restore {file} --force --database sqlite:///{pipe}", 1, f"{{pipe}}: {NO_FILE}"),
        ("restore {file} --force --database sqlite:///{piped}", 1, f"{{pipe}}: {NO_FILE}"),
        ("restore {part} --force", 1, "{part} has the name of the temporary copy; rename it first"),
        ("backup --force {note}", 1, "{note} is reserved for the time of the last backup;" + OTHER),
        (
            "backup --force {note}.part",
            1,
            "{note}.part is reserved for the time of the last backup;" + OTHER,
        ),
    ],
)
def test_what_cannot_be_a_backup_or_a_store_is_refused(
    stocked: Command, file: Path, tmp_path: Path, arguments: str, status: int, words: str
) -> None:
    names = {"file": file, "database": stocked.database, "note": note_of(stocked.database)}
    names |= {name: tmp_path / name for name in ("link", "dangling", "pipe", "piped", "none")}
    names |= {"odd": tmp_path / "backup\udcff.db", "part": Path(f"{stocked.database}.part")}
    stocked.succeed("backup", str(file))
    names["odd"].touch()
    names["part"].write_bytes(file.read_bytes())
    os.mkfifo(names["pipe"])
    for link, target in (("piped", "pipe"), ("link", "database"), ("dangling", "none")):
        names[link].symlink_to(names[target])
    before = file.read_bytes(), contents(stocked.url)
    shown = {name: str(path) for name, path in names.items()}
    said = stocked.fail(*arguments.format(**shown).split(), status=status)
    assert said.startswith(words.format(**shown))
    assert (file.read_bytes(), contents(stocked.url)) == before
    assert names["pipe"].is_fifo()
    assert not names["none"].exists()


def test_with_force_a_complete_backup_replaces_a_file_or_a_link_but_not_its_target(
    stocked: Command, file: Path, tmp_path: Path
) -> None:
    file.write_text("of yesterday")
    with full_disk():
        words = stocked.fail("backup", str(file), "--force", status=1)
    copying = f"{stocked.database} cannot be copied to {file}.part"
    assert words == f"{copying}: a disk is full or failing"
    assert file.read_text() == "of yesterday"
    assert list(file.parent.iterdir()) == [file]
    elsewhere = file.rename(tmp_path / "elsewhere")
    for target in (elsewhere, tmp_path / "none"):
        file.symlink_to(target)
        stocked.succeed("backup", str(file), "--force")
        assert not file.is_symlink()
        assert contents(url_of(file)) == contents(stocked.url)
        file.unlink()
    assert elsewhere.read_text() == "of yesterday"
    assert not (tmp_path / "none").exists()


def test_a_backup_is_a_private_file_from_which_everything_is_restored(
    stocked: Command, file: Path, tmp_path: Path
) -> None:
    service = apsw.Connection(str(stocked.database))
    service.execute("INSERT INTO usage VALUES (1, 7, 7)")  # only in the write-ahead log
    stocked.database.chmod(0o644)
    began = time.time()
    with umask(0):
        said = stocked.succeed("backup", str(file))
    service.close()
    assert said == f"{stocked.database} is backed up in {file}.\n"
    assert began - 0.001 <= last_backup(stocked.database) <= time.time()
    assert list(file.parent.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o600
    assert query(url_of(file), "PRAGMA journal_mode") == [("delete",)]
    elsewhere = tmp_path / "elsewhere.db"
    said = stocked.succeed("restore", str(file), "--database", url_of(elsewhere))
    assert said == f"{elsewhere} is restored from {file}.\n"
    assert contents(url_of(elsewhere)) == contents(stocked.url)
    os.utime(note_of(stocked.database), (1, 1))
    stocked.fail("backup", str(stocked.database), "--force", status=1)
    assert last_backup(stocked.database) == 1


def corrupted(database: Path) -> None:
    """Damage an index."""
    root = "SELECT rootpage FROM sqlite_schema WHERE name = 'pets_by_status'"
    ((page,),) = query(url_of(database), root)
    with database.open("r+b") as file:
        file.seek((page - 1) * 4096 + 4000)
        file.write(b"\7" * 90)


def of_another_program(database: Path) -> None:
    database.unlink()
    query(url_of(database), "CREATE TABLE notes (text)")


def changed_by(sql: str) -> Callable[[Path], object]:
    return lambda database: query(url_of(database), sql)


def replaced_by(content: bytes) -> Callable[[Path], object]:
    return lambda database: database.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("backup", corrupted, "it is damaged: "),
        ("backup", of_another_program, "it contains no petstore store"),
        ("restore", replaced_by(b""), "it contains no petstore store"),
        ("restore", replaced_by(b"name,categoryId\nRex,1\n" * 100), "file is not a database"),
        ("restore", changed_by("DROP TABLE usage"), f"version {VERSION}: table usage is missing"),
        (
            "restore",
            changed_by("INSERT INTO usage VALUES (99, 1, 1)"),
            "it is damaged: a row of usage refers to one of api_keys that does not exist",
        ),
    ],
)
def test_a_store_that_is_damaged_or_not_one_is_not_backed_up_or_restored(
    stocked: Command, file: Path, name: str, spoil: Callable[[Path], object], words: str
) -> None:
    stocked.succeed("backup", str(file))
    source, target = (stocked.database, file) if name == "backup" else (file, stocked.database)
    spoil(source)
    before = contents(url_of(target))
    said = stocked.fail(name, str(file), "--force", status=1)
    assert said.startswith(f"{source}: ")
    assert words in said
    assert contents(url_of(target)) == before


def test_a_backup_of_an_older_version_is_migrated(
    stocked: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stocked.succeed("backup", str(file))
    become_next_version(monkeypatch)
    stocked.succeed("restore", str(file), "--force")
    assert query(stocked.url, "PRAGMA user_version") == [(VERSION + 1,)]
    assert query(url_of(file), "PRAGMA user_version") == [(VERSION,)]


def test_the_wal_of_the_previous_store_is_not_applied_to_the_restored_one(
    stocked: Command, file: Path, tmp_path: Path
) -> None:
    """As after a power cut: there are changes in the log that are not in the database yet."""
    stocked.succeed("backup", str(file))
    kept = contents(stocked.url)
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
    kept = contents(stocked.url)
    stocked.database.write_bytes(b"nothing of use" * 1000)
    link = file.with_name("link.db")
    link.symlink_to(stocked.database)
    file.chmod(0o644)
    with umask(0):
        stocked.succeed("restore", str(file), "--force", "--database", url_of(link))
    assert link.is_symlink()
    assert stocked.database.stat().st_mode & 0o777 == 0o600
    assert contents(stocked.url) == kept


def test_a_backup_under_load_loses_no_change_and_replaces_the_store_once_it_is_not_in_use(
    start: StartServer, tmp_path: Path
) -> None:
    server, command, file = start(), Command(tmp_path / "petstore.db"), str(tmp_path / "backup.db")
    with Customers(server, server.issue()) as buyers:
        assert within(30, lambda: len(buyers.orders) > 20)
        pets_before, orders_before = list(buyers.pets), list(buyers.orders)
        command.succeed("backup", file)
        buyers.order_more(1)
    assert 503 not in buyers.statuses
    words = command.fail("restore", file, "--force", status=1)
    assert words == f"{command.database} is in use: first stop the program that uses it"
    server.stop()
    command.succeed("restore", file, "--force")
    assert query(command.url, "PRAGMA integrity_check") == [("ok",)]
    assert_of_one_moment(contents(command.url), pets_before, orders_before)


@pytest.mark.parametrize(
    ("name", "end"),
    [("backup", signal.SIGKILL), ("backup", signal.SIGINT), ("restore", signal.SIGKILL)],
)
def test_an_interrupted_run_leaves_the_old_file_or_a_complete_one_and_can_be_run_again(
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
    arguments = (name, "--force", str(file), "--database", stocked.url)
    with Terminal(*arguments, cwd=file.parent) as terminal:
        part = target.with_name(f"{target.name}.part")
        assert within(30, lambda: part.exists() and part.stat().st_size)
        terminal.process.send_signal(end)
        terminal.wait()
    assert "Traceback" not in terminal.text
    count, all_of_them = "SELECT count(*) FROM pets", [(40_007,)]
    assert target.read_bytes() == kept or query(url_of(target), count) == all_of_them
    assert part.exists() <= (end == signal.SIGKILL)
    shown = shown_on_terminal(*arguments).text
    assert {"backup": "Backing up", "restore": "Restoring"}[name] in shown
    assert re.search(r": ([0-9,]+) of \1\n", shown)
    assert query(url_of(target), count) == all_of_them
    assert {path.name for path in target.parent.iterdir()} == beside


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_an_interrupted_run_says_that_nothing_was_changed(
    stocked: Command, file: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def interrupt(_: apsw.Connection) -> None:
        raise KeyboardInterrupt

    stocked.succeed("backup", str(file))
    target = file if name == "backup" else stocked.database
    before = contents(url_of(target))
    with monkeypatch.context() as patch:
        patch.setattr(apsw, "connection_hooks", [interrupt])  # when it opens a file
        words = stocked.fail(name, "--force", str(file), status=130)
    assert words == f"interrupted: {target} is unchanged; run the same command again"
    assert contents(url_of(target)) == before
    assert not target.with_name(f"{target.name}.part").exists()
