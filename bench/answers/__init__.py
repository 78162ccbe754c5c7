"""Replays recorded answers of a strong language model through the real gate, with judges whose errors are known."""
