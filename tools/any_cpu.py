"""Whether an older x86 CPU and an ARM CPU give the shipped vectors and scores: `make any-cpu`.

    python -m tools.any_cpu [x86] [arm]

Both CPUs are emulated by QEMU: a Haswell, which has AVX2 and neither AVX-512 nor VNNI, and an ARM Neoverse N1 with the
Python of Debian and the wheels that are published for it. It takes ten minutes on a free core, and 400 MB below
.cache. It needs the packages `qemu-user-static` and `debootstrap` and, for ARM, root.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from tests.any_cpu.reference import differences, largest

ROOT: Final = Path(__file__).resolve().parent.parent
CACHE: Final = ROOT / ".cache" / "any-cpu"
SYSTEM, WHEELS = CACHE / "debian-arm64", CACHE / "wheels-arm64"
# What the embedder and the section reader import.
NEEDED: Final = ("numpy", "onnxruntime", "flatbuffers", "protobuf", "packaging", "snowballstemmer")
_GLIBC: Final = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
# onnxruntime reads this file. That of an x86 machine makes it crash on ARM.
_CPU: Final = """processor\t: {number}
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""


def on_x86(target: Path) -> None:
    """Compute on a Haswell, with this environment."""
    _compute([_program("qemu-x86_64-static"), "-cpu", "Haswell", sys.executable], target, [])


def on_arm(target: Path) -> None:
    """Compute on ARM, with a Python of its own, which is fetched once."""
    if not (SYSTEM / "proc" / "cpuinfo").exists():
        _make_system()
    if not WHEELS.exists():
        _install_wheels()
    python = str(SYSTEM / "usr" / "bin" / "python3.11")
    emulator = [_program("qemu-aarch64-static"), "-cpu", "neoverse-n1", "-L", str(SYSTEM)]
    _compute([*emulator, python], target, [WHEELS])


def _make_system() -> None:
    """Debian's packages for ARM, unpacked and not installed: nothing of them runs but Python."""
    shutil.rmtree(SYSTEM, ignore_errors=True)
    options = ["--arch=arm64", "--foreign", "--variant=minbase", "--include=python3"]
    _run([_program("debootstrap"), *options, "bookworm", str(SYSTEM)])
    for package in sorted((SYSTEM / "var/cache/apt/archives").glob("*.deb")):
        _run([_program("dpkg-deb"), "-x", str(package), str(SYSTEM)])
    cores = "".join(_CPU.format(number=number) for number in range(os.cpu_count() or 1))
    (SYSTEM / "proc" / "cpuinfo").write_text(cores)


def _install_wheels() -> None:
    """The same versions as here."""
    unfinished = WHEELS.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    platforms = [f"--platform={name}_aarch64" for name in _GLIBC]
    pinned = [f"{name}=={version(name)}" for name in NEEDED]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    wanted = ["--only-binary=:all:", "--python-version=3.11", *platforms, f"--target={unfinished}", *pinned]
    _run([*pip, *wanted])
    unfinished.rename(WHEELS)


def _compute(python: list[str], target: Path, paths: list[Path]) -> None:
    found = os.pathsep.join(map(str, [*paths, ROOT / "src", ROOT]))
    environment = {**os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"}
    _run([*python, "-m", "tests.any_cpu.reference", str(target)], environment)


def _program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    return found or sys.exit(f"{name} is not installed. It is in Debian's packages qemu-user-static and debootstrap.")


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603


def main(names: list[str]) -> None:
    """Compute, compare and say what differs."""
    computing = {"x86": on_x86, "arm": on_arm}
    if unknown := set(names) - set(computing):
        sys.exit(f"usage: python -m tools.any_cpu [x86] [arm], not {', '.join(unknown)}")
    CACHE.mkdir(parents=True, exist_ok=True)
    wrong = False
    for name in names or computing:
        target = CACHE / f"{name}.npz"
        computing[name](target)
        with np.load(target, allow_pickle=False) as file:
            found = dict(file)
        faults = differences(found)
        most = ", ".join(f"{part} {value:.2g}" for part, value in largest(found).items())
        sys.stdout.write(f"{name}: largest differences: {most}: {'; '.join(faults) or 'as shipped'}\n")
        wrong |= bool(faults)
    sys.exit(wrong)


if __name__ == "__main__":
    main(sys.argv[1:])
