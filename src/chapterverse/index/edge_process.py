"""The child process that owns a loaded shard: `python -m chapterverse.index.edge_process <directory>`.

It has a private copy of the current generation until its parent closes the pipe. It imports as little as possible,
because a server waits for it at its start.

It sends one frame when it is ready, `{"generation", "current", "damage", "manifest"}`. Then it answers each request
`{"id", "op", "args"}` with `{"id", "result"}` or `{"id", "error": [class, message]}`, in order.
"""

import ctypes
import mmap
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from chapterverse.environment import own_pipes
from chapterverse.errors import ChapterverseError
from chapterverse.index import frames
from chapterverse.index.edge_shard import ShardReader, engine_errors
from chapterverse.index.generations import private_copy
from chapterverse.index.points import manifest_to_payload

Operation = Callable[..., Any]


def main() -> None:
    """Load the current generation and serve it until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which then closes the pipe
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    requests, answers = own_pipes()
    try:
        with private_copy(Path(sys.argv[1])) as copy:
            reader = ShardReader(copy.path)
            _release_file_memory(copy.path)
            served = {"generation": copy.name, "current": copy.current, "damage": copy.damage}
            _send(answers, {**served, "manifest": manifest_to_payload(reader.manifest)})
            _serve(reader, requests, answers)
    except ChapterverseError as error:
        _send(answers, {"error": _describe(error)})
    except BrokenPipeError:
        pass  # the parent is gone
    os._exit(0)  # skip the engine's cleanup: it would sync files of a copy that is already removed


def _release_file_memory(folder: Path) -> None:
    """Release the memory of mapped files. The engine reads whole files, with their free space, when it opens them: 70
    MB for a small book. Pages that a search needs are mapped again by the kernel."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return  # not Linux
    libc = ctypes.CDLL(None)
    for line in maps.read_text("utf-8", "replace").splitlines():
        span, permissions, *_, name = line.split(maxsplit=5)
        if permissions.endswith("s") and name.startswith(f"{folder}/"):  # shared: changes are in the file
            start, end = (int(number, 16) for number in span.split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def _serve(reader: ShardReader, requests: BinaryIO, answers: BinaryIO) -> None:
    operations: Mapping[str, Operation] = {
        "search": reader.search,
        "recall": reader.recall,
        "missing": reader.missing,
        "pages": reader.pages,
        "page": reader.page,
        "ping": lambda: None,
    }
    while True:
        try:
            request = frames.read(requests)
        except EOFError:
            return
        try:
            with engine_errors():
                answer = {"result": operations[request["op"]](*request["args"])}
        except ChapterverseError as error:
            answer = {"error": _describe(error)}
        _send(answers, {"id": request["id"], **answer})


def _send(answers: BinaryIO, value: Any) -> None:
    answers.write(frames.pack(value))
    answers.flush()


def _describe(error: ChapterverseError) -> list[str]:
    return [type(error).__name__, error.message]


if __name__ == "__main__":
    main()
