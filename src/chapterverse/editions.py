"""Which editions a question is about: the order of versions, and what names of books and versions mean.

An edition is one version of one book. The scope of a question is a set of editions: those that were named, else the
latest version of every book.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from chapterverse.book import Edition
from chapterverse.errors import InvalidFilterError, ValidationFailed

LATEST: Final = "latest"  # as a version: the latest one, unless one has this name
STABLE: Final = "stable"
NAMELESS: Final = "(no name)"  # how a book without a name is listed

_NAME = re.compile(r"[\w.+-]{0,64}")
_NUMBERED = re.compile(r"v?(\d+(?:[.-]\d+)*)(?:\.[x*])?(?:\+.*)?[._-]?(.*)", re.IGNORECASE | re.DOTALL)


def require_names(book: str, version: str) -> None:
    """Refuse names that could not be written in a key, an address or a command."""
    for option, name in (("--book", book), ("--version", version)):
        if not _NAME.fullmatch(name):
            raise ValidationFailed(
                f"{option} {name}: use up to 64 letters, digits and . _ + -, for example guide or 2.1.0"
            )


def version_order(version: str) -> tuple[Any, ...]:
    """Sorts versions, the latest last: no version, other names, pre-releases, releases, `latest`, `stable`.

    Numbers and dates count part by part, so that 2.10 comes after 2.9. What follows a number makes it a pre-release:
    2.0-rc1, 2.0b2. `2.x` is 2, and what follows a + does not count."""
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
    """The editions by book, the latest first; books by name."""
    books: dict[str, list[Edition]] = {}
    for edition in sorted(shelf, key=lambda one: version_order(one.version), reverse=True):
        books.setdefault(edition.book, []).append(edition)
    return dict(sorted(books.items()))


def scope_of(shelf: Iterable[Edition], books: Sequence[str] = (), versions: Sequence[str] = ()) -> list[Edition]:
    """The editions that are meant. Without a version the latest of each book, without a book all of them; a version
    without a book means the books that have it. Names that nothing has are an error that lists those there are."""
    held = books_of(shelf)
    if unknown := [name for name in books if name not in held]:
        raise InvalidFilterError(
            f"There is no book {_listed(unknown)} here. The books are: {_listed(held)}.",
            details={"books": list(held)},
        )
    chosen = {name: held[name] for name in (books or held)}
    found = {
        name: [one for version in versions for one in _named(editions, version)] for name, editions in chosen.items()
    }
    if not versions:
        return [editions[0] for editions in chosen.values()]
    met = {one.version for editions in found.values() for one in editions}
    unknown = [version for version in versions if version not in met and version != LATEST]
    if unknown or any(not found[name] for name in books):
        raise _no_such_version(unknown or versions, chosen)
    return list({one.key: one for editions in found.values() for one in editions}.values())


def _no_such_version(wanted: Sequence[str], books: Mapping[str, Sequence[Edition]]) -> InvalidFilterError:
    held = {name: [one.version for one in editions] for name, editions in books.items()}
    known = (f"{name or NAMELESS}: {', '.join(one or '(no version)' for one in each)}" for name, each in held.items())
    return InvalidFilterError(
        f"There is no version {', '.join(wanted)} of {_listed(books)}. The versions are: {'; '.join(known)}.",
        details={"versions": held},
    )


def _named(editions: Sequence[Edition], version: str) -> list[Edition]:
    exact = [one for one in editions if one.version == version]
    return exact or (list(editions[:1]) if version == LATEST else [])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or NAMELESS for name in names)


def edition_label(book: str, version: str) -> str:
    """An edition in words, as citations name it: `guide 2.0`; empty where books have no names."""
    return f"{book} {version}".strip() if book else f"version {version}" if version else ""
