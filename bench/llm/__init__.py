"""Runs a small real language model on this machine for benchmarks: `make eval-llm`.

Optional; not used by `make test` and not part of the product. Downloads go to `.cache/llm`, which git ignores.
"""
