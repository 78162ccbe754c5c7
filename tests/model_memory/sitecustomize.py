"""Caches the outputs of the models for all processes of a test run.

The first process with some input computes it with the real model; others read the result from the folder
`MODEL_MEMORY`, which is new in each run. The tests put the folder of this file on PYTHONPATH, so that Python imports it
when a child process starts. An empty `MODEL_MEMORY` turns the cache off.
"""

import os
import sys
from types import ModuleType
from typing import Any

MODELS = "chapterverse.embeddings.onnx_models"


def remembering(models: ModuleType, folder: str, *, lazily: bool) -> tuple[Any, Any]:
    """`__init__` and `run` of a model that uses the cache folder. `lazily`: the file is verified at once, but loaded
    only for the first input that is not in the cache, because loading takes longer than a short command."""
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
        self.cache_prefix = f"{sha256} {runtime and runtime.origin}"

    def open_now(self: Any) -> None:
        with opening:
            if self.unopened:
                opened(self, *self.unopened)
                self.unopened = ()

    def run_once(self: Any, inputs: Any) -> Any:
        key = hashlib.sha256(self.cache_prefix.encode())
        for name, values in sorted(inputs.items()):
            key.update(f"{name} {values.shape}".encode() + values.tobytes())
        place = Path(folder, key.hexdigest())
        with suppress(OSError):
            return pickle.loads(place.read_bytes())
        open_now(self)
        output = run(self, inputs)
        with suppress(OSError):  # the disk may be full, or the size of files limited
            unfinished = place.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            unfinished.write_bytes(pickle.dumps(output))
            unfinished.replace(place)
        return output

    return open_named, run_once


class _WhenImported:
    """Patches the module of the models when it is imported; imports nothing earlier."""

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
