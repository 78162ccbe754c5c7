"""Which chunks a search may return, said once as data and rendered by each engine in its own words."""

from collections.abc import Iterable
from dataclasses import dataclass

from chapterverse.book import Chunk, Edition
from chapterverse.index import Filters


@dataclass(frozen=True, slots=True)
class Match:
    """A field that holds one of these values. The empty one also stands for a field that is not there."""

    field: str
    values: tuple[str, ...]


Clause = tuple[Match, ...]  # one of its matches must hold; of several clauses all must


@dataclass(frozen=True, slots=True)
class Scope:
    """How a prefix becomes exact matches. `within` narrows where to look; when `field` is given, an engine lists
    that field's values inside `within`, and the prefix means those of them that start with it."""

    within: Clause
    field: str = ""


def exact_clauses(filters: Filters, shelf: Iterable[Edition] = ()) -> list[Clause]:
    """The clauses of all filters but the prefix. Editions need none where the index, whose `shelf` it is, has no
    others."""
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
    """Whether a chunk that is at hand may be returned."""
    matches = (
        any(getattr(chunk, match.field) in match.values for match in clause) for clause in exact_clauses(filters)
    )
    return all(matches) and chunk.source_url.startswith(filters.source_url_prefix)


def prefix_scope(prefix: str) -> Scope:
    """Where to look for addresses that start with any prefix: aligned with a slash, inside a name or an anchor."""
    page, hash_, _ = prefix.partition("#")
    if hash_:
        return Scope((Match("page_url", (page,)),), "source_url")
    parent = prefix[: prefix.rfind("/") + 1]
    within = (Match("ancestors", (parent,)),) if parent else ()
    return Scope(within, "" if parent == prefix else "page_url")


def prefix_clause(prefix: str, scope: Scope, values: Iterable[str]) -> Clause:
    """The clause of a prefix, given the values of `scope.field` inside the scope."""
    if not scope.field:
        return scope.within
    return (Match(scope.field, tuple(sorted(value for value in values if value.startswith(prefix)))),)
