"""A store of which nobody can tell whether a change was made."""

from petstore.databases.contract import Store, T, Unit
from petstore.errors import Unavailable


class UncertainStore:
    """A store whose changes fail, before or after they were made, while it is told so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read = store.read
        self.failing = ""

    async def write(self, unit: Unit[T]) -> T:
        if self.failing == "before":
            unit.close()
        else:
            result = await self._store.write(unit)
        if self.failing:
            raise Unavailable(self.failing)
        return result
