"""Tables and figures from finished runs.

Belongs here: reports that any user can make of their runs. Does not belong here: what concerns
the paper or this project's own pages; that is in the repository's ``paper/``.
"""
