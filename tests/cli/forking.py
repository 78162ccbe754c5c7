"""A fork server for commands: it imports the modules of the command line once and forks for each command. Imports take
half of the time of a short command.

    python -m tests.cli.forking SOCKET

A command is a process of its own, with its own arguments, environment, working folder and standard streams.
"""

import atexit
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

# None of these reads the environment when it is imported. `chapterverse.terminal` does (the width of the screen).
LOADED: Final = (
    *("chapterverse.cli", "chapterverse.wiring", "chapterverse.answering", "chapterverse.retrieval"),
    *("chapterverse.ingestion.pipeline", "chapterverse.ingestion.sources", "chapterverse.embeddings.local"),
    *(
        "chapterverse.trained",
        "chapterverse.writing.excerpt",
        "chapterverse.conversations.store",
        "chapterverse.index.edge",
    ),
    *("chapterverse.evaluation", "rich.console", "rich.progress", "rich.table", "openai"),
)


@cache
def forker() -> str:
    """The address of the fork server of this process, started at the first call. It ends with this process."""
    folder = tempfile.mkdtemp(prefix="cv-")
    atexit.register(shutil.rmtree, folder)
    address = f"{folder}/forker"
    program = [sys.executable, "-m", "tests.cli.forking", address]
    started = subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(started.communicate)  # the server ends when its standard input is closed
    assert started.stdout is not None and started.stdout.read(1) == b".", "it did not start"
    return address


def run_forked(
    arguments: tuple[str, ...], environment: dict[str, str], fed: str, seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Like `subprocess.run`, in a process of the fork server."""
    with socket.socket(socket.AF_UNIX) as line, tempfile.TemporaryFile() as given:
        line.settimeout(seconds)
        line.connect(forker())
        given.write(fed.encode())
        given.seek(0)
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        asked = json.dumps([arguments, environment, str(Path.cwd())]).encode()
        socket.send_fds(line, [len(asked).to_bytes(4, "big")], [given.fileno(), theirs_out, theirs_err])
        line.sendall(asked)
        os.close(theirs_out)
        os.close(theirs_err)
        outputs: list[str] = ["", ""]

        def read(place: int, source: int) -> None:
            with open(source, encoding="utf-8") as stream:
                outputs[place] = stream.read()

        readers = [threading.Thread(target=read, args=each) for each in ((0, out), (1, err))]
        for reader in readers:
            reader.start()
        answer = line.makefile()
        command = int(answer.readline())
        try:
            code = int(answer.readline())
        except TimeoutError:
            os.kill(command, signal.SIGKILL)
            raise
        finally:
            for reader in readers:
                reader.join()
        return subprocess.CompletedProcess(arguments, code, *outputs)


def serve(address: str) -> None:
    """Forks for each command that a client sends."""
    for name in LOADED:
        import_module(name)
    gc.freeze()  # otherwise, each command visits all imported objects when it ends, which takes 0.1 s of CPU time
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b".")
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            line, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _wait(line)
            line.close()
            _reap()


def _reap() -> None:
    """Collects the exit codes of ended processes, so that none stays a zombie."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return


def _wait(line: socket.socket) -> None:
    """Runs the command in another process and sends its exit code."""
    size, streams, *_ = socket.recv_fds(line, 4, 3)
    arguments, environment, folder = json.loads(line.makefile("rb").read(int.from_bytes(size, "big")))
    if (command := os.fork()) == 0:
        line.close()
        _become(arguments, environment, folder, streams)
    line.sendall(f"{command}\n".encode())
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(command, 0)
    line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(arguments: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    # The old objects belong to other files.
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["chapterverse", *arguments]
    from chapterverse.cli import main

    main(prog_name="chapterverse")


if __name__ == "__main__":
    serve(sys.argv[1])
