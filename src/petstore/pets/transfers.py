"""Animals from a file to a running service, and back, over HTTP."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import asdict

from petstore.cli.output import OnProgress
from petstore.domain.names import name_key
from petstore.pets.imports import ImportRun
from petstore.pets.model import NewPet

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

_MAX_PAGE = 100


def send_pets(
    client: "Client", run: ImportRun, from_line: int, *, category_names: bool = False
) -> int:
    """Send the animals of a file to a service, and return how many had been added before.

    The idempotency key of each is the digest of the file and its line. So while the service has
    the records of a day, no animal is added twice, however often the file is sent. Nothing before
    ``from_line`` is sent; rows that the file itself shows to be bad are refused there, too. With
    ``category_names``, the category of a row of CSV may be a name.

    Raises:
        OSError: the file cannot be read.
        petstore_client.PetstoreError: a request failed.
    """
    from petstore_client.errors import BadRequest

    added_before, layout = 0, run.file.layout
    ids: dict[str, int] | None = None
    for rows in run.batches(1):
        if category_names and (names := layout.category_names(rows)):
            ids = _category_ids(client) if ids is None else ids
            found = {name: ids[name_key(name)] for name in names.values() if name_key(name) in ids}
            layout.name_categories(rows, names, found)
        for place, row in enumerate(rows):
            if row.pet is None or row.line < from_line:
                continue
            once = f"{run.file.digest.hex()}-{row.line}"
            try:
                response = client.pets.create.raw(**_arguments(row.pet), idempotency_key=once)
            except BadRequest as error:
                rows[place] = row.refused(error.message)
            else:
                is_replayed = "Idempotent-Replayed" in response.headers
                added_before += is_replayed
                run.added += not is_replayed
    return added_before


def _category_ids(client: "Client") -> dict[str, int]:
    """Return the ids of all categories, by the keys of their names."""
    pages = client.categories.pages(limit=_MAX_PAGE)
    return {name_key(each.name): each.id for page in pages for each in page.items}


def fetch_pets(
    client: "Client", write: Callable[[dict[str, Any]], object], on_progress: OnProgress
) -> int:
    """Write every animal of a service, and return how many there are.

    Raises:
        petstore_client.PetstoreError: a request failed.
    """
    count = 0
    for page in client.pets.pages(limit=_MAX_PAGE):
        for pet in page.response.json():
            write(pet)
        count += len(page.items)
        on_progress(count)
    return count


def _arguments(pet: NewPet) -> dict[str, Any]:
    """Return the members of an animal under the names that the client has for them."""
    return {name: value for name, value in asdict(pet).items() if value is not UNSET}
