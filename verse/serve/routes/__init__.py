"""The HTTP interface, one file for each kind of request.

Here goes how a request is read, checked and answered. The work itself does not: that is the
session's.
"""
