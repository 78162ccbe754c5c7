"""Measurements of the whole product on public data. Never imported by the product."""
