"""The section reader: question + passage → does the passage answer, and which of its units do?"""
