"""How a diagnosis looks."""

from rich.text import Text

from chapterverse.diagnosis import Diagnosis
from chapterverse.terminal import out


def show_diagnosis(diagnosis: Diagnosis) -> None:
    """Each part, its engine and why, its state, and the fix; on stdout, since it is what was asked for."""
    out.print(f"home: {diagnosis.home}\n")
    for finding in diagnosis.findings:
        colour = {"up": "green", "empty": "yellow"}.get(finding.state, "red")
        out.print(Text.assemble((f"{finding.state:<6}", colour), (f"{finding.part:<12}", "bold"), finding.engine))
        for line in (finding.why, finding.message):
            if line:
                out.print(f"{'':18}{line}")
        if finding.fix:
            out.print(Text.assemble(f"{'':18}", ("fix: ", "bold"), finding.fix))
