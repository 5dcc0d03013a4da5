"""A connection to a memcached port, and whole replies from it."""

import socket

SECONDS_MAX = 20


class Closed(Exception):
    """The server has closed the connection."""


class Wire:
    """Sends bytes and reads replies. Each batch ends with `mn`, whose reply marks the end of all before it."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def close(self):
        self.socket.close()

    def exchange(self, request, cuts=()):
        """All replies to the request, which is sent in pieces that end at the cuts."""
        whole, start = request + b"mn\r\n", 0
        for cut in [*sorted(cuts), len(whole)]:
            self.socket.sendall(whole[start:cut])
            start = cut
        return self.until(b"MN\r\n")

    def until(self, end):
        """What is received up to a line that is exactly `end`, without it."""
        while not (self.received == end or self.received.endswith(b"\n" + end)):
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise Closed(self.received)
            self.received += piece
        reply, self.received = self.received[: -len(end)], b""
        return reply
