"""The confidence of answers without a key is fitted for books that it was not fitted on."""

from bench.keyless.fit import Row, fit

from chapterverse.answering.confidence import ReaderSigns


def rows(rights: dict[str, int]) -> list[Row]:
    """Of each book ten answers, so many of them right, and ten questions that it does not answer."""
    good, bad = ReaderSigns(2.0, 1.0, 0.0), ReaderSigns(-8.0, 0.0, 2.0)
    answered = [Row(good, True, at < right, book=book) for book, right in rights.items() for at in range(10)]
    return answered + [Row(bad, False, False, book=book) for book in rights for _ in range(10)]


def test_confidence_is_lower_where_books_differ() -> None:
    selections = rows({"": 5})
    alike = fit(rows({"a": 8, "b": 8, "c": 8}), selections)["right"]
    unlike = fit(rows({"a": 10, "b": 8, "c": 6}), selections)["right"]
    assert alike["weights"] == unlike["weights"]
    assert unlike["bias"] < alike["bias"] - 0.2
