"""Writes the pages that follow from the code: ``python docs/generate.py``; a test compares them.

docs/reference/cli.md, docs/learners/index.md, the table of settings on each learner's page, and a
page of docs/reference/ for each public module; and the drawing of docs/architecture.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import click

import verse
from verse import learners
from verse.cli import main
from verse.cli.list import assumptions, first_line, summarize_traits
from verse.settings import join_choices, kinds, rule

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]  # for the folder paper and the script beside

from drawing import svg  # noqa: E402

from paper.blocks import filled, table  # noqa: E402

NOTE = "<!-- Written by docs/generate.py from the code: do not edit. -->\n"
WITHOUT_ALL = ("kernels", "reports", "serve")  # packages whose files are the unit


def pages() -> dict[str, str]:
    """Path under docs/ → text."""
    modules = [name for name in sorted(verse._MODULES) if exists(name)]
    reference = {f"reference/{name}.md": module_page(name) for name in modules}
    return {
        "reference/cli.md": command_line(),
        "learners/index.md": learner_table(),
        **{f"learners/{name}.md": learner_page(name) for name in learners.names()},
        "reference/index.md": overview(modules),
        **reference,
        "images/architecture.svg": svg(),
    }


def exists(name: str) -> bool:
    """Whether the module is part of this version."""
    return importlib.util.find_spec(f"verse.{name}") is not None


# ---- the command line -----------------------------------------------------------------------


def command_line() -> str:
    """Every command with its arguments and options."""
    context = click.Context(main, info_name="verse", **main.context_settings)
    parts = ["# Command line\n", NOTE, markdown(main.help or ""), ""]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        parts += list(one_command(command, click.Context(command, context, info_name=name)))
    return "\n".join(parts)


def one_command(command: click.Command, context: click.Context) -> Iterator[str]:
    """The section of one command."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    inside = context.parent is not None and context.parent.parent is not None
    yield f"{'###' if inside else '##'} {context.command_path}\n"
    yield f"```text\n{usage}\n```\n"
    yield markdown(command.help or "") + "\n"
    records = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None
    ]
    yield table(("option", "does"), [(f"`{option}`", does) for option, does in records if does])
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from one_command(inner, click.Context(inner, context, info_name=name))


def markdown(text: str) -> str:
    """Click's help text with its paragraphs."""
    return inspect.cleandoc(text.replace("\b", "")).strip()


# ---- learners -------------------------------------------------------------------------------

LEARNERS = """
## Which one to take

- **To teach a device**: [verse-joint](verse-joint.md), the default of `verse serve` and
  `StreamClassifier`. It recognises a class after a few frames, in any order. It has one setting
  for all data, chosen on validation videos of the five sets on which it is
  [measured](../results/index.md). There it takes 12 to 17 MB, 23 samples a class included.
- **Where time is scarce, or no sample may be kept**: [slda](slda.md). A step takes less than a
  millisecond. It takes about 7 MB, or 0.5 MB with `features=input`. Use `features=grid` if the
  position in the picture matters. It cannot learn more than the fixed features show. On most of
  the data measured here no method that only replays samples has a higher mean accuracy. Shuffled
  hand signs ([asl, iid](../results/asl-efficientnet-lite0-5a26.md)) are an exception: there most
  replay methods are ahead of slda.
- **Where memory is scarce**: [ncm](ncm.md) is the smallest (less than 1 MB). On traffic signs and
  hand signs it is much less accurate than slda. Methods that replay 23 samples a class take 1 MB
  with 8 classes and 6 MB with 49. So with up to 49 classes they are smaller than slda with its
  default features. The pages of the data sets list the memory of every method.
- **A few classes that look like ImageNet**: [fecam](fecam.md) has the highest mean accuracy on
  [eth80](../results/eth80-efficientnet-lite0.md), in all four orderings. It is no general choice:
  on validation videos of gtsrb it is far behind slda (0.537 against 0.657,
  [tuning](../results/tuning.md)).
- **A long stream, or images unlike those of pretraining**: verse-joint or slda. Up to 36,250
  frames no network trained alone (verse, tinyer, er-ace, derpp and cls-er were measured) was
  reliably ahead of the best method that keeps statistics of fixed features. On shuffled streams
  these networks come closer the longer the stream is; on shuffled hand signs derpp has the higher
  mean from 10,000 frames on, which may be chance. On streams that show one class after the other
  they stay behind ([when training the network pays off](../results/length.md)).
  Training the last block may help, at some 80 ms a step: on traffic signs, replay that trains it
  is 0.02 to 0.03 behind slda after 1,500 frames, replay that trains a layer on the grid 0.08 to
  0.11. A longer stream alone does not close the gap of the grid
  ([how much of the network learns](../results/length.md#how-much-of-the-network-learns)).
- **To compare with the paper**: [verse](verse.md) with `clip=none` (it clips gradients by default,
  the paper does not), [tinyer-c48](tinyer-c48.md) and
  [tinyer-2step](tinyer-2step.md) as rivals of equal cost, and [fine-tune](fine-tune.md) and
  [offline](offline.md) as lower and upper bounds.

## All learners

Every method gets one feature `z = G(image)` and its class at a time, once. All methods share the
trainable network F, its initial weights, the number of replayed samples C and the memory budget.
Use the names with `--learner`. Each name links to a page with the update rule and the settings.

**Faithful**: as published. **Adapted**: changed for a stream of single samples, or a variant of
this project; the page of the method explains what and why.
"""
ASSUMPTIONS = """
## What each method assumes

The table describes each method as published, as the paper's table does. `verse list learners`
prints the same table. ✓ yes, ✗ no, – does not apply, - not stated.

- *Tunes*: needs a fine-tuning phase.
- *CIL*: class-incremental, needs no task labels.
- *Subset*: replays a few samples in each step, not its whole memory.
- *Train*, *infer*: passes over the data in training and before a prediction; ζ(1): one, ζ(n): n.
- *Breaks CISLL*: does not fit class-incremental streaming lifelong learning.
"""


