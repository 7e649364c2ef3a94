"""What is about the paper and this project's published results; not installed with ``verse``.

``python -m paper.pages`` writes docs/results and the tables of other pages from results/. Tables
and statistics come from ``verse.reports``; ``verse`` imports none of this.
"""
