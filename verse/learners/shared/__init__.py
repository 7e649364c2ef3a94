"""What several methods share: penalties, triggers, statistics, training on a batch.

Here goes what a second method needs, too. What only one method needs does not: it stays in its
file.
"""
