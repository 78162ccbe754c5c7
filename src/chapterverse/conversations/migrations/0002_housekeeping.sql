-- One row: when the clock was last found to go on as it should, and, while it is in doubt, where it jumped to.

CREATE TABLE housekeeping (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    trusted_at timestamptz NOT NULL,
    doubted_at timestamptz
);
