"""Other libraries' ways of saying the same: river, scikit-learn, Avalanche, PyTorch.

Here goes what translates between their interfaces and ours. What our own interface lacks does not:
it is added there first.

Each is a module of its own, imported by name (``from verse.compat.river import RiverClassifier``),
so that none of these packages is needed for another.
"""
