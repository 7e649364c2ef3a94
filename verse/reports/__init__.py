"""Tables and figures from finished runs.

Here goes what serves anybody's runs. What is about the paper or this project's own pages does not:
that is in the repository's ``paper/``.
"""
