"""Lets the processes of a test run remember what a shipped model said: the same tokens are not computed again.

The first process that asks computes with the real model; all others read its result from the folder `MODEL_MEMORY`,
which is new in each run. The tests put the folder of this file on PYTHONPATH, so that Python imports it at the start of
every process that they start. A process that must compute for itself is given an empty `MODEL_MEMORY`.
"""

import os
import sys
from types import ModuleType
from typing import Any

MODELS = "chapterverse.embeddings.onnx_models"


def remembering(models: ModuleType, folder: str, *, lazily: bool) -> tuple[Any, Any]:
    """`__init__` and `run` of a model that looks into the folder before it computes. `lazily`: its file is verified at
    once, but loaded, which takes longer than a short command, only for the first inputs that are not in the folder."""
    import hashlib
    import pickle
    import threading
    from contextlib import suppress
    from importlib.util import find_spec
    from pathlib import Path

    opened, run = models.Model.__init__, models.Model.run
    opening = threading.Lock()

    def open_named(self: Any, path: Path, sha256: str) -> None:
        self.unopened = (path, sha256)
        if lazily:
            models._check(path, sha256)
        else:
            open_now(self)
        runtime = find_spec("onnxruntime")  # tools/without_vnni.py has its own
        self.remembered_as = f"{sha256} {runtime and runtime.origin}"

    def open_now(self: Any) -> None:
        with opening:
            if self.unopened:
                opened(self, *self.unopened)
                self.unopened = ()

    def run_once(self: Any, inputs: Any) -> Any:
        key = hashlib.sha256(self.remembered_as.encode())
        for name, values in sorted(inputs.items()):
            key.update(f"{name} {values.shape}".encode() + values.tobytes())
        place = Path(folder, key.hexdigest())
        with suppress(OSError):
            return pickle.loads(place.read_bytes())
        open_now(self)
        said = run(self, inputs)
        with suppress(OSError):  # the disk may be full, or this process may let no file grow
            unfinished = place.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            unfinished.write_bytes(pickle.dumps(said))
            unfinished.replace(place)
        return said

    return open_named, run_once


class _WhenImported:
    """Changes the module of the models when it is imported, and imports nothing before."""

    def find_spec(self, name: str, *_: object) -> Any:
        if name != MODELS:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            module.Model.__init__, module.Model.run = remembering(module, os.environ["MODEL_MEMORY"], lazily=True)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


if os.environ.get("MODEL_MEMORY"):
    sys.meta_path.insert(0, _WhenImported())
