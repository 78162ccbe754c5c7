"""`python -m chapterverse.cli` is `chapterverse`."""

from chapterverse.cli import main

main(prog_name="chapterverse")
