# Generated from the operations of the service by clients/python/generate.py: run `make client`.
"""The resources of the service, each with its operations."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from petstore_client._by_hand import EventFeed, PetById
from petstore_client._calls import Call, Items, Listing, called, listed
from petstore_client._faces import D, Resource, listing, operation
from petstore_client.models import (
    Category,
    Delivery,
    DeliveryState,
    EventType,
    Import,
    Inventory,
    Key,
    KeyDeprecatedUse,
    KeyWithToken,
    NewPet,
    Order,
    OrderStatus,
    Person,
    PersonRole,
    PersonWithInvitation,
    Pet,
    PetStatus,
    PlanName,
    Sales,
    SalesBy,
    Scope,
    UnknownCategories,
    Usage,
    Webhook,
    WebhookTest,
    WebhookWithSecret,
)


class Pets(PetById[D]):
    """The operations of ``client.pets``."""

    @listing
    def list(
        self,
        *,
        status: PetStatus | None = None,
        has_status: bool | None = None,
        category_id: int | None = None,
        id: int | Iterable[int] | None = None,
        name: str | None = None,
        sort: Literal["-id", "id"] | None = None,
        count: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Pet]:
        """List animals.

        Iterates over animals, by ascending ``id``. With ``sort=-id`` the newest come first. Your
        key needs the scope ``pets:read``.

        Args:
            status: Filters by availability status.
            has_status: ``false`` for the pets without a status, ``true`` for those with one. Cannot
                be ``false`` together with ``status``.
            category_id: Filters by category.
            id: Filters by identifier; one, or any number.
            name: Only pets whose name has, for each word of this text, a word that begins with it,
                in any order, ignoring case, marks on letters and punctuation inside words.
            sort: The order: ``id`` (the default), or ``-id``, the newest first. Not in a search.
            count: ``true`` adds the header ``X-Total-Count``: how many records match, or 10001 if
                there are more than 10,000.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Pet, "/pets", locals())

    @operation
    def create(
        self,
        *,
        name: str,
        category_id: int,
        status: PetStatus | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Pet]:
        """Add an animal.

        Adds a new animal. It is on disk before the response is sent. Your key needs the scope
        ``pets:write``. Raises ``UnknownCategory``.

        Args:
            name: The animal's name. 1 to 255 characters, not only white space, without U+0000.
            category_id: Identifier of the category the animal belongs to.
            status: Availability status.
        """
        return called(Pet, "POST", "/pets", locals())

    @operation
    def create_many(
        self, pets: Iterable[NewPet], *, idempotency_key: str | None = None
    ) -> Call[Items[Pet]]:
        """Add many pets.

        Adds up to 100 pets, all of them or none, and returns them in the same order. They are on
        disk before the response is sent. It costs as many requests as it has pets: one of the
        minute, and all of the day. If some are invalid, the message of the error names the place of
        each, counted from 0, as in ``[3].name: expected …``. Your key needs the scope
        ``pets:write``. Raises ``UnknownCategory``.

        Args:
            pets: At least one. Each 100 of them are a request, all of which or none are added.
        """
        return called(
            Items[Pet], "POST", "/pets/batch", {"idempotency_key": idempotency_key}, body=[*pets]
        )

    @operation
    def update(
        self,
        pet_id: int,
        *,
        name: str | UnsetType = UNSET,
        category_id: int | UnsetType = UNSET,
        status: PetStatus | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Call[Pet]:
        """Change a pet.

        Changes the fields in the body (RFC 7396). A ``status`` of ``None`` removes the status.
        ``available`` can become ``pending``, ``sold`` or none; ``pending`` can become ``available``
        or ``sold``; ``sold`` can become ``available``; none can become any status. While an open
        order reserves the pet, its status cannot change. Your key needs the scope ``pets:write``.
        Raises ``UnknownCategory`` or ``IllegalTransition`` or ``PetReserved`` or
        ``OutcomeUnknown``.

        Args:
            name: The animal's name. 1 to 255 characters, not only white space, without U+0000.
            category_id: Identifier of the category the animal belongs to.
            status: Availability status.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Pet, "PATCH", "/pets/{pet_id}", locals())

    @operation
    def delete(self, pet_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete a pet.

        Deletes a pet, unless an open order reserves it. Its ``id`` is not used again. Your key
        needs the scope ``pets:write``. Raises ``PetReserved`` or ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/pets/{pet_id}", locals())


class InventoryCounts(Resource[D]):
    """The operations of ``client.inventory``."""

    @operation
    def get(self, *, by: Literal["category"] | None = None) -> Call[Inventory]:
        """Count the pets.

        Returns the number of pets of each status. With ``by=category`` it also returns the counts
        of each category, up to 1,000 of them. Your key needs the scope ``orders:read``.

        Args:
            by: ``category`` adds the counts of each category.
        """
        return called(Inventory, "GET", "/store/inventory", locals())


class Categories(Resource[D]):
    """The operations of ``client.categories``."""

    @listing
    def list(
        self,
        *,
        id: int | Iterable[int] | None = None,
        name: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Category]:
        """List categories.

        Iterates over categories, by ascending ``id``. Your key needs the scope ``pets:read``.

        Args:
            id: Filters by identifier; one, or any number.
            name: Only the category with this name, ignoring case.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Category, "/categories", locals())

    @operation
    def create(
        self, *, name: str, description: str | None = None, idempotency_key: str | None = None
    ) -> Call[Category]:
        """Add a category.

        Adds a category. Its name must be unique, ignoring case. Your key needs the scope
        ``pets:write``. Raises ``CategoryNameTaken``.

        Args:
            name: The name, unique ignoring case.
            description: A description of the category.
        """
        return called(Category, "POST", "/categories", locals())

    @operation
    def get(self, category_id: int) -> Call[Category]:
        """Get a category.

        Returns one category. Your key needs the scope ``pets:read``.
        """
        return called(Category, "GET", "/categories/{category_id}", locals())

    @operation
    def update(
        self,
        category_id: int,
        *,
        name: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        if_match: str | None = None,
    ) -> Call[Category]:
        """Change a category.

        Changes the fields in the body (RFC 7396). A ``description`` of ``None`` removes it. Your
        key needs the scope ``pets:write``. Raises ``CategoryNameTaken`` or ``OutcomeUnknown``.

        Args:
            name: The name, unique ignoring case.
            description: A description of the category.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Category, "PATCH", "/categories/{category_id}", locals())

    @operation
    def delete(self, category_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete a category.

        Deletes a category without pets. Its ``id`` is not used again. Your key needs the scope
        ``pets:write``. Raises ``CategoryInUse`` or ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/categories/{category_id}", locals())


class Imports(Resource[D]):
    """The operations of ``client.imports``."""

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Import]:
        """List imports.

        Iterates over your imports, the newest first. An import is kept for 7 days after its last
        use. Your key needs the scope ``pets:write``.

        Args:
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Import, "/imports", locals())

    @operation
    def create(
        self,
        content: bytes,
        *,
        file_name: str | None = None,
        idempotency_key: str | None = None,
        media_type: str = "text/csv",
    ) -> Call[Import]:
        """Send a file of pets.

        Takes a file, CSV or a workbook of up to 8 MiB and 20,000 rows, and adds nothing yet: the
        response says how the file was read, and what a run would do. A file that you have sent
        before returns the import that it has, unless that was undone. Your key needs the scope
        ``pets:write``. Raises ``TooManyImports``.

        Args:
            file_name: The name of the file, which lists show.
            content: The file.
            media_type: One of text/csv,
                application/vnd.openxmlformats-officedocument.spreadsheetml.sheet,
                application/vnd.oasis.opendocument.spreadsheet, application/vnd.ms-excel.
        """
        return called(Import, "POST", "/imports", locals())

    @operation
    def get(self, import_id: int) -> Call[Import]:
        """Get an import.

        Returns one of your imports. Your key needs the scope ``pets:write``.
        """
        return called(Import, "GET", "/imports/{import_id}", locals())

    @operation
    def update(
        self,
        import_id: int,
        *,
        has_header: bool | UnsetType = UNSET,
        mapping: Mapping[str, Any] | UnsetType = UNSET,
        default_status: PetStatus | UnsetType | None = UNSET,
        default_category_id: int | UnsetType | None = UNSET,
        unknown_categories: UnknownCategories | UnsetType = UNSET,
        values: dict[str, Any] | UnsetType = UNSET,
        categories: dict[str, Any] | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Import]:
        """Change how a file is read.

        Changes the fields in the body (RFC 7396), as long as nothing is added: which columns are
        the fields, what words and categories mean, and what happens to unknown categories. The
        ``preview`` of the response is a new one, even if the body is empty. Your key needs the
        scope ``pets:write``. Raises ``UnknownCategory`` or ``ImportClosed`` or ``OutcomeUnknown``.

        Args:
            has_header: Whether a row has the names of the columns.
            mapping: Which column has which field.
            default_status: The status of pets whose rows have none.
            default_category_id: The category of pets whose rows have none.
            unknown_categories: What happens to rows whose category the store does not have:
                ``refuse`` them, or ``create`` the categories.
            values: What words of the status column mean: ``available``, ``pending``, ``sold`` or
                ``none``. Null takes back what was decided.
            categories: What categories mean that are not in the store: the ids of categories. Null
                takes back what was decided.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Import, "PATCH", "/imports/{import_id}", locals())

    @operation
    def run(self, import_id: int, *, idempotency_key: str | None = None) -> Call[Import]:
        """Run an import.

        Adds the pets of the next rows, for about a second. Call it until ``waiting`` is 0. Each row
        costs a request of the day of your key, the first one for the call. Rows that cannot be
        added are refused; ``imports.refused`` says why. Your key needs the scope ``pets:write``.
        Raises ``ImportClosed``.
        """
        return called(Import, "POST", "/imports/{import_id}/run", locals())

    @operation
    def undo(self, import_id: int, *, idempotency_key: str | None = None) -> Call[Import]:
        """Undo an import.

        Deletes the pets that the import added and that were not changed or ordered since, for about
        a second. Call it until ``waiting`` is 0; ``kept_pets`` says which pets stay and why. Each
        pet costs a request of the day of your key, as a row of a run does. Your key needs the scope
        ``pets:write``. Raises ``ImportClosed``.
        """
        return called(Import, "POST", "/imports/{import_id}/undo", locals())

    @operation
    def refused(self, import_id: int, *, limit: int | None = None) -> Call[str]:
        """Get the refused rows.

        Returns the rows that were refused as CSV, with their lines and every reason that holds now;
        before the first run, those that would be. Correct them and send the file again. Cells that
        a spreadsheet would run as a formula begin with an apostrophe. Your key needs the scope
        ``pets:write``.

        Args:
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return called(str, "GET", "/imports/{import_id}/refused", locals())

    @operation
    def delete(self, import_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete an import.

        Deletes an import. The pets that it has added stay. Your key needs the scope ``pets:write``.
        Raises ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/imports/{import_id}", locals())


class Orders(Resource[D]):
    """The operations of ``client.orders``."""

    @listing
    def list(
        self,
        *,
        status: OrderStatus | None = None,
        pet_id: int | None = None,
        buyer: str | None = None,
        placed_before: datetime | None = None,
        delivered_since: datetime | None = None,
        delivered_before: datetime | None = None,
        sort: Literal["-id", "id"] | None = None,
        count: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Order]:
        """List orders.

        Iterates over orders, by ascending ``id``. With ``sort=-id`` the newest come first. Your key
        needs the scope ``orders:read``.

        Args:
            status: Filters by status.
            pet_id: Filters by pet.
            buyer: Only orders whose buyer has, for each word of this text, a word that begins with
                it, in any order, ignoring case, marks on letters and punctuation inside words.
            placed_before: Only orders placed before this moment (RFC 3339).
            delivered_since: Only orders delivered at this moment (RFC 3339) or later, also if they
                were returned. The latest delivery comes first. Cannot be used together with
                ``sort`` and ``count``.
            delivered_before: As ``delivered_since``: only orders delivered before this moment.
            sort: The order: ``id`` (the default), or ``-id``, the newest first. Not in a search.
            count: ``true`` adds the header ``X-Total-Count``: how many records match, or 10001 if
                there are more than 10,000.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Order, "/store/orders", locals())

    @operation
    def place(
        self,
        *,
        pet_id: int,
        quantity: int | None = None,
        ship_date: datetime | None = None,
        buyer: str | None = None,
        note: str | None = None,
        amount: int | None = None,
        complete: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Order]:
        """Order a pet.

        Reserves an ``available`` pet: it becomes ``pending``. If several buyers order the same pet,
        only one succeeds. An order that is not approved by ``reserved_until`` is cancelled, and the
        pet is available again. With ``complete`` the pet is sold at once: the order is
        ``delivered``, and the pet becomes ``sold``. Your key needs the scope ``orders:write``.
        Raises ``UnknownPet`` or ``PetNotAvailable``.

        Args:
            pet_id: Identifier of the pet.
            quantity: Always 1, because every pet is unique. By default ``1``.
            ship_date: When to ship it (RFC 3339).
            buyer: Who buys the pet. 1 to 200 characters. No event has it.
            note: What the staff should know. 1 to 1000 characters, line breaks included, without
                U+0000. No event has it.
            amount: The price, in the smallest unit of the currency, such as cents.
            complete: ``true`` sells the pet at once: the order is delivered, the pet sold. By
                default ``False``.
        """
        return called(Order, "POST", "/store/orders", locals())

    @operation
    def get(self, order_id: int) -> Call[Order]:
        """Get an order.

        Returns one order, even if it is closed. Your key needs the scope ``orders:read``.
        """
        return called(Order, "GET", "/store/orders/{order_id}", locals())

    @operation
    def update(
        self,
        order_id: int,
        *,
        status: OrderStatus | UnsetType = UNSET,
        ship_date: datetime | UnsetType | None = UNSET,
        quantity: int | UnsetType = UNSET,
        buyer: str | UnsetType | None = UNSET,
        note: str | UnsetType | None = UNSET,
        amount: int | UnsetType | None = UNSET,
        cancel_reason: str | UnsetType = UNSET,
        return_reason: str | UnsetType = UNSET,
        refund: int | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Order]:
        """Change, approve, deliver, return or cancel an order.

        Changes the fields in the body (RFC 7396). ``placed`` can become ``approved`` or
        ``cancelled``; ``approved`` can become ``delivered`` or ``cancelled``; ``delivered`` can
        become ``returned``. The pet of a delivered order becomes ``sold``, and the pet of a
        cancelled or returned order becomes ``available``. ``ship_date``, ``buyer``, ``note`` and
        ``amount`` can change at any time, and a ``None`` removes them. A ``cancel_reason`` comes
        with the status ``cancelled``; a ``return_reason`` and a ``refund`` come with ``returned``,
        and can change afterwards. By default the refund is the whole amount. Your key needs the
        scope ``orders:write``. Raises ``IllegalTransition`` or ``OutcomeUnknown``.

        Args:
            status: The status of the order.
            ship_date: When to ship it (RFC 3339).
            quantity: Always 1, because every pet is unique.
            buyer: Who buys the pet. 1 to 200 characters. No event has it.
            note: What the staff should know. 1 to 1000 characters, line breaks included, without
                U+0000. No event has it.
            amount: The price, in the smallest unit of the currency, such as cents.
            cancel_reason: Why it was cancelled. 1 to 200 characters. No event has it.
            return_reason: Why it was returned. 1 to 200 characters. No event has it.
            refund: What the buyer got back for a returned pet, up to ``amount``. By default all of
                it.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Order, "PATCH", "/store/orders/{order_id}", locals())

    @operation
    def cancel(self, order_id: int, *, if_match: str | None = None) -> Call[None]:
        """Cancel an order.

        Cancels an order that is not delivered; its pet becomes ``available``. The order can still
        be read. Cancelling it again has no effect. Your key needs the scope ``orders:write``.
        Raises ``IllegalTransition`` or ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/store/orders/{order_id}", locals())


class SalesCounts(Resource[D]):
    """The operations of ``client.sales``."""

    @operation
    def get(
        self,
        *,
        from_: date | None = None,
        to: date | None = None,
        time_zone: str | None = None,
        by: SalesBy | None = None,
    ) -> Call[Sales]:
        """Count the sales.

        Returns how many orders were delivered between two days, both included, how many were
        returned, and the sums of their amounts and refunds, by day or by category. A returned order
        counts on the day of its delivery and on the day of its return. By day, each day has a row.
        There are at most 366 days. Amounts are added up by currency: a day or category with sales
        in several currencies has a row for each. Your key needs the scope ``orders:read``.

        Args:
            from_: The first day. By default six days before ``to``.
            to: The last day. By default today.
            time_zone: The time zone of the days (IANA), such as ``Europe/Berlin``. By default the
                store's.
            by: Group by ``day`` or ``category``. By default ``day``.
        """
        return called(Sales, "GET", "/store/sales", locals())


class Events(EventFeed[D]):
    """The operations of ``client.events``."""


class Keys(Resource[D]):
    """The operations of ``client.keys``."""

    @listing
    def list(
        self, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Listing[Key]:
        """List keys.

        Iterates over the keys of this environment, by ascending ``id``. Your key needs the scope
        ``keys:admin``.

        Args:
            name: Only keys with each of these words in their name, ignoring case, with this ``id``,
                or with a token that ends in these four characters.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Key, "/keys", locals())

    @operation
    def create(
        self,
        *,
        name: str,
        plan: PlanName | None = None,
        per_minute: int | None = None,
        per_day: int | None = None,
        scopes: Iterable[Scope] | None = None,
        expires_at: datetime | None = None,
        allowed_networks: Iterable[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[KeyWithToken]:
        """Create a key.

        Creates a key of this environment. By default it has the plan ``free`` and the scopes of
        pets and orders. The ``token`` is shown only once. Your key cannot give a scope, a higher
        limit, a longer life or a network that it does not have itself. Your key needs the scope
        ``keys:admin``. Raises ``BeyondOwnRights`` or ``SecretAlreadyShown``.

        Args:
            name: The name of the key.
            plan: The plan, which sets the limits of the key. By default ``free``.
            per_minute: The key's own limit, only for the plan enterprise; ``None`` means no limit.
            per_day: The key's own limit, only for the plan enterprise; ``None`` means no limit.
            scopes: The scopes of the key.
            expires_at: When the key expires, within the next 100 years; ``None`` means never.
            allowed_networks: The networks that the key may be used from, in CIDR notation or as
                single addresses. An empty list means anywhere.
        """
        return called(KeyWithToken, "POST", "/keys", locals())

    @operation
    def get(self, key_id: int) -> Call[Key]:
        """Get a key.

        Returns one key, without its token. Your key needs the scope ``keys:admin``.
        """
        return called(Key, "GET", "/keys/{key_id}", locals())

    @operation
    def update(
        self,
        key_id: int,
        *,
        name: str | UnsetType = UNSET,
        plan: PlanName | UnsetType = UNSET,
        per_minute: int | UnsetType | None = UNSET,
        per_day: int | UnsetType | None = UNSET,
        scopes: Iterable[Scope] | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        allowed_networks: Iterable[str] | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Key]:
        """Change a key.

        Changes the fields in the body (RFC 7396); usage carries over. A key that leaves the plan
        ``enterprise`` loses its own limits. The last key with the scope ``keys:admin`` cannot lose
        it, or exclude its own address. Your key needs the scope ``keys:admin``. Raises
        ``BeyondOwnRights`` or ``LastAdminKey`` or ``OutcomeUnknown``.

        Args:
            name: The name of the key.
            plan: The plan, which sets the limits of the key.
            per_minute: The key's own limit, only for the plan enterprise; ``None`` means no limit.
            per_day: The key's own limit, only for the plan enterprise; ``None`` means no limit.
            scopes: The scopes of the key.
            expires_at: When the key expires, within the next 100 years; ``None`` means never.
            allowed_networks: The networks that the key may be used from, in CIDR notation or as
                single addresses. An empty list means anywhere.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Key, "PATCH", "/keys/{key_id}", locals())

    @operation
    def revoke(self, key_id: int, *, if_match: str | None = None) -> Call[None]:
        """Revoke a key.

        Revokes a key for good, within a second everywhere. Revoking it again has no effect. The
        last key with the scope ``keys:admin`` cannot be revoked here. Your key needs the scope
        ``keys:admin``. Raises ``LastAdminKey`` or ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/keys/{key_id}", locals())

    @operation
    def rotate(
        self, key_id: int, *, grace_seconds: int | None = None, idempotency_key: str | None = None
    ) -> Call[KeyWithToken]:
        """Rotate a key.

        Issues a new token for the same key. Usage, limits and bans carry over. The old token stays
        valid for ``grace_seconds``. The new token is shown only once. Your key needs the scope
        ``keys:admin``. Raises ``BeyondOwnRights`` or ``KeyEnded`` or ``SecretAlreadyShown``.

        Args:
            grace_seconds: How long the old token stays valid, in seconds. By default ``0``.
        """
        return called(KeyWithToken, "POST", "/keys/{key_id}/rotate", locals())

    @operation
    def rotate_current(
        self, *, grace_seconds: int | None = None, idempotency_key: str | None = None
    ) -> Call[KeyWithToken]:
        """Rotate your own key.

        Issues a new token for the key of the request, which needs no scope. Usage, limits and bans
        carry over. The old token stays valid for ``grace_seconds``, but can no longer rotate the
        key. A key may do this 5 times a day (UTC). The new token is shown only once. Raises
        ``BeyondOwnRights`` or ``SecretAlreadyShown`` or ``TooManyRotations``.

        Args:
            grace_seconds: How long the old token stays valid, in seconds. By default ``0``.
        """
        return called(KeyWithToken, "POST", "/keys/current/rotate", locals())

    @operation
    def unban(self, key_id: int, *, idempotency_key: str | None = None) -> Call[None]:
        """Lift the ban of a key.

        Lifts the ban of a key, and forgets how often it was banned before. Your key needs the scope
        ``keys:admin``.
        """
        return called(NoneType, "POST", "/keys/{key_id}/unban", locals())

    @listing
    def deprecations(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Listing[KeyDeprecatedUse]:
        """List calls of deprecated operations.

        Iterates over the deprecated operations that keys of this environment called in the last 30
        days (UTC), sorted by key, with the last call of each. Your key needs the scope
        ``keys:admin``.

        Args:
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(KeyDeprecatedUse, "/deprecations", locals())

    @operation
    def usage(self, key_id: int) -> Call[Usage]:
        """Get the usage of a key.

        Returns the usage of any key, as ``usage.get`` does for the key of the request. Your key
        needs the scope ``keys:admin``.
        """
        return called(Usage, "GET", "/keys/{key_id}/usage", locals())


class People(Resource[D]):
    """The operations of ``client.people``."""

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[Person]:
        """List people.

        Iterates over the people of this environment, by ascending ``id``. Your key needs the scope
        ``keys:admin``.

        Args:
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Person, "/people", locals())

    @operation
    def create(
        self, *, name: str, login: str, role: PersonRole, idempotency_key: str | None = None
    ) -> Call[PersonWithInvitation]:
        """Add a person.

        Adds a person of this environment. The link in ``invitation`` is shown only once: the person
        sets a password with it, within 72 hours. Your key cannot give a role with a scope that it
        does not have itself. If it expires or has networks, it cannot give any. Your key needs the
        scope ``keys:admin``. Raises ``BeyondOwnRights`` or ``LoginTaken`` or
        ``SecretAlreadyShown``.

        Args:
            name: The name of the person, as others see it.
            login: What the person signs in with, unique ignoring case. An e-mail address is a good
                one.
            role: The role, from which the scopes of the person follow.
        """
        return called(PersonWithInvitation, "POST", "/people", locals())

    @operation
    def get(self, person_id: int) -> Call[Person]:
        """Get a person.

        Returns one person. Your key needs the scope ``keys:admin``.
        """
        return called(Person, "GET", "/people/{person_id}", locals())

    @operation
    def update(
        self,
        person_id: int,
        *,
        name: str | UnsetType = UNSET,
        login: str | UnsetType = UNSET,
        role: PersonRole | UnsetType = UNSET,
        state: Literal["active", "disabled"] | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Person]:
        """Change a person.

        Changes the fields in the body (RFC 7396), within a second everywhere. A person with the
        ``state`` ``disabled`` is signed out, and the links that they made end. The last active
        administrator cannot be disabled or get another role. Your key needs the scope
        ``keys:admin``. Raises ``BeyondOwnRights`` or ``LoginTaken`` or ``LastAdministrator`` or
        ``OutcomeUnknown``.

        Args:
            name: The name of the person, as others see it.
            login: What the person signs in with, unique ignoring case. An e-mail address is a good
                one.
            role: The role, from which the scopes of the person follow.
            state: Whether the person may sign in. One without a password is then ``invited``.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Person, "PATCH", "/people/{person_id}", locals())

    @operation
    def invite(
        self, person_id: int, *, idempotency_key: str | None = None
    ) -> Call[PersonWithInvitation]:
        """Invite a person.

        Makes a link with which the person sets a password, once, within 72 hours; earlier ones end.
        The link is shown only once. The current password works until the link is used. Your key
        cannot invite a person with rights that it does not have itself. Your key needs the scope
        ``keys:admin``. Raises ``BeyondOwnRights`` or ``PersonDisabled`` or ``SecretAlreadyShown``.
        """
        return called(PersonWithInvitation, "POST", "/people/{person_id}/invite", locals())


class KeyUsage(Resource[D]):
    """The operations of ``client.usage``."""

    @operation
    def get(self) -> Call[Usage]:
        """Get the usage of your key.

        Returns the plan and the scopes of your key, both windows, its ban if there is one, its
        requests on each of the last 30 days (UTC), the deprecated operations that it called on
        these days, and the requests that a limit refused in the last 7 days. The request costs
        nothing, and works even at a limit.
        """
        return called(Usage, "GET", "/usage", locals(), charged=False)


class Webhooks(Resource[D]):
    """The operations of ``client.webhooks``."""

    @listing
    def list(
        self,
        *,
        failing: Literal["true"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Webhook]:
        """List webhooks.

        Iterates over the webhooks of your key, by ascending ``id``. With the scope ``keys:admin``
        it lists all webhooks. Your key needs the scope ``webhooks:write``.

        Args:
            failing: ``true``: only those that fail, or that the service disabled.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Webhook, "/webhooks", locals())

    @operation
    def create(
        self,
        *,
        url: str,
        types: Iterable[EventType] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WebhookWithSecret]:
        """Create a webhook.

        Sends later events of these types to a URL. Each delivery is signed with the ``secret``,
        which is shown only once. A webhook belongs to your key: it gets the events that the key may
        read, and ends with the key. A key has up to 16 webhooks. Your key needs the scope
        ``webhooks:write``. Raises ``InvalidWebhookUrl`` or ``TooManyWebhooks`` or
        ``WebhooksNotConfigured`` or ``SecretAlreadyShown``.

        Args:
            url: Where its events are sent: ``https`` on port 443, unless the operator allows more.
            types: The types of events to send; empty means all that its key can read.
            description: What it is for. 1 to 255 printable characters, not only white space.
        """
        return called(WebhookWithSecret, "POST", "/webhooks", locals())

    @operation
    def get(self, webhook_id: int) -> Call[Webhook]:
        """Get a webhook.

        Returns one webhook, without its secret. Your key needs the scope ``webhooks:write``.
        """
        return called(Webhook, "GET", "/webhooks/{webhook_id}", locals())

    @operation
    def update(
        self,
        webhook_id: int,
        *,
        url: str | UnsetType = UNSET,
        types: Iterable[EventType] | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        enabled: bool | UnsetType = UNSET,
        if_match: str | None = None,
    ) -> Call[Webhook]:
        """Change a webhook.

        Changes the fields in the body (RFC 7396). A webhook that is enabled again resumes with the
        events from now on. ``webhooks.recover`` sends those that it missed. With the scope
        ``keys:admin`` you can disable the webhooks of others. Your key needs the scope
        ``webhooks:write``. Raises ``InvalidWebhookUrl`` or ``NotOwner`` or ``OutcomeUnknown``.

        Args:
            url: Where its events are sent: ``https`` on port 443, unless the operator allows more.
            types: The types of events to send; empty means all that its key can read.
            description: What it is for. 1 to 255 printable characters, not only white space.
            enabled: Whether the webhook is enabled.
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(Webhook, "PATCH", "/webhooks/{webhook_id}", locals())

    @operation
    def delete(self, webhook_id: int, *, if_match: str | None = None) -> Call[None]:
        """Delete a webhook.

        Deletes a webhook. Its pending deliveries are not sent. Your key needs the scope
        ``webhooks:write``. Raises ``NotOwner`` or ``OutcomeUnknown``.

        Args:
            if_match: The ``etag`` of the version to change. A later version is left as it is.
        """
        return called(NoneType, "DELETE", "/webhooks/{webhook_id}", locals())

    @operation
    def rotate(
        self,
        webhook_id: int,
        *,
        grace_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WebhookWithSecret]:
        """Rotate the secret of a webhook.

        Gives a webhook a new secret, which is shown only once. For ``grace_seconds`` deliveries are
        signed with the old secret too. Your key needs the scope ``webhooks:write``. Raises
        ``WebhooksNotConfigured`` or ``SecretAlreadyShown`` or ``NotOwner``.

        Args:
            grace_seconds: How long the old secret signs deliveries too. By default ``86400``.
        """
        return called(WebhookWithSecret, "POST", "/webhooks/{webhook_id}/rotate", locals())

    @operation
    def test(self, webhook_id: int, *, idempotency_key: str | None = None) -> Call[WebhookTest]:
        """Test a webhook.

        Sends an event ``webhook.test`` to this webhook only, whatever its types. Its deliveries
        show the outcome. Your key needs the scope ``webhooks:write``. Raises ``WebhookDisabled`` or
        ``NotOwner``.
        """
        return called(WebhookTest, "POST", "/webhooks/{webhook_id}/test", locals())

    @listing
    def deliveries(
        self,
        webhook_id: int,
        *,
        state: DeliveryState | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Delivery]:
        """List the deliveries of a webhook.

        Iterates over the deliveries of a webhook, newest first, each with the outcome of its last
        attempt. Your key needs the scope ``webhooks:write``. Raises ``NotOwner``.

        Args:
            state: Filters by state.
            limit: The size of a page, from 1 to 100. By default 100.
        """
        return listed(Delivery, "/webhooks/{webhook_id}/deliveries", locals())

    @operation
    def retry(
        self, webhook_id: int, delivery_id: int, *, idempotency_key: str | None = None
    ) -> Call[Delivery]:
        """Send one event again.

        Sends the event of a delivery again, even if it succeeded. Returns the delivery that sends
        it: a new one, or the pending one of this event, whose next attempt is then made now. The id
        of the event stays the same. Your key needs the scope ``webhooks:write``. Raises
        ``WebhookDisabled`` or ``EventNotKept`` or ``NotOwner``.
        """
        return called(
            Delivery, "POST", "/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", locals()
        )

    @operation
    def recover(
        self, webhook_id: int, *, since: datetime, idempotency_key: str | None = None
    ) -> Call[Webhook]:
        """Send missed events again.

        Sends all events since a time whose delivery has failed, or that were never sent to this
        webhook. Their ids stay the same. This happens in the background, in the order of the feed;
        while 1,000 deliveries are pending it waits. Your key needs the scope ``webhooks:write``.
        Raises ``WebhookDisabled`` or ``NotOwner``.

        Args:
            since: The events from this moment on (RFC 3339).
        """
        return called(Webhook, "POST", "/webhooks/{webhook_id}/recover", locals())


class Resources(Resource[D]):
    """The resources of a client."""

    def __init__(self, driver: D) -> None:
        self._driver: D = driver
        self.pets: Pets[D] = Pets(driver)
        self.inventory: InventoryCounts[D] = InventoryCounts(driver)
        self.categories: Categories[D] = Categories(driver)
        self.imports: Imports[D] = Imports(driver)
        self.orders: Orders[D] = Orders(driver)
        self.sales: SalesCounts[D] = SalesCounts(driver)
        self.events: Events[D] = Events(driver)
        self.keys: Keys[D] = Keys(driver)
        self.people: People[D] = People(driver)
        self.usage: KeyUsage[D] = KeyUsage(driver)
        self.webhooks: Webhooks[D] = Webhooks(driver)
