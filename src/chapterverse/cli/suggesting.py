"""The command `suggestions`: questions to begin with, each of which was tried."""

import json

import click

from chapterverse.cli.command import command, edition_filters, edition_options
from chapterverse.errors import ValidationFailed


@click.command()
@click.option("-n", "--limit", type=click.IntRange(1, 50), help="At most so many; default: all that are kept.")
@click.option("--fresh", is_flag=True, help="Make them anew, though the book has not changed.")
@edition_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def suggestions(
    limit: int | None, fresh: bool, as_json: bool, book: tuple[str, ...], version: tuple[str, ...]
) -> int:
    """List questions that the book answers, for those who do not know where to begin.

    They are made of the book's headings and definitions and of what several readers asked, and each was tried. A server
    makes them in the background; this command makes them if there are none for the book as it is. SUGGESTIONS says how
    many of each book and version; with a language model each try is an answer that it writes.

    \b
      chapterverse suggestions
      chapterverse ask "$(chapterverse suggestions -n 1)"
    """
    from chapterverse.evaluation.suggestions import Shelf, refresh, up_to_date
    from chapterverse.retrieval import editions_in
    from chapterverse.settings import Settings
    from chapterverse.terminal import out, printable, show_note
    from chapterverse.wiring import open_services

    settings = Settings.load()
    if not settings.suggestions:
        raise ValidationFailed("SUGGESTIONS is 0: no question is suggested.")
    shelf = Shelf(settings.chapterverse_home)
    async with open_services(settings) as services:
        kept = None if fresh else await up_to_date(shelf, services)
        if kept is None:
            show_note("Trying questions …")
            kept = await refresh(shelf, services)
        editions = {
            (one.book, one.version) for one in await editions_in(edition_filters(book, version), services.index)
        }
    shown = [one for one in kept.suggestions if (one.book, one.version) in editions][:limit]
    if as_json:
        click.echo(json.dumps({"suggestions": [one.model_dump() for one in shown]}, indent=2, ensure_ascii=False))
    else:
        for one in shown:
            out.print(printable(one.question))
    return 0
