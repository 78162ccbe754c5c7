"""The command line.

Data goes to stdout, the rest to stderr. Engines are imported inside the commands, so that `--help` is fast.
"""

import logging
import sys
from io import TextIOWrapper

import click

from chapterverse import __version__
from chapterverse.cli.asking import ask, search, suggestions
from chapterverse.cli.chat import chat
from chapterverse.cli.checking import check, judge_check, verify
from chapterverse.cli.evaluating import evaluate
from chapterverse.cli.ingesting import books, calibrate, forget, ingest, sources
from chapterverse.cli.reporting import report
from chapterverse.cli.running import doctor, key, mcp, serve
from chapterverse.cli.sessions import feedback, sessions


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from the environment or a .env file, see .env.example; `doctor` shows their effect.",
)
@click.version_option(__version__, prog_name="chapterverse")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens to stderr.")
def main(verbose: bool) -> None:
    """Ask a book. Every sentence of an answer is checked against the passage it cites.

    \b
    First steps; none needs a key:
      chapterverse ingest docs/            read a folder, file or website into the book
      chapterverse ask "what is a node?"   an answer with its sources, or a refusal
      chapterverse chat                    a conversation that remembers
      chapterverse search "nodes"          find passages, without a language model
      chapterverse serve                   the reader page and the HTTP API on port 8000
      chapterverse doctor                  which engine each part uses, why, and its state
    """
    # The commands print what users must know; the log is for debugging.
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("chapterverse").setLevel(logging.INFO if verbose else logging.CRITICAL)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a character that the terminal cannot show is not an error
            stream.reconfigure(errors="replace")


for _command in (
    ingest,
    books,
    sources,
    forget,
    search,
    suggestions,
    calibrate,
    ask,
    chat,
    sessions,
    feedback,
    evaluate,
    check,
    verify,
    report,
    judge_check,
    serve,
    mcp,
    key,
    doctor,
):
    main.add_command(_command)
