"""Plain mathematics that learners share: losses, moments, projections, quantisers, random draws.

Here goes what is a formula of its inputs. What knows a network or a learner does not.
"""
