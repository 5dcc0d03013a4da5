"""A control: a peer that does nothing but answer, next to the server, at the same moment, on the same machine.

What the peer's client waits for is what the machine costs: other programs, a busy host, a processor that sleeps. A
bound on the server's waits is its own figure plus a few of the control's, so that it judges the server and not the
machine.
"""

import multiprocessing
import selectors
import socket

SHARES = 10


class Peer:
    """An address where every request of the canary, and no other, is answered by a constant."""

    host, password = "127.0.0.1", ""

    def __init__(self):
        listener = socket.create_server((self.host, 0), backlog=4096)
        self.port = listener.getsockname()[1]
        self.process = multiprocessing.Process(target=_answer, args=(listener,), daemon=True)
        self.process.start()
        listener.close()


def _answer(listener):
    waiting = selectors.DefaultSelector()
    listener.setblocking(False)
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            try:
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    waiting.register(connection, selectors.EVENT_READ)
                    continue
                data = key.fileobj.recv(4096)
                if data:
                    key.fileobj.send(_reply(data))
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            if key.fileobj is not listener:
                waiting.unregister(key.fileobj)
                key.fileobj.close()


def _reply(data):
    if b"GET" in data:
        return b"$-1\r\n"
    return b"+PONG\r\n" if b"PING" in data else b"+OK\r\n"


def bound(own, of_control):
    """The most that may be seen of the server: its own figure, and some of what the control saw."""
    return own + SHARES * of_control
