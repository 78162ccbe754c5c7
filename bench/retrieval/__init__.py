"""The retrieval bench: does the search find the right page, and does fusion beat both of its parts?"""
