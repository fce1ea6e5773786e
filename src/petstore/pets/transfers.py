"""Animals from a file to a running service, and back, over HTTP."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import asdict

from petstore.cli.output import OnProgress
from petstore.pets.imports import ImportRun
from petstore.pets.model import NewPet

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

_MAX_PAGE = 100


def send_pets(client: "Client", run: ImportRun, from_line: int) -> int:
    """Send the animals of a file to a service, and return how many had been added before.

    The idempotency key of each is the digest of the file and its line. So while the service has
    the records of a day, no animal is added twice, however often the file is sent. Nothing before
    ``from_line`` is sent; rows that the file itself shows to be bad are refused there, too.

    Raises:
        OSError: the file cannot be read.
        petstore_client.PetstoreError: a request failed.
    """
    from petstore_client.errors import BadRequest

    added_before = 0
    for rows in run.batches(1):
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
