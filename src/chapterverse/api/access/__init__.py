"""Who may ask, how often, and how many at once."""
