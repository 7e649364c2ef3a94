"""Other libraries' ways of saying the same: river, scikit-learn, Avalanche, PyTorch.

Each is a module of its own, imported by name (``from verse.compat.river import RiverClassifier``),
so that none of these packages is needed for another.
"""
