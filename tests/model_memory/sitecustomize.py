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


def remembering(models: ModuleType, folder: str) -> tuple[Any, Any]:
    """`__init__` and `run` of a model that looks into the folder before it computes."""
    import hashlib
    import pickle
    import threading
    from contextlib import suppress
    from pathlib import Path

    opened, run = models.Model.__init__, models.Model.run

    def open_named(self: Any, path: Path, sha256: str) -> None:
        opened(self, path, sha256)
        self.remembered_as = f"{sha256} {sys.modules['onnxruntime'].__file__}"  # tools/without_vnni.py has its own

    def run_once(self: Any, inputs: Any) -> Any:
        key = hashlib.sha256(self.remembered_as.encode())
        for name, values in sorted(inputs.items()):
            key.update(f"{name} {values.shape}".encode() + values.tobytes())
        place = Path(folder, key.hexdigest())
        with suppress(OSError):
            return pickle.loads(place.read_bytes())
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
            module.Model.__init__, module.Model.run = remembering(module, os.environ["MODEL_MEMORY"])

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


if os.environ.get("MODEL_MEMORY"):
    sys.meta_path.insert(0, _WhenImported())
