"""Measures the answers of a book with questions whose answers are known.

It has question sets, measures, statistics, reports, comparisons and drafts. The services that answer are passed in.
"""
