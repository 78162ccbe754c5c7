"""How good the answers of a book are: questions whose answers are known, asked through the whole product and counted.

Question sets, measures, their statistics, reports, comparisons and drafts. The services that answer are passed in.
"""
