"""Time zones by the names of IANA, and the moments that people type in one."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from petstore.errors import InvalidParameter

# The database of time zones also has the zone of the machine, and some that count leap seconds.
_ZONE = re.compile(r"(?!right/|posix/|localtime$|posixrules$)[A-Za-z][A-Za-z0-9_+/-]{0,63}")
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")


def zone_of(name: str) -> ZoneInfo:
    if _ZONE.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # none, no file of a zone, or a folder
            pass
    msg = "timeZone: expected the name of a time zone (IANA), such as Europe/Berlin"
    raise InvalidParameter(msg)


def local_time(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return a moment by the clocks of a zone; the first and last days of all keep their own."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def typed_moment(typed: str, zone: ZoneInfo) -> str | None:
    """Return a typed moment as the interface takes it. Without an offset it is in the ``zone``."""
    if _WITHOUT_ZONE.fullmatch(typed) is None:
        return typed or None
    try:
        return datetime.fromisoformat(typed).replace(tzinfo=zone).isoformat()
    except (ValueError, OverflowError):  # the interface says what is wrong
        return typed
