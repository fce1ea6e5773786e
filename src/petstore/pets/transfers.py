"""Animals from a file to a running service, and back, over HTTP."""

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from petstore.cli.output import OnProgress
from petstore.domain.fields import given_fields
from petstore.domain.names import name_key
from petstore.pets.files import FileRow
from petstore.pets.imports import ImportRun, pets_of

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore_client import Client

_MAX_ITEMS = 100
_DAY_LEFT = re.compile(r'"day";r=([0-9]+)')
# Such a batch was not added, but some of its animals may be: by themselves, or with other keys.
_NOT_ADDED = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_NO_BATCHES = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)


def send_pets(
    client: "Client", run: ImportRun, from_line: int, *, category_names: bool = False
) -> int:
    """Send the animals of a file to a service, and return how many had been added before.

    While the service has the records of a day, no animal is added twice, however often the file is
    sent. Nothing before ``from_line`` is sent; rows that the file itself shows to be bad are
    refused there, too. With ``category_names``, the category of a row of CSV may be a name.

    Raises:
        OSError: the file cannot be read.
        petstore_client.PetstoreError: a request failed.
    """
    sender = _Sender(client, run, from_line)
    for rows in run.batches(_MAX_ITEMS):
        sender.send(rows, sender.name_categories(rows) if category_names else {})
    return sender.added_before


class _Sender:
    """Sends the rows of a file in batches, or one by one where the service does not take a batch.

    The batches of a file are the same in each run. The idempotency key of a row is the digest of
    the file and its line; a batch has the key of its first row. Rows whose categories are names
    have keys of their own: other runs may not know these names. A batch that has some of them, or
    not all of them, is sent row by row.
    """

    def __init__(self, client: "Client", run: ImportRun, from_line: int) -> None:
        self._client = client
        self._run = run
        self._from_line = from_line
        self._has_batches = True
        self._day_left = client.usage.get().day.remaining
        self._category_ids: dict[str, int] | None = None
        self._category_names: list[str] = []
        self.added_before = 0

    def name_categories(self, batch: list[FileRow]) -> dict[int, bool]:
        """Replace rows whose categories are names; return the lines of these, and if it is known.

        Unknown ones are refused.
        """
        layout = self._run.file.layout
        names = layout.category_names(batch)
        if names and self._category_ids is None:
            by_name = _category_ids(self._client)
            self._category_ids = {name_key(name): number for name, number in by_name.items()}
            self._category_names = [*by_name]
        ids = self._category_ids or {}
        found = {name: ids[name_key(name)] for name in names.values() if name_key(name) in ids}
        layout.name_categories(batch, names, found, self._category_names)
        return {batch[place].line: name in found for place, name in names.items()}

    def send(self, batch: list[FileRow], named: Mapping[int, bool]) -> None:
        """Send what is to be sent of a batch of the file, perhaps row by row."""
        rows = [row for row in batch if row.pet is not None]
        if not rows or not self.is_due(rows[-1]):
            return
        parts = [
            _RowByRow(
                self, [row for row in rows if (row.line in named) == has_names], batch[0], mark
            )
            for has_names, mark in ((False, ""), (True, "-named"))
        ]
        is_uniform = all(named.values()) and len(named) in (0, len(rows))
        if is_uniform and self.is_due(rows[0]) and self._is_added(rows, parts[bool(named)].key):
            return
        for row in batch:
            self._run.line = row.line
            self._run.settle([parts[row.line in named].sent(row)])
        batch.clear()

    def is_due(self, row: FileRow) -> bool:
        """Return whether a row is to be sent."""
        return row.pet is not None and row.line >= self._from_line

    def post(self, row: FileRow, key: str) -> Mapping[str, str]:
        """Send a row, and return the headers of the response."""
        arguments = given_fields(pets_of([row])[0])
        return self._client.pets.create.raw(**arguments, idempotency_key=key).headers

    def post_batch(self, rows: Sequence[FileRow], key: str) -> Mapping[str, str]:
        """Send rows as a batch, and return the headers of the response."""
        from petstore_client.models import NewPet as Item

        items = [Item(**given_fields(pet)) for pet in pets_of(rows)]
        return self._client.pets.create_many.raw(items, idempotency_key=key).headers

    def count(self, headers: Mapping[str, str], rows: int) -> None:
        """Count the rows of a response, and note what the day has left after it."""
        if "Idempotent-Replayed" in headers:
            self.added_before += rows
        else:
            self._run.added += rows
        if left := _DAY_LEFT.search(headers.get("RateLimit", "")):
            self._day_left = int(left[1])

    def key(self, row: FileRow) -> str:
        """Return the idempotency key of a row, and of the batch that it begins."""
        return f"{self._run.file.digest.hex()}-{row.line}"

    def _is_added(self, rows: Sequence[FileRow], key: str) -> bool:
        """Send a batch, and return whether the service has all of it."""
        from petstore_client.errors import ErrorResponse

        if not self._has_batches or self._day_left < len(rows):
            return False
        try:
            headers = self.post_batch(rows, key)
        except ErrorResponse as error:
            self._has_batches = error.status not in _NO_BATCHES
            if self._has_batches and error.status not in _NOT_ADDED:
                raise
            return False
        self.count(headers, len(rows))
        return True


