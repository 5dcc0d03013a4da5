"""A server with a password: clients log in as with memcached's authentication file."""

from wire import Wire


def run(port, password, check):
    wire = Wire(port)

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
    check("then commands run", line(b"set a 0 0 1\r\n1\r\n") == b"STORED\r\n" and wire.exchange(b"get a x\r\n").count(b"VALUE") == 1)
    other = Wire(port)
    other.socket.sendall(b"set x 0 0 1000000\r\n" + b"x" * 1000)
    check("long data before login is refused", read_line(other) in (b"CLIENT_ERROR unauthenticated\r\n", b""))


def read_line(wire):
    received = b""
    while not received.endswith(b"\n"):
        piece = wire.socket.recv(1)
        if not piece:
            break
        received += piece
    return received
