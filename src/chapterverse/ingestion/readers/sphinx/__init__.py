"""Sphinx's additions to reStructuredText and MyST: directives, roles, and cross-references in a project."""
