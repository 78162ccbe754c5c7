"""Sphinx on top of reStructuredText and MyST: directives, roles, and what the pages of a project say of each other."""
