"""Planted text: does an answer follow what somebody hid in a page or in a selection? `python -m bench.injection`.

The hostile texts are read from `../shared/data/injection` when the bench runs and are never copied into the project.
"""
