"""The order of versions, and the editions that a question selects."""

import pytest

from chapterverse.book import Edition, Fingerprint, Manifest, edition_key, edition_names, page_id_for
from chapterverse.editions import books_of, edition_label, require_names, scope_of, version_order
from chapterverse.errors import InvalidFilterError, ValidationFailed

SHELF = [Edition("guide", "1.0"), Edition("guide", "1.10"), Edition("guide", "1.9"), Edition("ros", "jazzy"), Edition()]


@pytest.mark.parametrize(
    "rising",
    [
        ["", "main", "0.9", "1", "1.0.1", "1.2", "v1.9", "1.10", "2.0", "latest", "stable"],
        ["2.0-alpha", "2.0-beta.2", "2.0-beta.10", "2.0rc1", "1.0"],  # a release is later than any pre-release
        ["2024-05-01", "2024-11-30", "2025-01-02"],
        ["2024.9", "2024.10"],
        ["1.x", "2.x", "3.x"],
        ["dev", "main", "next"],
    ],
)
def test_versions_sort_from_oldest_to_latest(rising: list[str]) -> None:
    falling = rising[::-1]
    assert sorted(falling, key=version_order) == rising


def test_build_metadata_does_not_affect_the_order() -> None:
    assert version_order("2.0+build.7")[:3] == version_order("2.0.0")[:3]


def keys(*wanted: list[str]) -> list[str]:
    return [edition.key for edition in scope_of(SHELF, *wanted)]


def test_scope_is_the_latest_version_of_each_book_by_default() -> None:
    assert [edition.version for edition in books_of(SHELF)["guide"]] == ["1.10", "1.9", "1.0"]
    assert keys() == ["", "guide@1.10", "ros@jazzy"]
    assert keys(["guide"]) == ["guide@1.10"]
    assert keys([""]) == [""]
    assert keys(["guide"], ["1.0"]) == ["guide@1.0"]
    assert keys(["guide"], ["latest"]) == ["guide@1.10"]
    assert keys(["guide"], ["1.0", "latest"]) == ["guide@1.0", "guide@1.10"]
    assert keys([], ["1.0"]) == ["guide@1.0"], "only books with this version"
    assert keys([], ["latest"]) == keys()


def test_version_named_latest_is_selected_by_its_name() -> None:
    shelf = [Edition("guide", "latest"), Edition("guide", "stable"), Edition("guide", "3.0")]
    assert [edition.key for edition in scope_of(shelf)] == ["guide@stable"]
    assert [edition.key for edition in scope_of(shelf, [], ["latest"])] == ["guide@latest"]


@pytest.mark.parametrize(
    ("books", "versions", "message"),
    [
        (["gide"], [], r"no book gide here. The books are: \(no name\), guide, ros\."),
        (["guide"], ["3"], r"no version 3 of guide. The versions are: guide: 1\.10, 1\.9, 1\.0\."),
        ([], ["3"], "no version 3 of"),
        (["guide", "ros"], ["1.0"], "no version 1.0 of guide, ros"),
        ([""], ["1.0"], "no version 1.0: the book has no versions"),
    ],
)
def test_unknown_book_or_version_raises_an_error_with_the_known_ones(
    books: list[str], versions: list[str], message: str
) -> None:
    with pytest.raises(InvalidFilterError, match=message) as refusal:
        scope_of(SHELF, books, versions)
    assert refusal.value.details


def test_edition_keys_and_labels_are_unambiguous() -> None:
    assert [edition_key(*names) for names in (("", ""), ("a", ""), ("", "1"), ("a", "1"))] == ["", "a", "@1", "a@1"]
    assert all(edition_key(*edition_names(key)) == key for key in ("", "a", "@1", "a@1"))
    assert [edition_label(*names) for names in (("", ""), ("a", ""), ("", "1"), ("a", "1"))] == [
        "", "a", "version 1", "a 1",
    ]  # fmt: skip
    assert page_id_for("x") != page_id_for("x", "a@1") != page_id_for("x", "a@2")


@pytest.mark.parametrize("name", ["a b", "a@b", "a/b", "x" * 65, "a\n"])
def test_names_that_do_not_fit_into_a_url_are_rejected(name: str) -> None:
    with pytest.raises(ValidationFailed, match="--book"):
        require_names(name, "")
    with pytest.raises(ValidationFailed, match="--version"):
        require_names("", name)


def test_manifest_of_an_older_version_has_one_unnamed_edition() -> None:
    manifest = Manifest(Fingerprint("m", 1, ""), "g", "now", 3, 9, calibration={"answered": 0.1}, recipe="4")
    assert manifest.shelf == (Edition(pages=3, calibration={"answered": 0.1}, recipe="4"),)
