"""Recorded answers of a strong language model, replayed through the real gate with judges whose errors are known."""
