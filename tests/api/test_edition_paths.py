"""The name of a book in an address."""

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
