"""The console: pages for the people in the shop and the owners of keys."""
