"""The command `judge-check`: whether the configured model is fit to judge."""

import json

import click

from chapterverse.cli.command import command
from chapterverse.errors import AgentUnavailable, ConfigurationError

NOT_FIT = 22  # exit code when the model is not fit to judge


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
