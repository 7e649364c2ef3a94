"""``verse serve``: a durable classifier and its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from verse.cli.directory import open_directory
from verse.cli.output import console


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True,
              help="The address to listen on; others than this machine need a token.")  # fmt: skip
@click.option("--port", default=8700, show_default=True, type=click.IntRange(0, 65535))
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with the token to learn and delete. [or: VERSE_TOKEN]")  # fmt: skip
@click.option("--private", is_flag=True, help="Asking and looking need the token, too.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False),
              help="A certificate: browsers give cameras to https and localhost only.")  # fmt: skip
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its key.")
@click.option("--queue", default=64, show_default=True, type=click.IntRange(1, 10_000),
              help="Lessons that may wait; more are refused with 429.")  # fmt: skip
@click.option("--rate", default=200.0, show_default=True, type=click.FloatRange(0),
              help="Requests a second from one address; 0: any.")  # fmt: skip
@click.option("--max-pixels", default=24_000_000, show_default=True,
              type=click.IntRange(1, 64_000_000), help="Of an image.")  # fmt: skip
@click.option("--max-bytes", default=16 * 2**20, show_default=True,
              type=click.IntRange(1024, 256 * 2**20), help="Of a request.")  # fmt: skip
@click.option("--learner", help="Of a new directory: see verse list learners.")
@click.option("--backbone", help="Of a new directory: see verse list backbones.")
@click.option("--at", help="Of a new directory: the first plastic layer.")
@click.option("--weights", help="A file of pretrained weights. [default: the published ones]")
@click.option("--per-class", type=click.IntRange(1), help="Of a new directory: samples remembered.")
@click.option("--seed", type=click.IntRange(0), help="Of a new directory.")
@click.option("--keep-images", is_flag=True, help="Of a new directory: keep every taught image.")
@click.option("--threads", type=click.IntRange(1),
              help="To learn, and as many to answer. [default: half the cores]")  # fmt: skip
def command(
    directory: Path,
    host: str,
    port: int,
    token_file: Path | None,
    private: bool,
    tls_cert: str | None,
    tls_key: str | None,
    queue: int,
    rate: float,
    max_pixels: int,
    max_bytes: int,
    threads: int | None,
    keep_images: bool,
    **options: Any,  # the remaining ones are options of verse.open, name by name
) -> None:
    """Serve a durable classifier and its page.

    DIRECTORY is made if it is new. Ctrl-C or a termination signal finishes what waits, writes a
    checkpoint and ends; being killed loses nothing that was answered.
    """
    from verse.serve.certificate import check_certificate
    from verse.serve.security import Access, Limits, read_token

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if tls_cert is not None and tls_key is not None:
        check_certificate(tls_cert, tls_key)
    access = Access.to_serve(host, read_token(token_file), private=private)
    limits = Limits(body=max_bytes, rate=rate)
    from verse.serve.app import create_app
    from verse.serve.session import Session

    given = {name: value for name, value in options.items() if value is not None}
    classifier = open_directory(directory, threads, options={"keep_images": keep_images, **given})
    try:
        session = Session(classifier, limit=queue, max_pixels=max_pixels)
        app = create_app(session, access=access, limits=limits)
    except BaseException:
        classifier.close()
        raise
    run(app, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)


def run(app: Any, *, host: str, port: int, tls_cert: str | None, tls_key: str | None) -> None:
    """Serve until told to stop."""
    import uvicorn

    from verse.serve.quiet import quiet

    quiet()

    class Server(uvicorn.Server):
        """Tells listeners of events that it is over, which would keep it waiting otherwise."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            app.state.events.close()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                bound = self.servers[0].sockets[0].getsockname()[1]
                scheme = "https" if tls_cert else "http"
                shown = f"[{host}]" if ":" in host else host
                console().print(f"Serving on {scheme}://{shown}:{bound}", soft_wrap=True)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # or anybody could claim another address than his own
        limit_concurrency=256,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        h11_max_incomplete_event_size=64 * 1024,
    )
    Server(config).run()
