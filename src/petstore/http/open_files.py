"""How many files a process may open, and so how many connections."""

import resource

_OTHER_FILES = 100
_MIN_CONNECTIONS = 100


def require_room(connections: int) -> None:
    """Check that the limit of open files leaves a sensible number of ``connections``."""
    needed = _OTHER_FILES + min(connections, _MIN_CONNECTIONS)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        msg = f"the limit of open files is {hard}; expected at least {needed} (ulimit -Hn)"
        raise OSError(msg)


def room_for(connections: int) -> int:
    """Raise the limit of open files to what ``connections`` need; return how many it has room for.

    At the limit new clients wait; so a few that never read their responses could keep all out.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, soft - _OTHER_FILES)
