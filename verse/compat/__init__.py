"""Adapters for other libraries: river, scikit-learn, Avalanche, PyTorch.

Belongs here: code that translates between their interfaces and ours. Does not belong here:
functions that our own interface lacks; add them there first.

Import each module by name (``from verse.compat.river import RiverClassifier``): it needs only the
library that it adapts.
"""
