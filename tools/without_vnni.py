"""Runs a command as on a CPU with AVX2 but without AVX-512 and VNNI.

    python tools/without_vnni.py python -m pytest tests/any_cpu

onnxruntime 1.28 has no option and no environment variable for this: it asks the CPU itself. So the command gets a copy
of the installed package in which two questions are answered with "no": whether the operating system saves AVX-512
registers (`xgetbv`), and whether the CPU has AVX-VNNI, which is VNNI without AVX-512 (bit 4 of `cpuid` 7.1).
A product that only VNNI computes exactly shows whether the copy works; if it does not, the command is refused.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).resolve().parent.parent / ".cache" / "without-avx512-and-avx-vnni"

# Machine code that asks the CPU, and what stands in its place.
ANSWERS: Final = (
    # xor ecx, ecx; xgetbv → xor ecx, ecx; mov al, 7 (x87, SSE and AVX); nop
    (re.compile(rb"\x31\xc9\x0f\x01\xd0"), b"\x31\xc9\xb0\x07\x90"),
    # cpuid; test al, 16 → cpuid; test al, 0
    (re.compile(rb"\x0f\xa2\xa8\x10"), b"\x0f\xa2\xa8\x00"),
)

# One node, MatMulInteger of uint8 (1, 64) and int8 (64, 16). AVX2 adds pairs of products in 16 bits, which two
# products of 255 and 127 overflow; VNNI adds them in 32 bits.
PROBE: Final = """
import numpy as np
from onnxruntime import InferenceSession
model = bytes.fromhex(
    "080812003a5c0a180a01410a0142120159220d4d61744d756c496e74656765721201675a130a0141120e0a0c080212080a0208010a0208405a130a01"
    "42120e0a0c080312080a0208400a02081062130a0159120e0a0c080612080a0208010a02081042040a001011"
)
inputs = {"A": np.full((1, 64), 255, np.uint8), "B": np.full((64, 16), 127, np.int8)}
product = InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)[0]
print("exact" if (product == 64 * 255 * 127).all() else "saturated")
"""


def masked_copy() -> Path:
    """The folder of a copy of onnxruntime that sees neither AVX-512 nor AVX-VNNI; made once for each version."""
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        sys.exit("onnxruntime is not installed here.")
    folder = CACHE / version("onnxruntime")
    if not folder.exists():
        unfinished = CACHE / f"{folder.name}.{os.getpid()}"
        package = Path(spec.origin).parent
        shutil.copytree(package, unfinished / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        for library in (unfinished / package.name / "capi").glob("*.so*"):
            code = library.read_bytes()
            for question, answer in ANSWERS:
                code = question.sub(answer, code)
            library.write_bytes(code)
        unfinished.rename(folder)
    return folder


def environment() -> dict[str, str]:
    """The environment in which Python finds the copy first."""
    paths = [str(masked_copy()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def impossible() -> str | None:
    """Why VNNI cannot be hidden here, or None."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "This is not an x86 CPU: there is no VNNI to hide."
    command = [sys.executable, "-c", PROBE]
    probe = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)  # noqa: S603
    hidden = probe.stdout.strip() == "saturated"
    return None if hidden else f"VNNI cannot be hidden from this onnxruntime ({version('onnxruntime')})."


def main() -> None:
    """Run the command, or say why it cannot be run this way."""
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/without_vnni.py COMMAND ...")
    if (reason := impossible()) is not None:
        sys.exit(reason)
    os.execvpe(sys.argv[1], sys.argv[1:], environment())  # noqa: S606


if __name__ == "__main__":
    main()
