"""``petstore people``, on a database itself and over HTTP."""

import re
import secrets

import pytest

from support.command import Command
from support.shop import Shop

LINK = re.compile(r"(.+)/console/invitation/([A-Za-z0-9_-]{43})\n")
GRACE = ("--name", "Grace Hopper", "--login", "grace@shop.example", "--role", "clerk")


def test_the_link_of_a_new_person_is_alone_on_standard_output(admin_shop: Shop) -> None:
    added = admin_shop("people", "add", *GRACE, "--login", secrets.token_hex(4))
    assert LINK.fullmatch(added.stdout)
    said = r"Person (\d+) \(Grace Hopper\): this link sets a password, once, within 72 hours"
    found = re.match(said, added.stderr)
    assert found is not None
    invited = admin_shop("people", "invite", found[1])
    assert LINK.fullmatch(invited.stdout)
    assert invited.stdout != added.stdout
    admin_shop.succeed("people", "disable", found[1])
    words = admin_shop.fail("people", "invite", found[1], status=4)
    assert words == f"person {found[1]} is disabled; enable the account first"


@pytest.mark.parametrize(
    ("options", "public_url", "address"),
    [
        ((), "", "http://127.0.0.1:8000"),
        ((), "https://shop.example/a/", "https://shop.example/a"),
        (("--url", "http://[::1]:81/v1"), "https://shop.example", "http://[::1]:81"),
    ],
)
def test_a_link_begins_with_the_address_of_the_service(
    command: Command, options: tuple[str, ...], public_url: str, address: str
) -> None:
    environment = {"PETSTORE_PUBLIC_URL": public_url}
    added = command("people", "add", *GRACE, *options, **environment)
    assert added.stderr.startswith(f"No database at {command.database}; creating it.\n")
    for printed in (added.stdout, command("people", "invite", "1", *options, **environment).stdout):
        link = LINK.fullmatch(printed)
        assert link is not None
        assert link[1] == address
