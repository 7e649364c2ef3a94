"""The store of small real runs that tests of reports use."""

from tests.reports.conftest import store, table_recipe, toy_modules, tuning_recipe

__all__ = ["toy_modules", "store", "table_recipe", "tuning_recipe"]
