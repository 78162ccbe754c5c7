"""Answers without a key on whole books: what is shown, what is refused, follow-ups, selections, confidence, time.

    KEYLESS_BOOKS=FOLDER python -m bench.keyless --split test

FOLDER holds the books, whose text is no part of this repository; `questions/` says which and what is asked of them.
"""
