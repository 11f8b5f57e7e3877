"""Data: digits, and CIFAR-10 from archives of the published format that the tests make, over a local server too."""

import hashlib
import http.server
import io
import tarfile
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dplib.lessons import datasets

NAMES = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
PER_FILE = 6


def contents(seed=0, labels=10):
    rng = np.random.default_rng(seed)
    files = {}
    for name in NAMES:
        rows = rng.integers(0, 256, (PER_FILE, 3073), dtype=np.uint8)
        rows[:, 0] = rng.integers(0, labels, PER_FILE)
        files[name] = rows.tobytes()
    return files


def packed(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def files():
    return contents()


@pytest.fixture(scope="module")
def archive(files):
    return packed(files)


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def matches(data, files):
    """Against a reader of its own: byte by byte, as the format is described."""
    assert data.train_features.shape == (5 * PER_FILE, 32, 32, 3) and len(data.test_features) == PER_FILE
    assert data.train_features.dtype == np.float32 and data.train_labels.dtype == np.int32
    for record, name in ((0, NAMES[0]), (2 * PER_FILE + 3, NAMES[2])):
        raw = files[name][(record % PER_FILE) * 3073 :]
        assert data.train_labels[record] == raw[0]
        for row, column, colour in ((0, 0, 0), (3, 17, 1), (31, 31, 2)):
            value = raw[1 + 1024 * colour + 32 * row + column]
            assert data.train_features[record, row, column, colour] == pytest.approx(value / 127.5 - 1, abs=1e-6)
    assert data.test_labels[0] == files["test_batch.bin"][0]
    assert np.abs(data.train_features).max() <= 1


# ------------------------------------------------------------------------------- local files


def test_archive_folder_and_unpacked_files(tmp_path, files, archive):
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(archive)
    for where in (path, str(path), tmp_path):
        matches(datasets.cifar10(where, download=False, md5=md5(archive)), files)
    unpacked = tmp_path / "other" / "cifar-10-batches-bin"
    unpacked.mkdir(parents=True)
    for name, content in files.items():
        (unpacked / name).write_bytes(content)
    for where in (unpacked, unpacked.parent):
        matches(datasets.cifar10(where, download=False), files)
    assert "30 to train, 6 to test" in repr(datasets.cifar10(unpacked))


def test_damaged_and_foreign_archives_are_refused(tmp_path, archive):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(archive)
    with pytest.raises(ValueError, match="has MD5 .* instead of c32a1d4ab5d03f1284b67883e8d87530"):
        datasets.cifar10(path)
    for content in (archive[:-2000], b"not an archive"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="path must be a gzipped tar archive"):
            datasets.cifar10(path, md5=None)


DAMAGES = [
    (lambda content: None, f"lacks {NAMES[1]}"),
    (lambda content: content[:-1], "records of 3073 bytes"),
    (lambda content: b"", "records of 3073 bytes"),
    (lambda content: b"\x0b" + content[1:], "labels from 0 to 9"),
]


@pytest.mark.parametrize("damage, text", DAMAGES)
def test_damaged_files_are_refused(tmp_path, files, damage, text):
    changed = {**files, NAMES[1]: damage(files[NAMES[1]])}
    path = tmp_path / "a.tar.gz"
    path.write_bytes(packed({name: content for name, content in changed.items() if content is not None}))
    with pytest.raises(ValueError, match=text):
        datasets.cifar10(path, md5=None)


def test_without_a_file_or_a_network_the_message_says_what_to_do(tmp_path):
    path = tmp_path / "c.tar.gz"
    with pytest.raises(FileNotFoundError, match="download=False; it is published at https://"):
        datasets.cifar10(path, download=False)
    with pytest.raises(FileNotFoundError, match="Without a network, put the archive there by hand"):
        datasets.cifar10(path, url="http://127.0.0.1:9/cifar", timeout=2)
    with pytest.raises(ValueError, match="path must be in a folder that exists"):
        datasets.cifar10(tmp_path / "missing" / "c.tar.gz")


# ------------------------------------------------------------------------------ over a server


class Server:
    """Serves one file with Range requests; may break the connection off after some bytes, or know no ranges."""

    def __init__(self, content):
        server = self
        self.content, self.limit, self.ranges, self.requests = content, None, True, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                wanted = self.headers.get("Range")
                server.requests.append(wanted)
                start = int(wanted.split("=")[1].rstrip("-")) if wanted and server.ranges else 0
                if start >= len(server.content):
                    self.send_error(416)
                    return
                body = server.content[start:]
                self.send_response(206 if wanted and server.ranges else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: server.limit])

            def log_message(self, *_):
                pass

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/cifar-10-binary.tar.gz"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(archive, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Server(archive)
    yield server
    server.http.shutdown()
    server.http.server_close()


def test_download_and_use_again(tmp_path, files, archive, server):
    path = tmp_path / "c.tar.gz"
    for _ in range(2):
        matches(datasets.cifar10(path, url=server.url, md5=md5(archive)), files)
    assert server.requests == [None] and path.read_bytes() == archive


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(tmp_path, files, archive, server, ranges):
    server.limit, server.ranges = 1000, ranges
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="call again to go on|could not be fetched"):
            datasets.cifar10(tmp_path, url=server.url, md5=md5(archive))
    part = tmp_path / "cifar-10-binary.tar.gz.part"
    have = 2000 if ranges else 1000
    assert part.stat().st_size == have
    server.limit = None
    matches(datasets.cifar10(tmp_path, url=server.url, md5=md5(archive)), files)
    assert server.requests == [None, "bytes=1000-", f"bytes={have}-"] and not part.exists()


# ------------------------------------------------------------------------------------ digits


def test_digits_split_and_scale():
    data = datasets.digits()
    assert data.train_features.shape == (1438, 64) and data.test_features.shape == (359, 64)
    assert data.train_features.dtype == np.float32 and data.train_labels.dtype == np.int32
    together = np.concatenate([data.train_features, data.test_features]), np.concatenate([data.train_labels, data.test_labels])
    features, labels = load_digits(return_X_y=True)
    rows = lambda x, y: sorted(map(tuple, np.column_stack([x, y]).tolist()))
    assert rows((together[0] + 1) * 8, together[1]) == rows(features, labels)
    assert np.array_equal(data.test_labels, datasets.digits().test_labels)
    assert not np.array_equal(data.test_labels, datasets.digits(seed=1).test_labels)
    assert len(datasets.digits(test_share=0.5).test_labels) == 898
    assert len(datasets.digits(test_share=1e-9).test_labels) == 1
