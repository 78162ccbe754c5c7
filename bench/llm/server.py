"""The process that serves the language model: `python bench/llm/server.py MODEL PORT`.

On shared cores one thread is faster than two that wait for each other. Imports nothing of the project and ends when its
parent does.
"""

import sys
from importlib import import_module
from typing import Any, Final

CONTEXT: Final = 4096  # tokens of a prompt and its reply


def serve(model: str, port: int) -> None:
    """Serve until standard input is closed."""
    llama: Any = import_module("xllamacpp")
    wanted = llama.CommonParams()
    wanted.model.path = model
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_parallel = 1
    wanted.n_ctx = CONTEXT
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.use_jinja = True
    server = llama.Server(wanted)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
