"""The command `eval`: ask a set of questions, compare two runs, draft questions."""

import asyncio
import shutil
import subprocess
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chapterverse import __version__
from chapterverse.cli.command import INTERRUPTED, WORSE, command
from chapterverse.errors import ValidationFailed

if TYPE_CHECKING:
    from chapterverse.evaluation.cases import Case
    from chapterverse.evaluation.questions import Question
    from chapterverse.evaluation.report import Run
    from chapterverse.services import Services


@click.command("eval", epilog=f"Exit code: 0, even if answers were wrong; {WORSE} if --compare finds a worse measure.")
@click.argument("files", nargs=-1, metavar="SET", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report as JSON and as a page.")
@click.option("--json", "as_json", is_flag=True, help="Print the report, or the comparison, as JSON.")
@click.option("--limit", type=click.IntRange(min=1), help="Ask only this many questions, from the first.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Questions at once.")
@click.option(
    "--price",
    type=(float, float),
    metavar="READ WRITTEN",
    help="Price of a million tokens read and written; adds the cost to the report.",
)
@click.option("--compare", "comparing", is_flag=True, help="Compare two reports: --compare BEFORE.json AFTER.json.")
@click.option("--from-feedback", "from_feedback", is_flag=True, help="Make test cases from the rated answers.")
@click.option("--make", "drafts", type=click.IntRange(1, 1000), metavar="N", help="Draft N questions from the book.")
@command
async def evaluate(
    files: tuple[Path, ...],
    comparing: bool,
    drafts: int | None,
    from_feedback: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Measure how well the book answers the questions of SET.

    SET has a JSON object on each line. Only `question` is required; other fields add measures: `answer`, `page`,
    `section`, `sentence` (the evidence, word for word), `answerable` (false: a refusal is right), `history`
    ([[question, answer], …]), `rewrite`, `selection`, `filters`, `group`, `kind`. Every figure has its 95 % interval.
    No conversation is stored. After Ctrl-C the report has the questions asked so far. With --concurrency above 1, times
    are those of a busy machine.

    \b
      chapterverse eval --make 20 > questions.jsonl     drafts, for you to edit
      chapterverse eval --from-feedback > rated.jsonl   rated answers, as questions
      chapterverse eval questions.jsonl --out reports/  a table, reports/eval-….json and .html
      chapterverse eval --compare reports/A.json reports/B.json
    """
    if comparing + (drafts is not None) + from_feedback > 1:
        raise ValidationFailed("Use one of --compare, --make and --from-feedback.")
    if comparing:
        return _compare(files, as_json=as_json)
    if drafts is not None:
        return await _draft(files, drafts)
    if from_feedback:
        return await _rated(files)
    if len(files) != 1:
        raise ValidationFailed("Name one SET of questions. See: chapterverse eval --help")
    return await _evaluate(files[0], as_json=as_json, **options)


async def _evaluate(
    path: Path,
    *,
    out: Path | None,
    as_json: bool,
    limit: int | None,
    concurrency: int,
    price: tuple[float, float] | None,
) -> int:
    from chapterverse.evaluation.questions import load_questions
    from chapterverse.evaluation.report import make_report, save_report
    from chapterverse.evaluation.report_page import make_page
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_report
    from chapterverse.wiring import open_services

    questions = load_questions(path)[:limit]
    async with open_services(Settings.load()) as services:
        cases, run = await _asked(questions, services, path.name, concurrency)
    report = make_report(run.model_copy(update={"prices": price}), cases)
    if as_json:
        click.echo(report.model_dump_json(indent=1))
    else:
        show_report(report)
    if out is not None:
        data, page = save_report(report, make_page(report), out)
        show_note(f"report: {data}\npage:   {page}")
    return INTERRUPTED if report.run.interrupted else 0


async def _asked(
    questions: "list[Question]", services: "Services", name: str, concurrency: int
) -> "tuple[list[Case], Run]":
    from chapterverse.evaluation.questions import set_digest
    from chapterverse.evaluation.report import Run
    from chapterverse.evaluation.runner import ask_all
    from chapterverse.terminal.evaluation import EvaluationProgress

    manifest = await services.index.manifest()  # a missing book is an error of the run, not of each question
    cases = []
    interrupted = False
    try:
        with EvaluationProgress(len(questions)) as show:
            async with aclosing(ask_all(questions, services, concurrency)) as asked:
                async for case in asked:
                    cases.append(case)
                    show(case)
    except asyncio.CancelledError:
        if not cases:
            raise
        interrupted = True
    order = {question.id: place for place, question in enumerate(questions)}
    run = Run(
        made_at=datetime.now(UTC),
        commit=_commit(),
        version=__version__,
        questions=name,
        digest=set_digest(questions),
        asked=len(questions),
        model=services.writer.engine,
        embeddings=manifest.fingerprint.model,
        index=services.index.engine,
        book=f"{manifest.pages} pages, {manifest.chunks} passages",
        concurrency=concurrency,
        interrupted=interrupted,
    )
    return sorted(cases, key=lambda case: order[case.question.id]), run


def _compare(files: tuple[Path, ...], *, as_json: bool) -> int:
    from pydantic import TypeAdapter

    from chapterverse.evaluation.comparing import Comparison, compare
    from chapterverse.evaluation.report import load_report
    from chapterverse.terminal.evaluation import show_comparison

    if len(files) != 2:
        raise ValidationFailed("Name two reports: chapterverse eval --compare BEFORE.json AFTER.json")
    found = compare(*map(load_report, files))
    if as_json:
        click.echo(TypeAdapter(Comparison).dump_json(found, indent=1).decode())
    else:
        show_comparison(found)
    return WORSE if any(change.verdict == "worse" for change in found.changes) else 0


async def _draft(files: tuple[Path, ...], count: int) -> int:
    from chapterverse.evaluation.drafting import draft_questions, to_line
    from chapterverse.retrieval import editions_in
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.wiring import open_engines

    if files:
        raise ValidationFailed("--make writes to stdout: chapterverse eval --make 20 > questions.jsonl")
    async with open_engines(Settings.load()) as engines:
        keys = {edition.key for edition in await editions_in(None, engines.index)}  # the latest versions
        listed = [page for page in await engines.index.pages() if page.edition in keys]
        pages = [page for entry in listed if (page := await engines.index.page(entry.page_id))]
    drafts = draft_questions(pages, count)
    for draft in drafts:
        click.echo(to_line(draft))
    refused = sum(not draft.answerable for draft in drafts)
    show_note(f"{len(drafts)} drafts, {refused} of them expect a refusal. Review and edit them before use.")
    return 0


async def _rated(files: tuple[Path, ...]) -> int:
    from chapterverse.cli.sessions import stored_conversations
    from chapterverse.evaluation.drafting import to_line
    from chapterverse.evaluation.questions import rated_questions
    from chapterverse.terminal import show_note

    if files:
        raise ValidationFailed("--from-feedback writes to stdout: chapterverse eval --from-feedback > rated.jsonl")
    until = datetime.now(UTC)
    async with stored_conversations() as conversations:
        turns = await conversations.rated(until - timedelta(days=3650), until) if conversations else []
    questions = rated_questions(turns)
    for question in questions:
        click.echo(to_line(question))
    unsure = sum(bool(question.check) for question in questions)
    noun = "question" if len(questions) == 1 else "questions"
    show_note(f"{len(questions)} {noun}, {unsure} of them rated down: review their `check` before use.")
    return 0


def _commit() -> str:
    """Return the git commit of the working folder, which is usually that of the book; empty if there is none."""
    if (git := shutil.which("git")) is None:
        return ""
    result = subprocess.run([git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout.strip() if result.returncode == 0 else ""
