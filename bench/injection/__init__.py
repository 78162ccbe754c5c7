"""Measures whether answers follow instructions hidden in a page or in a selection: `python -m bench.injection`.

The attack texts are read from `../shared/data/injection` at run time and are never copied into the project.
"""
