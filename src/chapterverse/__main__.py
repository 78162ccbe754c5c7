"""`python -m chapterverse` is `chapterverse`."""

from chapterverse.cli import main

main(prog_name="chapterverse")
