"""A TCP proxy that can terminate TLS and can be told to cut or stall its connections, or to lose answers."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator


class Proxy:
    """Forwards every connection to one port of this machine and counts connections and bytes."""

    def __init__(self, target_port: int, tls: ssl.SSLContext | None, port: int) -> None:
        self._target_port = target_port
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", port))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.forwarded_bytes = 0
        self._stalled: set[socket.socket] = set()
        self._losing_answer = threading.Event()
        self._run(self._accept)

    def cut(self) -> None:
        """Ends all connections; new ones are still taken."""
        # A copy: a client may be back before all are ended, and what it comes with is a new one.
        for connection in list(self._sockets):
            _hang_up(connection)

    def stall(self) -> None:
        """Forwards nothing more on all connections, and leaves them open; new ones work."""
        self._stalled.update(self._sockets)

    def lose_next_answer(self) -> None:
        """Hangs up instead of forwarding what the daemon says next."""
        self._losing_answer.set()

    def close(self) -> None:
        _hang_up(self._listener)
        self._threads[0].join()
        self.cut()
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()

    def _run(self, target: Callable[..., None], *args: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=args))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                downstream, _ = self._listener.accept()
                self.connections += 1
                self._sockets.append(downstream)
                self._run(self._serve, downstream)

    def _serve(self, accepted: socket.socket) -> None:
        # OSError: a handshake failed, or one side has hung up.
        with accepted, contextlib.suppress(OSError):
            downstream = self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted
            with downstream, socket.create_connection(("127.0.0.1", self._target_port)) as upstream:
                self._sockets += [downstream, upstream]
                self._forward(downstream, upstream)

    def _forward(self, downstream: socket.socket, upstream: socket.socket) -> None:
        # In one thread: an SSLSocket is not for two.
        while True:
            buffered = isinstance(downstream, ssl.SSLSocket) and downstream.pending()
            readable = [downstream] if buffered else select.select([downstream, upstream], [], [])[0]
            for source in readable:
                data = source.recv(65536)
                if not data:
                    return
                if source in self._stalled:
                    continue
                if source is upstream and self._losing_answer.is_set():
                    self._losing_answer.clear()
                    return
                (upstream if source is downstream else downstream).sendall(data)
                self.forwarded_bytes += len(data)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy_to(target_port: int, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Proxy]:
    proxy = Proxy(target_port, tls, port)
    try:
        yield proxy
    finally:
        proxy.close()
