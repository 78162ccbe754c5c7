"""A real small language model on this machine, for measurements that want one: `make eval-llm`.

Opt-in, never part of `make test`, never shipped. What is downloaded lies in `.cache/llm`, which git ignores.
"""
