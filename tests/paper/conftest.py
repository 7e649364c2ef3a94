"""The store of small real runs that tests of reports use."""

from tests.reports.conftest import _toy, store, table_recipe, tuning_recipe

__all__ = ["_toy", "store", "table_recipe", "tuning_recipe"]
