"""Proves statements: passages are issued with numbered units, which must support the statements of an answer."""
