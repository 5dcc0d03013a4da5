"""A server with a password: clients log in as with memcached's authentication file."""

import socket

from wire import Wire


def run(server, check):
    port, password = server.memcached_port, server.password
    wire, monitor = Wire(port), Redis(server)
    monitor.ask("CONFIG SET slowlog-log-slower-than 0")
    monitor.ask("MONITOR")

    def line(request):
        wire.socket.sendall(request)
        return read_line(wire)

    check("commands before login are refused", line(b"get a\r\n") == b"CLIENT_ERROR unauthenticated\r\n")
    check("a token without a space is refused",
          line(b"set x 0 0 3\r\nabc\r\n") == b"CLIENT_ERROR bad authentication token format\r\n")
    token = b"default " + password.encode()
    check("a wrong password is refused",
          line(b"set x 0 0 13\r\ndefault wrong\r\n") == b"CLIENT_ERROR authentication failure\r\n")
    check("the right one is taken", line(b"set x 0 0 %d\r\n%s\r\n" % (len(token), token)) == b"STORED\r\n")
    check(
        "then commands run",
        line(b"set a 0 0 1\r\n1\r\n") == b"STORED\r\n" and wire.exchange(b"get a x\r\n").count(b"VALUE") == 1,
    )
    shown = monitor.until(b'"get" "a"')
    slow = Redis(server).ask("SLOWLOG GET 100")
    check(
        "MONITOR and the slow log show no password",
        password.encode() not in shown + slow and b"wrong" not in shown + slow and b'"set" "a"' in shown,
    )
    sasl = Wire(port)

    def by_sasl(data):
        sasl.socket.sendall(b"sasl auth PLAIN %d\r\n%s\r\n" % (len(data), data))
        return read_line(sasl)

    sasl.socket.sendall(b"sasl mech\r\n")
    check("SASL offers PLAIN", read_line(sasl) == b"SASL_MECH PLAIN\r\n")
    check("a wrong password by SASL is refused", by_sasl(b"\0default\0wrong").startswith(b"AUTH_ERROR "))
    check("the right one is taken", by_sasl(b"\0default\0" + password.encode()) == b"SASL_OK\r\n")
    check("then commands run, too", sasl.exchange(b"get a\r\n").count(b"VALUE") == 1)
    later = Redis(server).ask("SLOWLOG GET 100") + monitor.until(b'"get" "a"')
    check("MONITOR and the slow log show no password of SASL", password.encode() not in later and b"wrong" not in later)
    other = Wire(port)
    other.socket.sendall(b"set x 0 0 1000000\r\n" + b"x" * 1000)
    check("long data before login is refused", read_line(other) == b"CLIENT_ERROR unauthenticated\r\n")


class Redis:
    """A Redis client that has logged in."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self.ask(f"AUTH {server.password}")

    def ask(self, request):
        """The reply, which the reply to ECHO marks the end of; of MONITOR, the reply alone."""
        self.socket.sendall(f"{request}\r\n".encode())
        if request == "MONITOR":
            return self.until(b"+OK\r\n")
        self.socket.sendall(b"ECHO end-of-reply\r\n")
        return self.until(b"end-of-reply\r\n")

    def until(self, end):
        received = b""
        while end not in received:
            received += self.socket.recv(1 << 16)
        return received


def read_line(wire):
    received = b""
    while not received.endswith(b"\n"):
        piece = wire.socket.recv(1)
        if not piece:
            break
        received += piece
    return received
