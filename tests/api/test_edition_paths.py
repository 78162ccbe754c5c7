"""The name of a book in an address."""

from typing import Any
from urllib.parse import urljoin

import pytest

from chapterverse.api.edition_paths import EditionPaths, edition_of
from chapterverse.errors import ValidationFailed


@pytest.mark.parametrize("name", ["a\x00b", "guide@1\x00"])
async def test_name_with_a_character_that_no_book_has_is_invalid(name: str) -> None:
    seen: list[object] = []

    async def app(scope: object, _: object, __: object) -> None:
        seen.append(scope)

    scope = {"type": "http", "path": f"/editions/{name}/pages"}
    await EditionPaths(app)(scope, None, None)  # type: ignore[arg-type]
    with pytest.raises(ValidationFailed, match="NUL"):
        edition_of(seen[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("/editions/guide/chat/", "/editions/guide/chat"),
        ("/editions/guide@1/read/a b/", "/editions/guide@1/read/a%20b"),
        ("/editions/guide/metrics/", "/editions/guide/metrics"),
        ("/editions/guide/search/?top_k=2", "/editions/guide/search?top_k=2"),
        ("/editions/guide?ask=How", "/editions/guide/?ask=How"),
    ],
)
async def test_final_slash_is_redirected_within_the_edition(address: str, target: str) -> None:
    """FastAPI would redirect to the address without the edition, which answers from all books."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(*_: object) -> None:
        raise AssertionError("the request was passed on")

    path, _, query = address.partition("?")
    scope = {"type": "http", "path": path, "query_string": query.encode()}
    await EditionPaths(app)(scope, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 307
    location = dict(sent[0]["headers"])[b"location"].decode()
    assert urljoin(f"http://book.example{path}", location) == f"http://book.example{target}"
