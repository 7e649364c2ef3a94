"""What is about the paper and this project's published results; not installed with ``verse``.

``python -m paper.report`` writes docs/results from results/, ``python -m paper.pages`` the tables
of other pages. Tables and statistics come from ``verse.reports``; ``verse`` imports none of this.
"""
