"""Measures how well our readers read books, compared with their own generators. `make bench-readers` runs it.

Prints one table and saves the figures. With `--keep`, books can be measured one by one: the other books of the last
result are kept, with the commit at which they were measured. `--misses MEASURE` prints examples of misses.
"""

import argparse
import re
from collections.abc import Callable
from typing import Any

from bench.readers import asciidoc_oracle, html_pages, markdown_oracle, markdown_site, sphinx_oracle, sphinx_site
from bench.readers.compare import BARS, Score, compare, order
from bench.readers.ours import read_folder
from bench.results import commit, newest, save

_SOURCES = (".rst", ".md")


def sphinx_book(book: sphinx_site.SphinxBook) -> dict[str, Score]:
    site = sphinx_site.build(book)
    built = sphinx_oracle.read_site(site)
    reading = read_folder(sphinx_site.project(book))
    expected = {
        page: facts
        for page, facts in built.items()
        if _has_text(facts) and any((sphinx_site.sources(book) / page).with_suffix(one).is_file() for one in _SOURCES)
    }
    found = reading.facts()
    scores = compare(expected, found, built)
    turned = [page for page in sphinx_oracle.reading_order(site, "index.html") if page in expected]
    scores["order"] = order([turned], reading.order())
    pages = Score(
        sum(page in found for page in expected), len(expected), [page for page in expected if page not in found]
    )
    return {"pages": pages, **scores}


def markdown_book(book: markdown_site.MarkdownBook) -> dict[str, Score]:
    folder, site = markdown_site.build(book)
    built = markdown_oracle.read_site(site, book.dialect)
    # pages that are only included by others
    partials = re.compile(r"(?:^|/)_" if book.generator == "vitepress" else r"(?!)")
    expected = {page: facts for page, facts in built.items() if _has_text(facts) and not partials.search(page)}
    reading = read_folder(folder, generator=book.generator)
    found = reading.facts()
    missing = [page for page in expected if page not in found]
    pages = Score(len(expected) - len(missing), len(expected), missing)
    scores = compare(expected, found, built)
    orders = markdown_oracle.reading_orders(site, book.dialect)
    turned = [[page for page in one if page in expected] for one in orders]
    scores["order"] = order(turned, reading.order())
    return {"pages": pages, **scores}


def _has_text(facts: Any) -> bool:
    headings = sum(len(text.split()) for _, text, _ in facts.headings)
    return len(facts.text.split()) > headings or bool(facts.code)  # a page of links only is left out


BOOKS: dict[str, Callable[[], dict[str, Score]]] = {
    f"sphinx/{book.name}": lambda book=book: sphinx_book(book)  # type: ignore[misc]
    for book in sphinx_site.BOOKS
}
BOOKS |= {
    f"html/{book.name}": lambda book=book: html_pages.score(sphinx_site.build(book))  # type: ignore[misc]
    for book in sphinx_site.BOOKS
}
BOOKS |= {
    f"asciidoc/{book.name}": lambda book=book: asciidoc_oracle.score(book)  # type: ignore[misc]
    for book in asciidoc_oracle.BOOKS
    if asciidoc_oracle.available(book)
}
BOOKS |= {
    f"{book.generator}/{book.name}": lambda book=book: markdown_book(book)  # type: ignore[misc]
    for book in markdown_site.BOOKS
    if markdown_site.available(book)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--book", action="append", choices=list(BOOKS), help="only this book; may be repeated")
    parser.add_argument("--misses", default="", help="measure of which examples are printed")
    parser.add_argument("--keep", action="store_true", help="add these books to the result of this commit")
    parser.add_argument("--count", type=int, default=60, help="examples printed")
    options = parser.parse_args()
    measures = ["pages", *BARS]
    print(f"{'book':<22}" + "".join(f"{name:>17}" for name in measures))
    result: dict[str, Any] = {"bars": BARS, "books": {}}
    for name in options.book or BOOKS:
        scores = BOOKS[name]()
        print(f"{name:<22}" + "".join(f"{_figure(scores[one]):>17}" for one in measures))
        result["books"][name] = {
            one: {"hits": scores[one].hits, "tries": scores[one].tries, "share": round(scores[one].share, 5)}
            for one in measures
        } | {"commit": commit()}
        for missed in scores[options.misses].misses[: options.count] if options.misses else ():
            print("   ", missed)
    if options.keep or not options.book:
        before = newest("readers") if options.book else None
        if before:
            result["books"] = dated(before[0]["books"], before[1]) | result["books"]
        print(save("readers", result))


def dated(books: dict[str, Any], measured_at: str) -> dict[str, Any]:
    """The books of a result, each with the commit at which it was measured."""
    return {name: {"commit": measured_at} | scores for name, scores in books.items()}


def _figure(score: Score) -> str:
    return f"{score.share:.2%} of {score.tries}" if score.tries else "-"


if __name__ == "__main__":
    main()
