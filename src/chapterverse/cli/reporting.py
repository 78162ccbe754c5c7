"""The command `report`: what readers asked, and what the book lacks. It only reads the stored conversations."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import command, edition_filters, edition_options

if TYPE_CHECKING:
    from chapterverse.evaluation.usage import UsageReport


@click.command(short_help="Report what readers asked, and what the book lacks.")
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How many days back.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report as JSON and as a page.")
@click.option("--names/--no-names", default=True, help="Let the configured language model name the groups.")
@edition_options
@command
async def report(
    days: int, as_json: bool, out: Path | None, names: bool, book: tuple[str, ...], version: tuple[str, ...]
) -> int:
    """Report how many questions were asked, answered, refused and rated down, and what the book lacks.

    Questions that were refused, answered with low confidence or rated down are grouped by topic. Each group has the
    nearest sections, the words that the book does not contain, and a draft of an issue. Conversations are stored for
    CONVERSATION_RETENTION_DAYS; older questions are not counted. The report contains questions and comments as readers
    wrote them, but no session ids. Questions are counted for each version of each book; --book and --version
    select some.

    \b
      chapterverse report
      chapterverse report --days 7 --out reports/     reports/usage-….json and .html
      chapterverse report --book guide                the latest version of one book
      chapterverse report --json | jq -r '.gaps[0].issue'
    """
    from chapterverse.cli.sessions import has_database
    from chapterverse.evaluation.gaps import namer_of
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
        if filters := edition_filters(book, version):
            keys = {edition.key for edition in await editions_in(filters, services.index)}
            asked = [question for question in asked if keys & set(question.editions)]
        namer = namer_of(services.writer) if names and not services.writer.needs_readings else None
        usage = await make_usage_report(asked, services, since, until, namer)
        if namer and usage.gaps:
            usage = usage.model_copy(update={"named_by": services.writer.name})
    if out is not None:
        data, page = _save(usage, out)
        show_note(f"report: {data}\npage:   {page}")
    if as_json:
        click.echo(usage.model_dump_json(indent=1))
    else:
        show_usage(usage)
    return 0


def _save(report: "UsageReport", folder: Path) -> tuple[Path, Path]:
    """Write the report as JSON and as a page. Returns their paths."""
    from chapterverse.evaluation.files import save_model, save_text
    from chapterverse.evaluation.usage_page import make_usage_page

    stem = f"usage-{report.until:%Y%m%d-%H%M%S}"
    data = save_model(report, folder / f"{stem}.json", "--out")
    return data, save_text(make_usage_page(report), folder / f"{stem}.html", "--out")
