"""Selects the editions that a question is about, and sorts versions.

An edition is one version of one book. The scope of a question is a set of editions: those that were named, else the
latest version of every book.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from chapterverse.book import Edition
from chapterverse.errors import InvalidFilterError, ValidationFailed

LATEST: Final = "latest"  # as a version: the latest one, unless a version has this name
STABLE: Final = "stable"
NAMELESS: Final = "(no name)"  # how a book without a name is listed

_NAME = re.compile(r"[\w.+-]{0,64}")
_NUMBERED = re.compile(r"v?(\d+(?:[.-]\d+)*)(?:\.[x*])?(?:\+.*)?[._-]?(.*)", re.IGNORECASE | re.DOTALL)


def require_names(book: str, version: str) -> None:
    """Refuse names that cannot be used in a key, an address or a command."""
    for option, name in (("--book", book), ("--version", version)):
        if not _NAME.fullmatch(name):
            raise ValidationFailed(
                f"{option} {name}: use up to 64 letters, digits and . _ + -, for example guide or 2.1.0"
            )


def version_order(version: str) -> tuple[Any, ...]:
    """Sort key for versions, the latest last: no version, other names, pre-releases, releases, `latest`, `stable`.

    Numbers and dates are compared part by part, so that 2.10 comes after 2.9. A suffix makes it a pre-release: 2.0-rc1,
    2.0b2. `2.x` is 2, and everything after a + is ignored."""
    if version in (LATEST, STABLE):
        return 5 if version == STABLE else 4, (), (), version
    found = _NUMBERED.fullmatch(version)
    if found is None:
        return 1 if version else 0, (), (), version
    numbers = tuple(int(part) for part in re.split("[.-]", found[1]))
    while len(numbers) > 1 and not numbers[-1]:
        numbers = numbers[:-1]  # 2.0 is 2
    suffix = [
        (not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", found[2])
    ]
    return 2 if found[2] else 3, numbers, tuple(suffix), version


def books_of(shelf: Iterable[Edition]) -> dict[str, list[Edition]]:
    """The editions of each book, the latest first; books sorted by name."""
    books: dict[str, list[Edition]] = {}
    for edition in sorted(shelf, key=lambda each: version_order(each.version), reverse=True):
        books.setdefault(edition.book, []).append(edition)
    return dict(sorted(books.items()))


def scope_of(shelf: Iterable[Edition], books: Sequence[str] = (), versions: Sequence[str] = ()) -> list[Edition]:
    """The editions that the names select. Without a version: the latest of each book. Without a book: all books that
    have the version. An unknown name is an error that lists the known ones."""
    known = books_of(shelf)
    if unknown := [name for name in books if name not in known]:
        listed = f"The books are: {_listed(known)}." if any(known) else "The book here has no name; leave it out."
        raise InvalidFilterError(f"There is no book {_listed(unknown)} here. {listed}", details={"books": list(known)})
    chosen = {name: known[name] for name in (books or known)}
    found = {
        name: [edition for version in versions for edition in _named(editions, version)]
        for name, editions in chosen.items()
    }
    if not versions:
        return [editions[0] for editions in chosen.values()]
    matched = {edition.version for editions in found.values() for edition in editions}
    unknown = [version for version in versions if version not in matched and version != LATEST]
    if unknown or any(not found[name] for name in books):
        raise _no_such_version(unknown or versions, chosen)
    return list({edition.key: edition for editions in found.values() for edition in editions}.values())


def _no_such_version(wanted: Sequence[str], books: Mapping[str, Sequence[Edition]]) -> InvalidFilterError:
    versions = {name: [edition.version for edition in editions] for name, editions in books.items()}
    known = (
        f"{name or NAMELESS}: {', '.join(version or '(no version)' for version in each)}"
        for name, each in versions.items()
    )
    message = f"There is no version {', '.join(wanted)} of {_listed(books)}. The versions are: {'; '.join(known)}."
    if not any(name or any(each) for name, each in versions.items()):
        message = f"There is no version {', '.join(wanted)}: the book has no versions; leave it out."
    return InvalidFilterError(message, details={"versions": versions})


def _named(editions: Sequence[Edition], version: str) -> list[Edition]:
    exact = [edition for edition in editions if edition.version == version]
    return exact or (list(editions[:1]) if version == LATEST else [])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or NAMELESS for name in names)


def edition_label(book: str, version: str) -> str:
    """The name of an edition in citations: `guide 2.0`; empty if it has no names."""
    return f"{book} {version}".strip() if book else f"version {version}" if version else ""