class _RowByRow:
    """Rows that are sent one by one, though they could be a batch, in this run or in another.

    The first one that is accepted takes the ``key`` of the batch, so that the batch cannot be added
    later. ``_owner`` is the line of the row that has it, once that is known, or 0 if the batch has.
    """

    def __init__(self, sender: _Sender, rows: Sequence[FileRow], first: FileRow, mark: str) -> None:
        self._sender = sender
        self._rows = rows
        self._mark = mark
        self._owner: int | None = None
        self.key = sender.key(first) + mark

    def sent(self, row: FileRow) -> FileRow:
        """Send a row if it is due, and return it, without its animal if the service refuses it."""
        from petstore_client.errors import BadRequest, IdempotencyKeyReused

        if not self._sender.is_due(row):
            return row
        if self._owner == 0:
            self._sender.added_before += 1
            return row
        try:
            headers = self._sender.post(row, self._key_of(row))
        except BadRequest as error:
            return row.refused(error.message)
        except IdempotencyKeyReused:
            if self._owner is not None:
                raise
            self._owner = self._find_owner()
            return self.sent(row)
        self._owner = self._owner or row.line
        self._sender.count(headers, 1)
        return row

    def _key_of(self, row: FileRow) -> str:
        if self._owner is None or row.line == self._owner:
            return self.key
        # Those before it were refused in an earlier run. The own key of one is that of the batch.
        late = "-late" if row.line < self._owner else ""
        return self._sender.key(row) + self._mark + late

    def _find_owner(self) -> int:
        """Return which row has the key of the batch: with it, nothing else can be added.

        Raises:
            petstore_client.errors.IdempotencyKeyReused: it is none of the rows, nor all of them.
        """
        from petstore_client.errors import IdempotencyKeyReused

        for row in self._rows:
            try:
                self._sender.post(row, self.key)
            except IdempotencyKeyReused:
                continue
            return row.line
        self._sender.post_batch(self._rows, self.key)
        return 0


def _category_ids(client: "Client") -> dict[str, int]:
    """Return the ids of all categories by their names."""
    pages = client.categories.list(limit=_MAX_ITEMS).pages()
    return {each.name: each.id for page in pages for each in page.items}


def fetch_pets(
    client: "Client", write: Callable[[dict[str, Any]], object], on_progress: OnProgress
) -> int:
    """Write every animal of a service, and return how many there are.

    Raises:
        petstore_client.PetstoreError: a request failed.
    """
    count = 0
    for page in client.pets.list(limit=_MAX_ITEMS).pages():
        for pet in page.response.json():
            write(pet)
        count += len(page.items)
        on_progress(count)
    return count
