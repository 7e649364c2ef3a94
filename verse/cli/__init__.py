"""The command line: one file per command, loaded only when it is called.

Each file ``verse/cli/NAME.py`` has a click command named ``command``; the table below gives its
place and the line that ``verse --help`` shows, so that the overview imports none of them.
"""

from __future__ import annotations

import click

from verse import __version__
from verse.cli.lazy import LazyGroup

COMMANDS = {
    "run": "Stream a data set through one learner, once, and measure it.",
    "compare": "Run a grid of learners, orderings, data sets and seeds that RECIPE names.",
    "report": "Make tables, figures and a page from finished runs.",
    "serve": "Serve a durable classifier and its page.",
    "teach": "Teach a durable classifier from a folder of images or a video.",
    "predict": "Ask a durable classifier about images and videos.",
    "export": "Write a durable classifier to one ONNX file.",
    "backup": "Copy a durable classifier to one file.",
    "restore": "Put a backup into a new directory.",
    "info": "Show versions, devices, caches and engines, for bug reports.",
    "list": "List the learners, datasets, backbones or memories there are.",
    "bench": "Measure speed as ratios against plain code and the machine.",
}


@click.group(
    cls=LazyGroup,
    package="verse.cli",
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="verse")
def main() -> None:
    """Teach a vision model new classes from a live stream, one frame at a time.

    Exit codes: 0 done; 2 bad input, with a message that says what to do; 130 interrupted, with
    everything so far kept. Set VERSE_DEBUG=1 to see the traceback behind a message.
    """
