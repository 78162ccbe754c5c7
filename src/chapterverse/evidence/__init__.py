"""Proof: passages are issued with numbered units, statements go in, proven statements come out."""
