"""The headline table of the README, from finished runs and the recipes that hold them."""

from __future__ import annotations

import measured

from verse.reports import headline, verdicts

NONE = "No finished run yet.\n"


def block() -> str:
    """Markdown: the verdict, the table, and how to read it."""
    found = measured.finished("results")
    commands = {
        run: f"verse compare {recipe} {measured.AGAIN}"
        for run, recipe in measured.recipes().items()
    }
    table = headline.table(found, commands)
    if not table.rows:
        return NONE
    judged = verdicts.summary(verdicts.verdicts(found), verdicts.of_paper(found))
    return f"{judged}\n\n{table.markdown()}\n\n{table.note}\n"
