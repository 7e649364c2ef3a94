"""The command line: one file per command, loaded only when it is called.

Belongs here: code that reads options and prints. Does not belong here: work that a Python user
needs, too.

Each file ``verse/cli/NAME.py`` has a click command named ``command``; the table below gives its
place and the line that ``verse --help`` shows, so that the overview need not import them.
"""

from __future__ import annotations

import click

from verse import __version__
from verse.cli.lazy import LazyGroup

COMMANDS = {
    "run": "Train one learner on a stream and measure its accuracy.",
    "compare": "Run all experiments of a recipe: learners, orderings, data sets and seeds.",
    "report": "Make tables, figures and a web page from finished runs.",
    "results": "Check, repair, convert and join folders of finished runs.",
    "serve": "Serve a classifier over HTTP, with a web page to teach it.",
    "teach": "Teach a classifier from a folder of images or a video.",
    "predict": "Classify images, folders and videos.",
    "classes": "Show the classes of a classifier.",
    "doctor": "Find weak classes, confused classes and wrong labels.",
    "test": "Measure a classifier's accuracy on a folder of labelled images.",
    "watch": "Watch a camera and report what appears, changes or disappears.",
    "forget": "Remove a class or single samples from a classifier, exactly.",
    "export": "Export a classifier as an ONNX file or as a file that can be taught further.",
    "import": "Create a classifier from a file written by verse export --teachable.",
    "merge": "Merge two classifiers with the same backbone and learner.",
    "backup": "Copy a classifier to a single backup file.",
    "restore": "Restore a backup into a new directory.",
    "salvage": "Recover a classifier whose journal is lost from its newest valid checkpoint.",
    "info": "Show versions, devices and caches, for bug reports.",
    "list": "List the available learners, data sets, backbones and memories.",
    "bench": "Measure the speed and the memory use on this machine.",
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

    Exit codes: 0 success; 1 some runs of verse compare failed; 2 invalid input, with a message
    that says what to do; 130 interrupted, and everything learned so far is saved. Set
    VERSE_DEBUG=1 to see the traceback of an error.
    """