def learner_table() -> str:
    """All learners with their line, and the table of assumptions."""
    rows = assumptions()
    lines = [
        (f"[{row['name']}]({row['name']}.md)", about(str(row["name"])), str(row["fidelity"]))
        for row in rows
    ]
    facts = [{key: str(value) for key, value in summarize_traits(row).items()} for row in rows]
    heads = list(facts[0])
    assumed = [[f"[{f['name']}]({f['name']}.md)", *(f[key] for key in heads[1:])] for f in facts]
    parts = ["# Learners\n", NOTE, LEARNERS.strip(), "", table(("name", "does", "fidelity"), lines)]
    return "\n".join([*parts, ASSUMPTIONS.strip(), "", table(heads, assumed)])


def about(name: str) -> str:
    """A learner's first line."""
    return first_line(learners.get(name))


def learner_page(name: str) -> str:
    """A learner's page, which people write, with the table of its settings."""
    page = DOCS / "learners" / f"{name}.md"
    text = page.read_text(encoding="utf-8") if page.exists() else f"# {name}\n{SETTINGS}"
    known = learners.schema(name)["properties"]
    rows = [
        (f"`{key}`", shown(allowed["default"]), takes(allowed), allowed.get("description", ""))
        for key, allowed in known.items()
        if key != "seed"
    ]
    head = ("setting", "default", "takes", "meaning")
    return filled(text, "settings", table(head, rows) if rows else "None but the seed.\n")


SETTINGS = """
## Settings
<!-- settings: begin -->
<!-- settings: end -->

## Measured
<!-- measured: begin -->
<!-- measured: end -->
"""
KINDS = {
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
}


def shown(value: object) -> str:
    """A default as one writes it in a recipe or on the command line."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"`{value}`" if isinstance(value, str) else f"{value:.4g}"


def takes(allowed: dict[str, object]) -> str:
    """Which values a setting may have."""
    for key, word in (("enum", ""), ("examples", "like ")):
        choice = allowed.get(key)
        if isinstance(choice, list):
            return word + join_choices(f"`{value}`" for value in choice)
    words = [KINDS[kind] for kind in kinds(allowed) if kind != "null"]
    bounds = rule({key: value for key, value in allowed.items() if key != "type"})
    return f"{join_choices(words)} {bounds}".strip() + (
        " or none" if "null" in kinds(allowed) else ""
    )


# ---- the library ----------------------------------------------------------------------------

REFERENCE = """
Public is what `__all__` of a package lists, and every name without a leading underscore in the
single files. Everything loads on first use: `import verse` alone takes milliseconds. The
[command line](cli.md) has a page of its own.

::: verse
    options:
      members: [Configuration, StreamClassifier, open]
      show_root_heading: false
      show_root_toc_entry: false
      heading_level: 2
"""


def overview(modules: Sequence[str]) -> str:
    """The entry page: the two names most people need, then where everything else is."""
    rows = [(f"[verse.{name}]({name}.md)", first_line(module(name))) for name in modules]
    return "\n".join(
        [
            "# Python\n",
            NOTE,
            REFERENCE.strip(),
            "",
            "## Modules\n",
            table(("module", "holds"), rows),
        ]
    )


def module_page(name: str) -> str:
    """A page whose content comes from the docstrings."""
    options = ["show_root_heading: false", "show_root_toc_entry: false", "heading_level: 2"]
    public = vars(module(name)).get("__all__", ())
    # a function named like its file is shown by its full name: without, the file is meant
    apart = [key for key in public if exists(f"{name}.{key}")]
    if public:
        options.append(f"members: [{', '.join(key for key in public if key not in apart)}]")
    elif name in WITHOUT_ALL:
        options.append("show_submodules: true")
    lines = "".join(f"      {option}\n" for option in options)
    more = "".join(f"\n::: verse.{name}.{key}.{key}\n" for key in apart)
    return f"# verse.{name}\n\n{NOTE}\n::: verse.{name}\n    options:\n{lines}{more}"


def module(name: str) -> ModuleType:
    """A public module."""
    return importlib.import_module(f"verse.{name}")


if __name__ == "__main__":
    for path, text in pages().items():
        file = DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(DOCS.parent)}")
