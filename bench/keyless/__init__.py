"""Measures answers without a key on whole books: evidence shown, refusals, follow-ups, selections, confidence and time.

    KEYLESS_BOOKS=FOLDER python -m bench.keyless --split test

FOLDER contains the books, whose text is not part of this repository. `questions/` says which books and has the
questions.
"""
