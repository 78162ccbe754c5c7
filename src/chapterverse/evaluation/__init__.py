"""How good the answers of a book are: questions whose answers are known, asked through the whole product and counted.

Owns question sets, measures, their statistics, reports, comparisons and drafts. Never answers anything itself and never
opens an engine: it is given the services that answer.
"""
