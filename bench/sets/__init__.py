"""Public sets in the harness's own form: a folder with `questions.jsonl` and `book/`, for `chapterverse eval`."""
