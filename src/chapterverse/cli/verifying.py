"""The command `verify`: whether the quotes of a saved answer still stand in the book."""

from pathlib import Path

import click

from chapterverse.cli.command import WORSE, command


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
    from chapterverse.terminal.proofs import show_checks
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
