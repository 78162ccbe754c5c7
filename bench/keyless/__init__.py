"""Answers without a key on whole books: what is shown, what is refused, follow-ups, selections, confidence, time.

    KEYLESS_DATA=FOLDER python -m bench.keyless --split test

FOLDER holds `books.json` (name of a book → its folder of pages), `SPLIT_BOOK_questions.jsonl` (`question`, `kind`,
`quote`, perhaps `also`: further quotes that would do; kind `unanswerable` has none) and `SPLIT_BOOK_dialogues.jsonl`
(`turns` with `user`, `kind`, `quote`). The books and their questions are no part of this repository.
"""
