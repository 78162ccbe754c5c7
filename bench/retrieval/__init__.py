"""The retrieval bench: does the search find the right page, and better than its two halves alone?"""
