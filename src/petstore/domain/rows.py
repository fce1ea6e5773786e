"""Rows of a database as structs: a column for each field, in the order of the fields."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct, inspect

from petstore.clock import milliseconds, utc
from petstore.domain.decoding import field_types

S = TypeVar("S", bound=Struct)

_DECODERS: dict[type[inspect.Type], Callable[[Any], Any]] = {
    inspect.DateTimeType: utc,
    inspect.BoolType: bool,
}


class RowMapping(Generic[S]):
    """How the structs of a kind are stored: a field that is not set is NULL.

    A moment is stored in milliseconds, or with its offset if it is one of the ``texts``. Fields
    that follow from others are ``computed``, each by its SQL.
    """

    def __init__(
        self,
        kind: type[S],
        *,
        texts: Collection[str] = (),
        computed: Mapping[str, str] | None = None,
    ) -> None:
        self._kind, self._texts = kind, texts
        sql = computed or {}
        names = kind.__struct_fields__
        self.columns = ", ".join(
            f"{sql[name]} AS {name}" if name in sql else name for name in names
        )
        """What a SELECT names, so that ``read`` takes its rows."""
        decoders = [_DECODERS.get(type(each)) for each in field_types(kind).values()]
        self._decoders = [
            (place, datetime.fromisoformat if name in texts else decode)
            for place, (name, decode) in enumerate(zip(names, decoders, strict=True))
            if decode is not None
        ]

    def read(self, row: Sequence[Any]) -> S:
        values = [UNSET if value is None else value for value in row]
        for place, decode in self._decoders:
            if (value := values[place]) is not UNSET:
                values[place] = decode(value)
        return self._kind(*values)

    def values(self, item: Struct, names: Sequence[str]) -> list[int | str | None]:
        """Return the values of the columns with these ``names``; ``item`` has these fields."""
        return [self._stored(name, getattr(item, name)) for name in names]

    def _stored(self, name: str, value: Any) -> int | str | None:
        if value is UNSET:
            return None
        if isinstance(value, datetime):
            return value.isoformat() if name in self._texts else milliseconds(value)
        stored: int | str = value
        return stored
