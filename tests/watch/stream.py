"""A network camera of the tests: an HTTP server that sends one JPEG after the other."""

from __future__ import annotations

import io
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def make_jpeg(colour: str) -> bytes:
    pixels = np.zeros((48, 64, 3), np.uint8) + np.array(COLOURS[colour], np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


class Camera:
    """Shows ``colour`` at 20 frames a second; ``stop`` kills it, ``start`` brings it back."""

    def __init__(self, colour: str) -> None:
        self.colour = colour
        self.port = 0
        self.sent = 0
        self.server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/live.mjpg"

    def start(self) -> None:
        camera = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace;boundary=frame")
                self.end_headers()
                server = camera.server
                while server is not None and camera.server is server:
                    picture = make_jpeg(camera.colour)
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}"
                    try:
                        self.wfile.write(head.encode() + b"\r\n\r\n" + picture + b"\r\n")
                    except OSError:
                        return
                    camera.sent += 1
                    time.sleep(0.05)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()
