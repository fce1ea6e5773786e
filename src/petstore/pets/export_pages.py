"""The export."""

PAGES = ()
