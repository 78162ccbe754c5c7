"""Images inside the folder are copied to the home; other files are not."""

import os
from pathlib import Path

import pytest

from chapterverse.book import Block, Mark, Page
from chapterverse.ingestion import images
from chapterverse.ingestion.document import Tree
from chapterverse.ingestion.images import find_image, image_name, keep_images, stored_image
from tests.ingestion.sources.test_folder import write


def page(*addresses: str) -> Page:
    marks = tuple(Mark("image", 0, 0, address) for address in addresses[1:])
    return Page("1", "u", "t", "m", "s", "text", (), (Block("image", 0, 0, 0, addresses[0]),), marks=marks)


@pytest.mark.parametrize("base", ["", "https://b.test/docs"])
def test_images_of_the_folder_are_copied(tmp_path: Path, base: str) -> None:
    write(tmp_path / "book", "docs/img/a b.png", "static/logo.svg", "docs/notes.txt", data=b"picture")
    (tmp_path / "out.png").write_bytes(b"secret")
    (tmp_path / "book/docs/link.png").symlink_to(tmp_path / "out.png")
    (tmp_path / "book/docs/circular.png").symlink_to("circular.png")
    tree = Tree(str(tmp_path / "book/docs"), base, "book", within=str(tmp_path / "book"))
    start = base or "book"
    logo = "https://b.test/logo.svg" if base else "book/static/logo.svg"
    found = [f"{start}/img/a%20b.png", logo, f"{start}/img/a%20b.png?raw=true", f"{logo}#only-light"]
    others = [
        f"{start}/notes.txt",
        f"{start}/link.png",
        f"{start}/circular.png",
        f"{start}/../../out.png",
        "https://else.test/x.png",
        f"{start}/gone.png",
    ]
    home = tmp_path / "home"
    keep_images(home, page(*found, *others), lambda address: find_image(tree, address))
    kept = {path.name for path in (home / "images").iterdir()}
    assert kept == {image_name(address) for address in found}
    assert stored_image(home, image_name(logo)) == home / "images" / image_name(logo)


def test_image_whose_name_is_too_long_for_a_file_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "book", "static/logo.svg", data=b"picture")
    tree = Tree(str(tmp_path / "book"), "https://b.test", "book")
    long, logo = f"https://b.test/{'a' * 300}.png", "https://b.test/logo.svg"
    keep_images(tmp_path, page(long, logo), lambda address: find_image(tree, address))
    assert stored_image(tmp_path, image_name(long)) is None
    assert stored_image(tmp_path, image_name(logo)) is not None, "the images after it are kept"


def test_changed_image_is_copied_again_and_a_large_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, name = tmp_path / "a.png", image_name("a.png")
    for content in (b"one", b"two"):
        source.write_bytes(content)
        os.utime(source, (1000, 1000))  # as in an archive with fixed times
        keep_images(tmp_path, page("a.png"), lambda _: source)
        assert (tmp_path / "images" / name).read_bytes() == content
    monkeypatch.setattr(images, "MAX_BYTES", 2)
    keep_images(tmp_path, page("b.png"), lambda _: source)
    assert stored_image(tmp_path, image_name("b.png")) is None


@pytest.mark.parametrize("name", ["../x.png", "x.png", f"{'a' * 32}.exe", f"{'a' * 32}.png", ""])
def test_stored_image_rejects_other_names(tmp_path: Path, name: str) -> None:
    assert stored_image(tmp_path, name) is None
