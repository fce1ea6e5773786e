"""The commands of resources that need nothing beside the table of operations."""

from functools import partial

from petstore.cli.client import store_client_option
from petstore.cli.operations import OperationCommand
from petstore.cli.output import Secret, SectionedGroup
from petstore.pets.model import STATUSES

_TOKEN = Secret("Key", "token", "this token is shown only once.")
_SIGNING = Secret("Webhook", "secret", "this secret is shown only once.")
_LINK = Secret("Person", "invitation.url", "this link sets a password, once, within 72 hours.")
_EITHER = """With a key in PETSTORE_KEY that has the scope keys:admin, requests go to the service at
    --url. Without one, the commands work on the database itself.
    """

_command = OperationCommand
_admin = partial(OperationCommand, client=store_client_option)
_creating = partial(OperationCommand, client=partial(store_client_option, creates=True))

categories = SectionedGroup(
    "categories", help="List, add, change and delete the categories of a running service."
)
categories.add_commands(
    _command("list", "listCategories", "categories.list"),
    _command("add", "createCategory", "categories.create", arguments=["name"]),
    _command("show", "getCategory", "categories.get"),
    _command("change", "updateCategory", "categories.update"),
    _command("delete", "deleteCategory", "categories.delete"),
)

# Those with a help text stand beside groups: `petstore --help` does not import the table.
inventory = _command(
    "inventory",
    "getInventory",
    "inventory.get",
    columns=["categoryId", *STATUSES],
    help="Count the pets of each status.",
)
sales = _command(
    "sales",
    "getSales",
    "sales.get",
    columns=["day", "categoryId", "orders", "amount", "returns", "refunded"],
    help="Count the sales and returns, and add up the money, by day or by category.",
)
usage = _command(
    "usage",
    "getUsage",
    "usage.get",
    columns=["date", "hour", "operation", "requests", "calls", "lastCalledAt", "sunset", "use"],
    help="Show what your key has used, and what is left.",
)
deprecations = _admin(
    "deprecations",
    "listDeprecations",
    "keys.deprecations",
    columns=["keyId", "keyName", "operation", "calls", "lastCalledAt", "sunset", "use"],
    help="List the keys that called deprecated operations in the last 30 days.",
)

_keys = partial(
    _admin,
    columns=[
        *("id", "name", "plan", "state", "lastUsedAt", "expiresAt", "bannedUntil", "perMinute"),
        *("perDay", "tokenEnds", "environment", "scopes", "createdAt"),
    ],
)
rotate_own = _command(
    "rotate-key",
    "rotateCurrentKey",
    "keys.rotate_current",
    secret=_TOKEN,
    help="Issue a new token for your own key. Without --grace, the old one ends at once.",
)
keys = SectionedGroup(
    "keys",
    help=f"""Issue, list, change and revoke API keys. A running service applies it within a second.

    {_EITHER}""",
)
keys.add_commands(
    _creating("create", "createKey", "keys.create", secret=_TOKEN),
    _keys("list", "listKeys", "keys.list"),
    _keys("show", "getKey", "keys.get"),
    _keys("change", "updateKey", "keys.update"),
    _keys("rotate", "rotateKey", "keys.rotate", secret=_TOKEN),
    _keys("revoke", "revokeKey", "keys.revoke", help="Revoke a key for good."),
    _keys("unban", "unbanKey", "keys.unban"),
)

_people = partial(_admin, columns=["id", "name", "login", "role", "state", "lastSeenAt"])
_update_person = partial(_people, operation_id="updatePerson", method="people.update")
people = SectionedGroup(
    "people",
    help=f"""Add, invite and change the people of the console. A running service applies it at once.

    {_EITHER}""",
)
people.add_commands(
    _creating(
        "add",
        "createPerson",
        "people.create",
        secret=_LINK,
        help="Add a person, and print a link that sets a password. It begins with --url.",
    ),
    _people("list", "listPeople", "people.list"),
    _people("show", "getPerson", "people.get"),
    _update_person("change", only=["name", "login", "role"]),
    _people(
        "invite",
        "invitePerson",
        "people.invite",
        secret=_LINK,
        help="""Print a link with which a person sets a new password. Earlier links end.

        The current password works until the link is used.
        """,
    ),
    _update_person(
        "disable",
        fixed={"state": "disabled"},
        help="Disable a person: they are signed out, and cannot sign in until enabled again.",
    ),
    _update_person(
        "enable",
        fixed={"state": "active"},
        help="Enable a person again, who then signs in with the same password.",
    ),
)

_webhooks = partial(
    _admin, columns=["id", "url", "enabled", "disabledReason", "lastSuccessAt", "types", "owner"]
)
_update_webhook = partial(_webhooks, operation_id="updateWebhook", method="webhooks.update")
webhooks = SectionedGroup(
    "webhooks",
    help="""Send the events of your key to a server of yours, signed.

    The key needs the scope webhooks:write. Without a key in PETSTORE_KEY, the commands work on the
    database itself; create and rotate need a key.
    """,
)
webhooks.add_commands(
    _command("create", "createWebhook", "webhooks.create", arguments=["url"], secret=_SIGNING),
    _webhooks("list", "listWebhooks", "webhooks.list"),
    _webhooks("show", "getWebhook", "webhooks.get"),
    _update_webhook("change", only=["url", "types", "description"]),
    _webhooks("rotate", "rotateWebhook", "webhooks.rotate", secret=_SIGNING),
    _webhooks("test", "testWebhook", "webhooks.test"),
    _admin(
        "deliveries",
        "listWebhookDeliveries",
        "webhooks.deliveries",
        columns=[
            *("id", "type", "state", "attempts", "responseStatus", "error", "resource"),
            *("nextAttemptAt", "createdAt", "eventId"),
        ],
    ),
    _webhooks("retry", "retryWebhookDelivery", "webhooks.retry"),
    _webhooks("recover", "recoverWebhook", "webhooks.recover"),
    _update_webhook(
        "disable", fixed={"enabled": False}, help="Pause a webhook until it is enabled again."
    ),
    _update_webhook(
        "enable", fixed={"enabled": True}, help="Send events to a webhook again, from now on."
    ),
    _webhooks("delete", "deleteWebhook", "webhooks.delete"),
)
