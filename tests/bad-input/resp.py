"""Just enough of the protocol: requests as bytes, replies as Python values, over one socket."""

import socket

SECONDS_MAX = 30


class Error(Exception):
    """An error reply."""


def request(*words):
    """One request."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


class Connection:
    """A connection that sends and reads in order."""

    def __init__(self, server, password=None, source=None, seconds=SECONDS_MAX, receive_bytes=None):
        self.seconds = seconds
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((server.host, server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        password = server.password if password is None else password
        if password:
            self.call("AUTH", password)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes at once: what is unsent or unread is dropped."""
        self.socket.close()

    def send(self, data):
        """All of the bytes."""
        self.socket.sendall(data)

    def send_what_fits(self, data):
        """What the socket takes without waiting; how much that was. -1 when the server has closed."""
        self.socket.setblocking(False)
        view, sent = memoryview(data), 0
        try:
            while sent < len(data):
                sent += self.socket.send(view[sent:sent + (1 << 20)])
        except BlockingIOError:
            pass
        except OSError:
            return -1
        finally:
            self.socket.settimeout(self.seconds)
        return sent

    def read_what_came(self, keep=True):
        """Takes what has arrived without waiting, for `reply` or to be dropped; False when the server has closed."""
        self.socket.setblocking(False)
        try:
            while got := self.socket.recv(1 << 20):
                self.buffer += got if keep else b""
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.socket.settimeout(self.seconds)

    def call(self, *words):
        """The reply to one request; an error reply is raised."""
        self.send(request(*words))
        return self.reply()

    def error(self, *words):
        """The text of the error that a request is answered with; empty when it is none."""
        try:
            self.call(*words)
        except Error as error:
            return str(error)
        return ""

    def reply(self):
        """The next reply."""
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise Error(rest.decode("utf-8", "replace"))
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._exactly(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self._element() for _ in range(int(rest))]
        raise AssertionError(f"the reply begins with {line[:40]!r}")

    def _element(self):
        try:
            return self.reply()
        except Error as error:
            return error

    def closed(self):
        """Whether the server closes the connection before the time-out, whatever it sends first."""
        try:
            while self.socket.recv(1 << 20):
                pass
            return True
        except ConnectionError:
            return True
        except (TimeoutError, BlockingIOError):
            return False

    def _fill(self):
        got = self.socket.recv(1 << 20)
        if not got:
            raise ConnectionError("the server has closed the connection")
        self.buffer += got

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _exactly(self, count):
        if len(self.buffer) < count:
            chunks, have = [self.buffer], len(self.buffer)
            self.buffer = b""
            while have < count:
                got = self.socket.recv(1 << 20)
                if not got:
                    raise ConnectionError("the server has closed the connection")
                chunks.append(got)
                have += len(got)
            self.buffer = b"".join(chunks)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data
