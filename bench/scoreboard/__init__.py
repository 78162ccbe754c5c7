"""The scoreboard: the quality figures of answers without a key and of two baselines, on the same questions."""
