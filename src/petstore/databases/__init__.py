"""Where pets, keys and counts are kept."""
