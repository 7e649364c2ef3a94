"""What ``verse bench`` measures: contestants take turns in one run, so that ratios hold.

Here goes what measures the speed of an installed version. What measures accuracy, or takes hours,
does not: that is in the repository's ``benchmarks/``.
"""
