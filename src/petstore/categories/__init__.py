"""Categories of pets."""
