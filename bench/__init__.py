"""Benchmarks of the whole product on public data. The product never imports them."""
