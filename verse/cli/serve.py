"""``verse serve``: a durable classifier and its page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from verse.cli.directory import (
    begin_options,
    device_option,
    open_directory,
    refuse_foreign,
    refuse_locked,
)
from verse.cli.glance import Glance, glance_at
from verse.cli.interrupt import exit_on_interrupt
from verse.cli.output import console
from verse.garbage import pause_garbage_collection

STOP = "Press Ctrl-C to stop; everything taught is saved."


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Any address that other machines can reach needs a token.",
)
@click.option(
    "--port",
    default=8700,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 chooses a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token that clients need to teach, undo or delete. [or: VERSE_TOKEN]",
)
@click.option(
    "--private", is_flag=True, help="Require the token for predictions and for reading, too."
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Host name that clients may use, besides IP addresses; can be repeated.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Turn off the limits per address: behind a proxy all requests have the proxy's address.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False),
    help="TLS certificate. Browsers allow cameras only with https or on localhost.",
)
@click.option(
    "--tls-key", type=click.Path(exists=True, dir_okay=False), help="Key of the TLS certificate."
)
@click.option(
    "--queue",
    default=64,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Number of samples that can wait; more are refused with status 429.",
)
@click.option(
    "--rate",
    default=200.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Requests per second allowed from one address; 0: no limit.",
)
@click.option(
    "--max-pixels",
    default=24_000_000,
    show_default=True,
    type=click.IntRange(1, 64_000_000),
    help="Largest image, in pixels.",
)
@click.option(
    "--max-bytes",
    default=16 * 2**20,
    show_default=True,
    type=click.IntRange(1024, 256 * 2**20),
    help="Largest request, in bytes.",
)
@begin_options
@click.option(
    "--keep-images", is_flag=True, help="New classifier: keep every taught image on disk."
)
@click.option("--open", "browser", is_flag=True, help="Open the page in your browser.")
@device_option
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads for learning, and the same number for predictions. [default: half the cores]",
)
def command(
    directory: Path,
    host: str,
    port: int,
    token_file: Path | None,
    private: bool,
    allow_host: tuple[str, ...],
    behind_proxy: bool,
    tls_cert: str | None,
    tls_key: str | None,
    queue: int,
    rate: float,
    max_pixels: int,
    max_bytes: int,
    device: str,
    threads: int | None,
    keep_images: bool,
    browser: bool,
    **options: Any,  # the remaining ones are options of verse.open, name by name
) -> None:
    """Serve a classifier over HTTP, with a web page to teach it.

    DIRECTORY holds the classifier; it is created if it does not exist. Options that begin with "New
    classifier" are stored with it and cannot be changed later. Press Ctrl-C to stop: samples that
    wait are still learned. If the process is killed, no confirmed sample is lost.
    """
    from verse.serve.access import Access, read_token
    from verse.serve.certificate import check_certificate
    from verse.serve.limits import Limits
    from verse.serve.listener import open_sockets

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("give both --tls-cert and --tls-key")
    if tls_cert is not None and tls_key is not None:
        check_certificate(tls_cert, tls_key)
    token = read_token(token_file)
    access = Access.to_serve(host, token, private=private, allowed_hosts=allow_host)
    limits = Limits(
        body=max_bytes, rate=0.0 if behind_proxy else rate, per_address=not behind_proxy
    )
    refuse_foreign(directory)
    refuse_locked(directory)
    # before anything else: a port in use leaves no folder behind
    sockets = open_sockets(host, port)

    def say(*lines: str) -> None:
        for line in lines:
            console().print(line, markup=False, soft_wrap=True)

    # What people want to know comes before torch, which takes seconds to load.
    held = glance_at(directory)
    # of what cannot be read so, opening says what is wrong
    begun = (directory / "journal.sqlite").exists() or any(directory.glob("checkpoint-*.verse"))
    if held is not None or not begun:
        say(f"{directory}: {held or 'a new classifier'}")
    say(STOP, "Loading (a few seconds) …")
    given = {name: value for name, value in options.items() if value is not None}
    given |= {"keep_images": True} if keep_images else {}
    with pause_garbage_collection(freeze=True):
        with exit_on_interrupt():
            from verse.serve.app import create_app
            from verse.serve.server import Server
            from verse.serve.session import Session

        try:
            classifier = open_directory(directory, threads, device=device, options=given)
        except BaseException:
            for one in sockets:
                one.close()
            raise
        try:
            session = Session(classifier, limit=queue)
            app = create_app(session, access=access, limits=limits, max_pixels=max_pixels)
        except BaseException:
            classifier.close()
            raise
    scheme, shown = "https" if tls_cert else "http", f"[{host}]" if ":" in host else host
    url = f"{scheme}://{shown}:{sockets[0].getsockname()[1]}"
    opened = Glance(classifier.taught, classifier.learner.name)

    def start() -> None:
        # new, or damaged and repaired
        say(*([] if opened == held else [f"{directory}: {opened}"]), f"Serving on {url}")
        if browser:
            webbrowser.open(url)

    Server(
        app,
        sockets,
        limits=limits,
        tls_cert=tls_cert,
        tls_key=tls_key,
        on_start=start,
    ).run()
