"""Filters of a search as data, which each engine converts to its own types."""

from collections.abc import Iterable
from dataclasses import dataclass

from chapterverse.book import Chunk, Edition
from chapterverse.index import Filters


@dataclass(frozen=True, slots=True)
class Match:
    """A field has one of these values. An empty value also matches a missing field."""

    field: str
    values: tuple[str, ...]


Clause = tuple[Match, ...]  # one of the matches must hold; with several clauses, each of them


@dataclass(frozen=True, slots=True)
class Scope:
    """How a prefix becomes exact matches. `within` narrows the search. If `field` is given, the engine lists the values
    of that field inside `within`, and those that start with the prefix match."""

    within: Clause
    field: str = ""


def exact_clauses(filters: Filters, shelf: Iterable[Edition] = ()) -> list[Clause]:
    """The clauses of all filters except the prefix. If the index has no other editions (`shelf`), editions need no
    clause."""
    clauses: list[Clause] = []
    if filters.source_url:
        clauses.append((Match("source_url", filters.source_url), Match("page_url", filters.source_url)))
    for field in ("page_title", "section_heading", "module"):
        values: tuple[str, ...] = getattr(filters, field)
        if values:
            clauses.append((Match(field, values),))
    others = {edition.key for edition in shelf} - set(filters.edition)
    if filters.edition and (others or not shelf):
        clauses.append((Match("edition", filters.edition),))
    return clauses


def admits(filters: Filters, chunk: Chunk) -> bool:
    """Whether a chunk matches the filters."""
    matches = (
        any(getattr(chunk, match.field) in match.values for match in clause) for clause in exact_clauses(filters)
    )
    return all(matches) and chunk.source_url.startswith(filters.source_url_prefix)


def prefix_scope(prefix: str) -> Scope:
    """The scope of a prefix, which may end at a slash, inside a name, or inside an anchor."""
    page, hash_, _ = prefix.partition("#")
    if hash_:
        return Scope((Match("page_url", (page,)),), "source_url")
    parent = prefix[: prefix.rfind("/") + 1]
    within = (Match("ancestors", (parent,)),) if parent else ()
    return Scope(within, "" if parent == prefix else "page_url")


def prefix_clause(prefix: str, scope: Scope, values: Iterable[str]) -> Clause:
    """The clause for a prefix, given the values of `scope.field` inside the scope."""
    if not scope.field:
        return scope.within
    return (Match(scope.field, tuple(sorted(value for value in values if value.startswith(prefix)))),)
