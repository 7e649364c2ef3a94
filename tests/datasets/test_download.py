from __future__ import annotations

import hashlib
import http.server
import io
import threading
import zipfile
from typing import ClassVar

import pytest

from verse.datasets.download import Archive, fetch, fetch_archive, unpack_zip
from verse.types import BadData


def zipped(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


BODY = zipped({"set/a.txt": "a" * 5000, "set/b.txt": "b"})


class Handler(http.server.BaseHTTPRequestHandler):
    ranges = True
    asked: ClassVar[list[str | None]] = []
    cut: int | None = None

    def do_GET(self):
        wanted = self.headers.get("Range")
        type(self).asked.append(wanted)
        if self.path.startswith("/gone"):
            self.send_error(404)
            return
        start = int(wanted[6:-1]) if wanted and self.ranges else 0
        if start >= len(BODY):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(BODY) - start))
        self.end_headers()
        self.wfile.write(BODY[start : type(self).cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    Handler.asked, Handler.ranges, Handler.cut = [], True, None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def good(server):
    return Archive(
        f"{server}/set.zip?dl=1", size=len(BODY), hash=("md5", hashlib.md5(BODY).hexdigest())
    )


def test_fetch_check_unpack_and_tidy(server, tmp_path):
    seen = []
    fetch_archive(
        good(server), tmp_path / "data" / "name", lambda done, total: seen.append((done, total))
    )
    assert (tmp_path / "data" / "name" / "set" / "b.txt").read_text() == "b"
    assert seen[-1] == (len(BODY), len(BODY))
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["name"]


def test_a_half_fetched_file_is_continued(server, tmp_path):
    (tmp_path / "set.zip.part").write_bytes(BODY[:100])
    assert fetch(good(server), tmp_path).read_bytes() == BODY
    assert Handler.asked == ["bytes=100-"]


def test_a_whole_part_and_a_finished_file_ask_for_nothing_more(server, tmp_path):
    (tmp_path / "set.zip.part").write_bytes(BODY)
    assert fetch(good(server), tmp_path).read_bytes() == BODY
    fetch(good(server), tmp_path)
    assert len(Handler.asked) == 1


def test_a_server_without_ranges_starts_again(server, tmp_path):
    Handler.ranges = False
    (tmp_path / "set.zip.part").write_bytes(b"x" * 100)
    assert fetch(good(server), tmp_path).read_bytes() == BODY


def test_a_broken_connection_keeps_what_came(server, tmp_path):
    Handler.cut = 50
    with pytest.raises(BadData, match="run the same command again"):
        fetch(good(server), tmp_path)
    assert (tmp_path / "set.zip.part").read_bytes() == BODY[:50]
    assert not (tmp_path / "set.zip").exists()
    Handler.cut = None
    assert fetch(good(server), tmp_path).read_bytes() == BODY


def test_a_wrong_file_is_refused_and_removed(server, tmp_path):
    with pytest.raises(BadData, match="its md5 is"):
        fetch(Archive(f"{server}/set.zip", hash=("md5", "0" * 32)), tmp_path)
    with pytest.raises(BadData, match="bytes, not 7"):
        fetch(Archive(f"{server}/set.zip", size=7), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadData, match="answered 404"):
        fetch(Archive(f"{server}/gone.zip"), tmp_path)
    with pytest.raises(BadData, match="could not be fetched"):
        fetch(Archive("http://127.0.0.1:9/set.zip"), tmp_path)


def test_a_damaged_archive(tmp_path):
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(BadData, match="damaged"):
        unpack_zip(tmp_path / "bad.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unpacking_again_replaces(tmp_path):
    (tmp_path / "set.zip").write_bytes(BODY)
    unpack_zip(tmp_path / "set.zip", tmp_path / "out")
    (tmp_path / "out" / "set" / "old.txt").write_text("old")
    (tmp_path / "out" / "mine.txt").write_text("kept")
    unpack_zip(tmp_path / "set.zip", tmp_path / "out")
    assert not (tmp_path / "out" / "set" / "old.txt").exists()
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"
