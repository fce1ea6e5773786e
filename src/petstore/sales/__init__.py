"""The sales of the store in numbers."""
