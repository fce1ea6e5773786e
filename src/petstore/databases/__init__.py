"""Where animals, keys and counts are kept."""
