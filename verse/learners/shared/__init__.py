"""What several methods share: penalties, triggers, statistics, training on a batch.

Belongs here: code that a second method needs, too. Does not belong here: what only one method
needs; it stays in the file of that method.
"""
