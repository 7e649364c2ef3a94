"""The command line: one file per command, loaded only when it is called.

Here goes what reads options and prints. Work that a Python user would want, too, does not.

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
    "results": "Check, repair, convert and join folders of finished runs.",
    "serve": "Serve a durable classifier and its page.",
    "teach": "Teach a durable classifier from a folder of images or a video.",
    "predict": "Ask a durable classifier about images, folders and videos.",
    "classes": "Show what a durable classifier knows.",
    "doctor": "Tell what was taught badly: weak classes, confusions, wrong labels.",
    "test": "Test a durable classifier on a folder of images with known classes.",
    "watch": "Watch a camera and report what appears, changes, goes or is unknown.",
    "forget": "Make a durable classifier forget a class or samples, exactly.",
    "export": "Write a durable classifier to one ONNX file, or to one to go on teaching from.",
    "import": "Begin a new directory with what a teachable file knows.",
    "merge": "Make one classifier of two with the same backbone and learner.",
    "backup": "Copy a durable classifier to one file.",
    "restore": "Put a backup into a new directory.",
    "salvage": "Go on from the newest sound checkpoint of a classifier whose journal is lost.",
    "info": "Show versions, devices, caches and engines, for bug reports.",
    "list": "List the learners, data sets, backbones and memories there are.",
    "bench": "Measure speed: frames a second, megabytes, and ratios to plain code and the machine.",
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
