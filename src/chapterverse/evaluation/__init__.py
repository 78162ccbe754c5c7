"""Measures the answers of a book with questions whose answers are known.

Question sets, measures, their statistics, reports, comparisons and drafts. The services that answer are passed in.
"""
