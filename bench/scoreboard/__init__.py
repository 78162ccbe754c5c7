"""The scoreboard: every figure of trust for our keyless default and two baselines, on the same questions."""
