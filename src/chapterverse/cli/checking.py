"""Commands that check: `check` a change of the book, `verify` a saved answer, `judge-check` the model that judges."""

import json
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import WORSE, command
from chapterverse.errors import AgentUnavailable, ConfigurationError, ValidationFailed

if TYPE_CHECKING:
    from chapterverse.evaluation.checking import Baseline, CheckFinding
    from chapterverse.evaluation.questions import Question
    from chapterverse.services import Services

NOT_FIT = 22  # exit code when the model is not fit to judge


@click.command(
    epilog=f"Exit code: 0, {WORSE} when a question is broken or contradictory, 1 when one could not be asked."
)
@click.argument("questions", metavar="QUESTIONS", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="What the questions were answered from. Default: QUESTIONS with the ending .baseline.json.",
)
@click.option("--save", is_flag=True, help="Keep what the questions are answered from now as the baseline.")
@click.option("--summary", type=click.Path(path_type=Path), help="Write the findings there in Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Questions at once.")
@command
async def check(
    questions: Path, baseline: Path | None, save: bool, summary: Path | None, as_json: bool, concurrency: int
) -> int:
    """Say which known QUESTIONS a change of the book breaks, fixes or makes contradictory.

    QUESTIONS is a set as `chapterverse eval` takes it. A question is broken when it was answered from a stretch of a
    page and is now refused or answered from elsewhere or in other words, unless the set (`sentence`, `answer`) says
    that the new answer is right. It is contradictory when another section now says otherwise.

    \b
      chapterverse ingest docs/ && chapterverse check questions.jsonl --save    before the change
      chapterverse ingest docs/ && chapterverse check questions.jsonl           after it
      chapterverse check questions.jsonl --summary summary.md                   for a pull request
    """
    from chapterverse.evaluation.checking import load_baseline, make_summary, save_baseline
    from chapterverse.evaluation.questions import load_questions
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_findings
    from chapterverse.wiring import open_services

    asked = load_questions(questions)
    place = baseline or questions.with_suffix(".baseline.json")
    known = load_baseline(place)
    if known is None and not save:
        raise ValidationFailed(
            f"There is no baseline at {place}. Make one of the book before the change with: "
            f"chapterverse check {questions} --save"
        )
    async with open_services(Settings.load()) as services:
        findings = await _findings(asked, known, services, concurrency)
        current = await _baseline(findings, services)
    if known is not None and summary is not None:
        _write(make_summary(findings, known, current.book), summary)
    if as_json:
        click.echo(f"[{','.join(one.model_dump_json() for one in findings)}]")
    elif known is not None:
        show_findings(findings, known, current)
    if save:
        save_baseline(current, place)
        show_note(f"baseline: {place} ({len(findings)} questions)")
    worse = not save and any(one.verdict in ("broken", "contradictory") for one in findings)
    return WORSE if worse else int(any(one.verdict == "failed" for one in findings))


async def _findings(
    questions: "list[Question]", known: "Baseline | None", services: "Services", concurrency: int
) -> "list[CheckFinding]":
    from chapterverse.evaluation.checking import compare_case
    from chapterverse.evaluation.running import ask_all
    from chapterverse.terminal.evaluation import EvaluationProgress

    await services.index.manifest()  # no book is an error of the run, not of each question
    earlier = {(one.id, one.question): one for one in (known.outcomes if known else ())}
    findings = {}
    with EvaluationProgress(len(questions)) as show:
        async with aclosing(ask_all(questions, services, concurrency)) as asked:
            async for case in asked:
                before = earlier.get((case.question.id, case.question.question))
                findings[case.question.id] = await compare_case(case, before, services)
                show(case)
    return [findings[question.id] for question in questions]


async def _baseline(findings: "list[CheckFinding]", services: "Services") -> "Baseline":
    from chapterverse.evaluation.checking import Baseline

    manifest = await services.index.manifest()
    return Baseline(
        made_at=datetime.now(UTC),
        model=services.writer.engine,
        embeddings=manifest.fingerprint.model,
        book=f"{manifest.pages} page{'s' * (manifest.pages != 1)}, {manifest.chunks} passages",
        # What could not be asked now is kept as it was.
        outcomes=tuple((one.verdict == "failed" and one.before) or one.now for one in findings),
    )


def _write(text: str, path: Path) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as failure:
        raise ValidationFailed(f"--summary {path}: cannot be written: {failure.strerror}") from None


@click.command(epilog=f"Exit code: 0 when every quote stands, here or elsewhere; {WORSE} when one changed or is gone.")
@click.argument("proof", metavar="ANSWER.JSON", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@command
async def verify(proof: Path, as_json: bool) -> int:
    """Say whether the quotes of an answer still stand in the book. `ask --proof ANSWER.JSON` saves an answer.

    A quote stands word for word in its place, has moved, has changed (what is there now is shown), or is gone. No
    language model is asked.

    \b
      chapterverse ask "What is a node?" --proof answer.json
      chapterverse verify answer.json
    """
    from chapterverse.evaluation.proofs import load_proof, verify_proof
    from chapterverse.settings import Settings
    from chapterverse.terminal.evaluation import show_checks
    from chapterverse.wiring import open_engines

    saved = load_proof(proof)
    async with open_engines(Settings.load()) as engines:
        await engines.index.manifest()  # no book is an error, not a book without these quotes
        checks = await verify_proof(saved, engines.embedder, engines.index)
    if as_json:
        click.echo(f"[{','.join(check.model_dump_json() for check in checks)}]")
    else:
        show_checks(saved, checks)
    return WORSE if any(check.state in ("changed", "gone") for check in checks) else 0


@click.command("judge-check", epilog=f"Exit code: 0 fit or usable with care, {NOT_FIT} not fit, else an error's.")
@click.option("--limit", type=click.IntRange(min=1), help="Ask about only the first so many claims.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@command
async def judge_check(limit: int | None, as_json: bool) -> int:
    """Measure whether the configured model is fit to judge statements.

    The model of JUDGE_MODEL, or else the writing model, is asked about 240 true and subtly false claims on the example
    book. This costs tokens: about 60 short calls.

    \b
      chapterverse judge-check
      JUDGE_MODEL=other-model chapterverse judge-check --json
    """
    from chapterverse.evaluation.judge_check import check_judge, load_claims
    from chapterverse.evidence.judge import JudgeFailed
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.terminal.evaluation import show_judge_report
    from chapterverse.wiring import choose_judge

    judge = choose_judge(Settings.load())
    if judge is None:
        raise ConfigurationError(
            "JUDGE: there is no judge. Set GEMINI_API_KEY or OPENAI_API_KEY, or JUDGE_MODEL with JUDGE_BASE_URL and "
            "JUDGE_API_KEY, and do not set JUDGE=off."
        )
    claims = load_claims()[:limit]
    try:
        show_note(f"asking {judge.name} about {len(claims)} claims …")
        report = await check_judge(judge, claims)
    except JudgeFailed as failure:
        raise AgentUnavailable(f"{judge.name} cannot judge: {failure}.") from failure
    finally:
        await judge.close()
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        show_judge_report(report)
    return NOT_FIT if report.verdict == "not fit" else 0
