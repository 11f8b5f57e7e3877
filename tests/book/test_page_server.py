"""The server of the built book: what it reports and what not."""

import socket
import struct
import threading

import page_server
import pytest


@pytest.fixture
def web(tmp_path):
    (tmp_path / "large.bin").write_bytes(bytes(64 * 2**20))
    web = page_server.server(tmp_path)
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    yield web
    web.shutdown()
    web.server_close()  # waits for the requests under way
    thread.join()


def test_a_browser_that_leaves_is_not_reported(web, capfd):
    with socket.create_connection(web.server_address) as leaving:
        leaving.sendall(b"GET /large.bin HTTP/1.0\r\n\r\n")
        assert leaving.recv(10) == b"HTTP/1.0 2"
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, at once
    web.shutdown()
    web.server_close()
    assert capfd.readouterr().err == ""


def test_a_fault_of_the_server_is(web, capfd, monkeypatch):
    def fails(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(page_server.Quiet, "do_GET", fails)
    with socket.create_connection(web.server_address) as visitor:
        visitor.sendall(b"GET /large.bin HTTP/1.0\r\n\r\n")
        assert visitor.recv(10) == b""
    web.shutdown()
    web.server_close()
    assert "planted" in capfd.readouterr().err
