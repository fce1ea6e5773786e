"""Whoever types the commands of a page sees what the page shows.

A ``console`` block is run, see ``support/console.py``. A ``sh`` block is not, but is well formed.
"""

import os
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

from support.console import blocks, console
from support.postgres import PostgresServer
from support.programs import needs

ROOT = Path(__file__).parent.parent
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/*/*.md"))
}
RUN = [name for name, text in TEXTS.items() if "```console" in text]
# What the reader has done before.
DEMO = """
```console
$ make serve
Petstore is at  http://127.0.0.1:8000/v1
$ export PETSTORE_KEY=$(cat petstore.db.demo-key)
```
"""
# The owner is told of a deprecated call within seconds: not while the page shows other events.
TOLD = f"""{DEMO}
```console
$ AUTH="Authorization: Bearer $PETSTORE_KEY"
$ curl -s -H "$AUTH" http://127.0.0.1:8000/v1/pets/1 > /dev/null
$ TOLD="http://127.0.0.1:8000/v1/events?type=deprecation.used"
$ until curl -s -H "$AUTH" $TOLD | grep --quiet getPet; do sleep 0.5; done
```
"""
STORE = """
```console
$ make serve
Petstore is at  http://127.0.0.1:8000/v1
```
"""
KEYS = """
```console
$ make serve
Petstore is at  http://127.0.0.1:8000/v1
$ petstore keys create --name "Corner shop" --plan free
Key 6 (Corner shop): this token is shown only once.
ps_live_…
```
"""
FILES = f"""{DEMO}
```console
$ printf 'name,categoryId,status\\nMuesli,4,available\\n,4,available\\nStrudel,1,lost\\n' > new.csv
$ echo 'Knödel,1,' >> new.csv
```
"""
SECRETS = """
```console
$ mkdir /run/secrets
$ echo redis://:secret@cache:6379 > /run/secrets/redis
$ petstore keys create --name app --plan pro \\
    --database postgresql://petstore@db/petstore > /dev/null 2>&1
```
"""
SERVICE = """
```console
$ mkdir /etc/petstore && echo PETSTORE_DEMO=1 > /etc/petstore/petstore.env
$ systemctl start petstore
$ echo > /etc/petstore/petstore.env
$ echo secret > ~/.petstore-password
$ PETSTORE_KEY=$(cat /var/lib/petstore/petstore.db.demo-key)
```
"""
PRIVATE = """
```console
$ PETSTORE_WEBHOOK_NETWORK=127.0.0.0/8 make serve
Petstore is at  http://127.0.0.1:8000/v1
```
"""
SECRET = """
```console
$ (umask 077 && openssl rand -base64 32 > /var/lib/petstore/petstore.db.secret)
```
"""
PROXIED = f"""{SERVICE}
```console
$ mkdir /etc/ssl
$ openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \\
    -subj /CN=shop.example -addext subjectAltName=DNS:shop.example \\
    -out /etc/ssl/shop.example.pem -keyout /etc/ssl/shop.example.key 2> /dev/null
$ echo "resolve = shop.example:443:127.0.0.1" >> ~/.curlrc
$ echo "cacert = /etc/ssl/shop.example.pem" >> ~/.curlrc
```
"""
COMMANDS = ("console", "sh")
SETUPS = {
    "docs/README.md": DEMO,
    "docs/agents.md": STORE,
    "docs/authentication.md": STORE,
    "docs/client.md": TOLD,
    "docs/events.md": DEMO,
    "docs/http.md": DEMO,
    "docs/importing.md": FILES,
    "docs/keys.md": KEYS,
    "docs/limits.md": DEMO,
    "docs/moving.md": SERVICE + SECRET,
    "docs/operating.md": SECRETS,
    "docs/orders.md": DEMO,
    "docs/pagination.md": DEMO,
    "docs/people.md": KEYS,
    "docs/pets.md": DEMO,
    "docs/proxy.md": PROXIED,
    "docs/receive-webhooks.md": PRIVATE,
    "docs/retries.md": DEMO,
    "docs/upgrading.md": SERVICE,
}
# Texts of a page, with what they are here; programs that only one page needs.
PLACES = {
    "docs/proxy.md": {"https://shop.example": "https://shop.example:443"},
    "docs/operating.md": {"cache:6379": "127.0.0.1:6379"},
}
NEEDS = {"docs/proxy.md": "nginx"}


@pytest.mark.parametrize("name", RUN)
def test_a_page_shows_the_output_of_its_commands(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name in NEEDS and not which(NEEDS[name], path=f"{os.environ['PATH']}:/usr/sbin"):
        pytest.skip(needs(NEEDS[name]))
    places = dict(PLACES.get(name, {}))
    if "@db/" in TEXTS[name]:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        for url in re.findall(r"postgresql://petstore@db/\w+", TEXTS[name]):
            places[url] = places.get(url) or postgres.new_database()
    with console(tmp_path, places) as reader:
        reader.play(SETUPS.get(name, ""))
        reader.play(TEXTS[name])


def test_a_page_sets_the_variables_that_it_uses() -> None:
    for name, text in TEXTS.items():
        commands = "".join(block.text for block in blocks(text) if block.language in COMMANDS)
        for variable in ("API", "AUTH"):
            used, is_set = f"${variable}", f"{variable}="
            assert used not in commands.partition(is_set)[0], f"{name}: {used}"


def test_commands_that_are_not_run_are_well_formed() -> None:
    for name, text in TEXTS.items():
        script = "\n".join(block.text for block in blocks(text) if block.language == "sh")
        checked = subprocess.run(
            ["bash", "-n"],  # noqa: S607 - the one of the reader
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not checked.stderr, name


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("right", "wrong"),
        ("1   dog", "1  dog"),
        ("2026-01-01 to 2026-02-01", "2026-11-21 to 2026-11-21"),
    ],
    ids=["words", "columns", "days"],
)
def test_a_page_with_other_output_fails(printed: str, shown: str, tmp_path: Path) -> None:
    page = f"```console\n$ echo '{printed}'\n{shown}\n```"
    with (
        console(tmp_path) as reader,
        pytest.raises(AssertionError, match=rf"line 2: \$ echo '{printed}'"),
    ):
        reader.play(page)
