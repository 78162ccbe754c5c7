"""`python -m chapterverse` runs the command `chapterverse`."""

from chapterverse.cli import main

main(prog_name="chapterverse")
