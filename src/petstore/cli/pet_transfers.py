"""Animals from a file to a running service, and back, over HTTP."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import to_builtins

from petstore.cli.output import OnProgress
from petstore.domain.pets import NewPet
from petstore.store.pet_files import FileFormat, FileRow, read_rows

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

OnRefused: TypeAlias = Callable[[FileRow], None]

_MAX_PAGE = 100


class Source(NamedTuple):
    """A file to import."""

    path: Path
    file_format: FileFormat


@dataclass
class Sending:
    """Sends the animals of a file to a service, from the ``line`` on that comes next.

    The idempotency key of each is the digest of the file and its line. So while the service has
    the records of a day, no animal is added twice, however often the file is sent.
    """

    source: Source
    line: int
    added: int = 0
    added_before: int = 0
    refused: int = 0

    def way_on(self) -> str:
        """Return what is done, and how to go on."""
        done = f"all before line {self.line} of {self.source.path} is done"
        again = f"Run the same command with --from-line {self.line} to go on"
        return f"{done}. {again}; within a day, nothing is added twice"

    def run(self, client: "Client", on_refused: OnRefused, on_progress: OnProgress) -> None:
        """Send them. Rows that the file itself shows to be bad are refused before ``line``, too.

        Raises:
            InvalidBody: the file is not a table of pets.
            OSError: the file cannot be read.
            petstore_client.PetstoreError: a request failed.
        """
        from_line = self.line
        with self.source.path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            file.seek(0)
            for row in read_rows(file, self.source.file_format):
                self.line = max(row.line, from_line)
                outcome = row
                if row.pet is not None and row.line >= from_line:
                    outcome = self._send(client, row, row.pet, f"{digest}-{row.line}")
                if outcome.pet is None:
                    on_refused(outcome)
                    self.refused += 1
                on_progress(file.tell())

    def _send(self, client: "Client", row: FileRow, pet: NewPet, idempotency_key: str) -> FileRow:
        """Send an animal and return its row, without the animal if the service refuses it."""
        from petstore_client.errors import BadRequest

        try:
            response = client.pets.create.raw(**_arguments(pet), idempotency_key=idempotency_key)
        except BadRequest as error:
            return row._replace(pet=None, reason=error.message)
        if "Idempotent-Replayed" in response.headers:
            self.added_before += 1
        else:
            self.added += 1
        return row


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
    members = to_builtins(pet)
    return {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in members.items()}
