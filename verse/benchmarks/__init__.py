"""What ``verse bench`` measures: contestants take turns in one run, so that ratios hold.

Belongs here: measurements of the speed of an installed version. Does not belong here:
measurements of accuracy or of hours, which are in the repository's ``benchmarks/``.
"""
