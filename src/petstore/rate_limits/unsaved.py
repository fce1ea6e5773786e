"""What a limiter has yet to save."""

from petstore.rate_limits.contract import RateLimitStore, State


class UnsavedStates:
    """The latest state of each key that is not in the store yet, and the days that ended since."""

    def __init__(self, store: RateLimitStore) -> None:
        self._store = store
        self._states: dict[int, State] = {}
        self._ended_days: list[tuple[int, State]] = []

    def get(self, key_id: int) -> State | None:
        """Return the state of a key, or ``None`` if all of it is saved."""
        return self._states.get(key_id)

    def put(self, key_id: int, state: State) -> None:
        """Have ``state`` saved the next time."""
        before = self._states.get(key_id)
        if before is not None and before.day != state.day and before.day_used:
            self._ended_days.append((key_id, before))
        self._states[key_id] = state

    async def save(self) -> None:
        """Save everything there is to be saved.

        Raises:
            Unavailable: it could not be saved; it stays to be saved later.
        """
        states, ended_days = self._states, self._ended_days
        if not states:
            return
        self._states, self._ended_days = {}, []
        try:
            await self._store.save([*ended_days, *states.items()])
        except BaseException:
            newer, newly_ended = self._states, self._ended_days
            self._states, self._ended_days = states, ended_days + newly_ended
            for key_id, state in newer.items():
                self.put(key_id, state)
            raise
