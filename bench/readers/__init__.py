"""How well readers understand documents: what they make of a book beside what its own generator makes of it."""
