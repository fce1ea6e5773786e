"""Categories of animals."""
