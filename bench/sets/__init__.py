"""Converts public sets for the harness: a folder with `questions.jsonl` and `book/`, for `chapterverse eval`."""
