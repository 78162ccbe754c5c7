"""The command `report`: what readers asked, and what the book lacks.

Owns its arguments and exit codes. Reads the conversations that are kept; changes nothing.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import command, edition_filters, edition_options
from chapterverse.errors import ValidationFailed

if TYPE_CHECKING:
    from chapterverse.evaluation.usage import UsageReport


@click.command()
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How many days back.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report as JSON and as a page.")
@click.option("--names/--no-names", default=True, help="Whether a configured language model names the groups.")
@edition_options
@command
async def report(
    days: int, as_json: bool, out: Path | None, names: bool, book: tuple[str, ...], version: tuple[str, ...]
) -> int:
    """Tell what readers asked: how many questions, answered, refused, rated down; and what the book lacks.

    Questions that were refused, answered with low confidence or rated down are grouped by what they are about. Each
    group has the nearest sections, the words that the book does not have, and the draft of an issue. Conversations are
    kept for CONVERSATION_RETENTION_DAYS; older questions are not there to be counted. The report holds questions and
    comments as readers wrote them, and no session ids. Where books have names, it counts for each version of each; with
    --book or --version it tells of these alone.

    \b
      chapterverse report
      chapterverse report --days 7 --out reports/     reports/usage-….json and .html
      chapterverse report --book guide                the latest version of one book
      chapterverse report --json | jq -r '.gaps[0].issue'
    """
    from chapterverse.cli.sessions import has_database
    from chapterverse.evaluation.usage import make_usage_report
    from chapterverse.retrieval import editions_in
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_usage
    from chapterverse.wiring import open_services

    settings = Settings.load()
    until = datetime.now(UTC)
    since = until - timedelta(days=days)
    async with open_services(settings) as services:
        asked = await services.conversations.asked(since, until) if has_database(settings) else []
        if meant := edition_filters(book, version):
            keys = {edition.key for edition in await editions_in(meant, services.index)}
            asked = [one for one in asked if keys & set(one.editions)]
        namer = services.writer.name_subject if names and not services.writer.needs_readings else None
        made = await make_usage_report(asked, services, since, until, namer)
        if namer and made.gaps:
            made = made.model_copy(update={"named_by": services.writer.name})
    if out is not None:
        data, page = _save(made, out)
        show_note(f"report: {data}\npage:   {page}")
    if as_json:
        click.echo(made.model_dump_json(indent=1))
    else:
        show_usage(made)
    return 0


def _save(report: "UsageReport", folder: Path) -> tuple[Path, Path]:
    """Write the report as JSON and as a page; where they are."""
    from chapterverse.evaluation.usage_page import make_usage_page

    stem = f"usage-{report.until:%Y%m%d-%H%M%S}"
    data, page = folder / f"{stem}.json", folder / f"{stem}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        data.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
        page.write_text(make_usage_page(report), "utf-8")
    except OSError as failure:
        raise ValidationFailed(f"--out {folder}: cannot be written: {failure.strerror}") from None
    return data, page
