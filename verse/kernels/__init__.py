"""Plain mathematics that learners share: losses, moments, projections, quantisers, random draws.

Belongs here: formulas of their inputs. Does not belong here: code that knows a network or a
learner.
"""
