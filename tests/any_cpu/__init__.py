"""Every CPU gives the same vectors and scores (SPEC SC-011)."""
