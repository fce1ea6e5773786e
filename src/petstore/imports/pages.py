"""The pages of imports."""

PAGES = ()
