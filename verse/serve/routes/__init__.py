"""The HTTP interface, one file for each kind of request.

Belongs here: how a request is read, checked and answered. Does not belong here: the work itself,
which the session does.
"""
