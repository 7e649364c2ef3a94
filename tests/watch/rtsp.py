"""A network camera of the tests that speaks RTSP: H.264 in RTP packets, inside the TCP connection.

Just enough of RFC 2326 and RFC 6184 for a player that asks for TCP.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from tests.watch.stream import COLOURS

SDP = (
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=door\r\nt=0 0\r\n"
    "m=video 0 RTP/AVP 96\r\nc=IN IP4 0.0.0.0\r\n"
    "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=control:video\r\n"
)


class RTSPCamera:
    """Shows ``colour`` at 20 frames a second; ``stop`` kills it, ``start`` brings it back."""

    def __init__(self, colour: str) -> None:
        self.colour = colour
        self.port = 0
        self.sent = 0
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self.start()

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/door"

    def start(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        while self._open:
            connection = self._open.pop()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        """Answer one player until it plays, then send."""
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            while request := lines.readline().decode():
                method = request.split(" ")[0]
                head = {}
                while (line := lines.readline().decode().strip()) != "":
                    name, _, value = line.partition(":")
                    head[name.lower()] = value.strip()
                connection.sendall(self._answer(method, head))
                if method == "PLAY":
                    self._send(connection)
                    return

    def _answer(self, method: str, head: dict[str, str]) -> bytes:
        fields, body = {"CSeq": head.get("cseq", "0"), "Session": "1"}, ""
        if method == "OPTIONS":
            fields["Public"] = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"
        elif method == "DESCRIBE":
            body = SDP
            fields |= {"Content-Type": "application/sdp", "Content-Base": f"{self.url}/"}
            fields["Content-Length"] = str(len(body))
        elif method == "SETUP":
            assert "TCP" in head["transport"], "this camera sends over TCP only"
            fields["Transport"] = "RTP/AVP/TCP;unicast;interleaved=0-1"
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"RTSP/1.0 200 OK\r\n{lines}\r\n{body}".encode()

    def _send(self, connection: socket.socket) -> None:
        number = 0
        for stamp, units in self._encode():
            for unit in units:
                last = 0x80 if unit is units[-1] else 0
                head = struct.pack("!BBHII", 0x80, last | 96, number & 0xFFFF, stamp, 7)
                number += 1
                packet = head + unit
                connection.sendall(struct.pack("!cBH", b"$", 0, len(packet)) + packet)
            self.sent += 1
            time.sleep(0.05)

    def _encode(self) -> Iterator[tuple[int, list[bytes]]]:
        """(time in 1/90,000 s, the units of one frame), every frame a key frame."""
        import av

        codec = av.CodecContext.create("libx264", "w")
        codec.width, codec.height, codec.pix_fmt = 64, 48, "yuv420p"
        codec.time_base = Fraction(1, 20)
        codec.options = {"preset": "ultrafast", "tune": "zerolatency", "g": "1"}
        for i in range(1_000_000):
            pixels = np.zeros((48, 64, 3), np.uint8) + np.array(COLOURS[self.colour], np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")
            frame.pts = i
            for packet in codec.encode(frame):
                stream = bytes(packet).replace(b"\0\0\0\1", b"\0\0\1")
                yield i * 4500, [unit for unit in stream.split(b"\0\0\1") if unit]
