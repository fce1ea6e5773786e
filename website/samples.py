"""How to call each operation: with curl, and with the Python client."""

import json
import re
from shlex import quote

from petstore.interface.operation import Operation

_EXAMPLE_ID = "7"
# Key 7 is no person: both share their ids.
_EXAMPLE_PERSON = "5"
_QUERIES = {
    "listPets": "?status=available&limit=20",
    "listOrders": "?status=placed",
    "getSales": "?timeZone=Europe/Berlin",
    "listEvents": "?type=order.placed&wait=25",
}
_CALLS = {
    "listPets": 'for pet in client.pets.list(status="available"):\n    print(pet.id, pet.name)',
    "createPet": 'pet = client.pets.create(name="Bella", category_id=1, status="available")',
    "createPets": (
        "from petstore_client.models import NewPet\n\n"
        'pets = client.pets.create_many([NewPet(name="Bella", category_id=1)])'
    ),
    "getPet": "pet = client.pets.get(7)  # It requests GET /v1/pets?id=7, which replaces getPet.",
    "updatePet": 'pet = client.pets.update(7, status="sold")',
    "deletePet": "client.pets.delete(7)",
    "listCategories": (
        "for category in client.categories.list():\n    print(category.id, category.name)"
    ),
    "createCategory": 'category = client.categories.create(name="Ferrets")',
    "getCategory": "category = client.categories.get(7)",
    "updateCategory": 'category = client.categories.update(7, description="Great and small.")',
    "deleteCategory": "client.categories.delete(7)",
    "listImports": "for each in client.imports.list():\n    print(each.file_name, each.state)",
    "createImport": (
        'found = client.imports.create(b"name,category\\nBella,Dogs\\n", file_name="pets.csv")'
    ),
    "getImport": "found = client.imports.get(7)",
    "updateImport": 'found = client.imports.update(7, unknown_categories="create")',
    "runImport": "while client.imports.run(7).waiting:\n    pass",
    "undoImport": "while client.imports.undo(7).waiting:\n    pass",
    "getImportRefused": "rows = client.imports.refused(7)",
    "deleteImport": "client.imports.delete(7)",
    "listOrders": 'for order in client.orders.list(status="placed"):\n    print(order.pet_id)',
    "placeOrder": 'order = client.orders.place(pet_id=7, buyer="Jane Doe", amount=24900)',
    "getOrder": "order = client.orders.get(7)",
    "updateOrder": 'order = client.orders.update(7, status="approved")',
    "cancelOrder": "client.orders.cancel(7)",
    "getInventory": "inventory = client.inventory.get()",
    "getSales": (
        'sales = client.sales.get(time_zone="Europe/Berlin")\n'
        "for row in sales.rows:\n    print(row.day, row.orders, row.amount, row.currency)"
    ),
    "listEvents": (
        'for event in client.events.follow(types=["order.placed"]):\n'
        "    print(event.type, event.resource)"
    ),
    "listKeys": "for key in client.keys.list():\n    print(key.id, key.name)",
    "createKey": 'key = client.keys.create(name="Corner shop", plan="pro")',
    "getKey": "key = client.keys.get(7)",
    "updateKey": 'key = client.keys.update(7, plan="business")',
    "revokeKey": "client.keys.revoke(7)",
    "rotateKey": "key = client.keys.rotate(7, grace_seconds=3600)",
    "rotateCurrentKey": "key = client.keys.rotate_current(grace_seconds=3600)",
    "getKeyUsage": "usage = client.keys.usage(7)",
    "unbanKey": "client.keys.unban(7)",
    "listPeople": "for person in client.people.list():\n    print(person.name, person.state)",
    "createPerson": (
        'person = client.people.create(name="Grace", login="grace@shop.example", role="clerk")'
    ),
    "getPerson": "person = client.people.get(5)",
    "updatePerson": 'person = client.people.update(5, role="manager")',
    "invitePerson": "link = client.people.invite(5).invitation.url",
    "listDeprecations": (
        "for use in client.keys.deprecations():\n    print(use.key_name, use.operation, use.calls)"
    ),
    "getUsage": "usage = client.usage.get()",
    "listWebhooks": "for webhook in client.webhooks.list():\n    print(webhook.url)",
    "createWebhook": 'webhook = client.webhooks.create(url="https://shop.example/hooks")',
    "getWebhook": "webhook = client.webhooks.get(7)",
    "updateWebhook": "webhook = client.webhooks.update(7, enabled=False)",
    "deleteWebhook": "client.webhooks.delete(7)",
    "rotateWebhook": "webhook = client.webhooks.rotate(7)",
    "testWebhook": "client.webhooks.test(7)",
    "listWebhookDeliveries": (
        "for delivery in client.webhooks.deliveries(7):\n    print(delivery.type, delivery.state)"
    ),
    "retryWebhookDelivery": "delivery = client.webhooks.retry(7, 7)",
    "recoverWebhook": (
        "since = datetime(2026, 11, 21, tzinfo=UTC)\nclient.webhooks.recover(7, since=since)"
    ),
}


def curl(operation: Operation) -> str:
    """Return a command that calls ``operation``; the shell has the address and the key."""
    lines = [f'curl "$PETSTORE_URL{_path(operation)}"', '-H "Authorization: Bearer $PETSTORE_KEY"']
    lines += [f'-H "{name}: {value}"' for name, value in _headers(operation).items()]
    # With a body, curl sends POST automatically.
    if operation.method != ("GET" if operation.body is None else "POST"):
        lines.append(f"-X {operation.method}")
    if operation.media_types:
        lines.append(f"--data-binary {quote(operation.body_example)}")
    elif operation.body is not None:
        lines.append(f"--json {quote(json.dumps(operation.body_example, ensure_ascii=False))}")
    return " \\\n  ".join(lines)


def python(operation: Operation) -> str:
    """Return a program that calls ``operation`` with ``petstore_client``."""
    call = _CALLS[operation.id]
    standard = "from datetime import UTC, datetime\n\n" if "datetime" in call else ""
    return f"{standard}from petstore_client import Client\n\nclient = Client()\n{call}"


def typescript(operation: Operation) -> str:
    """Return a program that calls ``operation`` with ``fetch``."""
    headers = {"Authorization": "`Bearer ${process.env.PETSTORE_KEY}`"}
    headers |= {f'"{name}"': f'"{value}"' for name, value in _headers(operation).items()}
    options = [] if operation.method == "GET" else [f'method: "{operation.method}",']
    if operation.body is not None and not operation.media_types:
        headers['"Content-Type"'] = '"application/json"'
    options += ["headers: {", *(f"  {name}: {value}," for name, value in headers.items()), "},"]
    if operation.media_types:
        options.append(f"body: {json.dumps(operation.body_example, ensure_ascii=False)},")
    elif operation.body is not None:
        example = json.dumps(operation.body_example, ensure_ascii=False)
        options.append(f"body: JSON.stringify({example}),")
    lines = "".join(f"  {line}\n" for line in options)
    call = f"const response = await fetch(`${{process.env.PETSTORE_URL}}{_path(operation)}`, {{"
    return f"{call}\n{lines}}});\nconsole.log(response.status, await response.text());"


def _path(operation: Operation) -> str:
    path = operation.path.replace("{personId}", _EXAMPLE_PERSON)
    return re.sub(r"{\w+}", _EXAMPLE_ID, path) + _QUERIES.get(operation.id, "")


def _headers(operation: Operation) -> dict[str, str]:
    found = {"Idempotency-Key": f"{operation.id}-1"} if operation.method == "POST" else {}
    return found | ({"Content-Type": "text/csv"} if operation.media_types else {})
