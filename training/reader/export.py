"""Make reader.onnx from the weights that came back from the GPU machine.

python -m training.reader.export FOLDER WEIGHTS_STEM EMBEDDER_ONNX OUT_FILE
"""

import sys
from pathlib import Path

from training.onnx_file import export, milliseconds


def main(folder: Path, weights: Path, embedder: Path, target: Path) -> None:
    export(folder, weights, embedder, target)
    for tokens in (128, 256):
        middle, best = milliseconds(target, tokens)
        print(f"{tokens} tokens: {middle:.1f} ms a pair on one thread (fastest {best:.1f})")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:5]))
