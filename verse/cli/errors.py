"""What an exception means to the shell: 2 for bad input, 130 for an interruption."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import click

from verse.extras import find_missing_extra
from verse.types import VerseError


class BadInput(click.ClickException):
    """A message that says what to do, and exit code 2."""

    exit_code = 2


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn errors a user can mend into exit code 2, and an interruption into 130.

    Any other exception is a fault of the program: it passes, and its traceback is shown.

    >>> with exit_codes():
    ...     raise VerseError("no such folder; give an existing one")
    Traceback (most recent call last):
    verse.cli.errors.BadInput: no such folder; give an existing one
    """
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted. Everything so far is saved.", err=True)
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:
        raise  # the reader went away; click ends quietly
    except VerseError as error:
        if os.environ.get("VERSE_DEBUG"):
            raise
        raise BadInput(str(error)) from error
    except ModuleNotFoundError as error:
        missing = find_missing_extra(error)
        if missing is None:
            raise
        raise BadInput(str(missing)) from error
    except OSError as error:
        # A file that cannot be read or written: the user's to mend when it has a name.
        if error.filename is None or os.environ.get("VERSE_DEBUG"):
            raise
        raise BadInput(f"{error.filename}: {error.strerror}") from error
