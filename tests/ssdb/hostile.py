"""Clients that send what no client should, next to one that must not notice; and a kill."""

import random
import signal
import socket

MB = 1 << 20
SECONDS_MAX = 20


def packet(*words):
    return b"".join(b"%d\n%s\n" % (len(word), word) for word in words) + b"\n"


class Wire:
    """Sends requests and reads replies."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def reply(self):
        blocks = []
        while (line := self.file.readline()) not in (b"\n", b""):
            blocks.append(self.file.read(int(line)))
            self.file.read(1)
        return blocks

    def say(self, *words):
        self.socket.sendall(packet(*words))
        return self.reply()

    def rest(self):
        """What comes until the server closes the connection."""
        return self.file.read()

    def close(self):
        self.file.close()
        self.socket.close()


def run(server, seed, check):
    good = Wire(server.ssdb_port)
    good.say(b"set", b"good", b"kept")
    for area in (lengths, announced, blocks, bytewise, garbage, unread):
        problem = area(server, random.Random(seed))
        unharmed = good.say(b"get", b"good") == [b"ok", b"kept"] and server.alive()
        check(f"{area.__name__}: {area.__doc__}", problem is None and unharmed, problem)


def lengths(server, _):
    """what is no packet is refused with a reason, and the connection ends"""
    for sent in (b"GET / HTTP/1.0\r\n\r\n", b"-1\n", b"3\nping\n\n", b"9" * 40, b"99999999999\n"):
        wire = Wire(server.ssdb_port)
        wire.socket.sendall(sent)
        reply = wire.rest()
        wire.close()
        if not reply.startswith(b"12\nclient_error\n"):
            return f"{sent} got {reply}"
    return None


def announced(server, _):
    """lengths that are only announced take no memory"""
    before, wires = resident(server), [Wire(server.ssdb_port) for _ in range(50)]
    for wire in wires:
        wire.socket.sendall(b"3\nset\n1\nk\n500000000\nx")
    grown = resident(server) - before
    for wire in wires:
        wire.close()
    return None if grown < 32 * MB else f"{grown >> 20} MB more"


def blocks(server, _):
    """a packet of very many blocks is bounded"""
    before, wire = resident(server), Wire(server.ssdb_port)
    try:
        for _ in range(100):
            wire.socket.sendall(b"0\n\n" * 100_000)
    except OSError:
        pass
    grown = resident(server) - before
    wire.close()
    return None if grown < 256 * MB else f"{grown >> 20} MB more"


def bytewise(server, _):
    """a request that comes byte by byte is a request"""
    wire = Wire(server.ssdb_port)
    for byte in b"\r\n" + packet(b"set", b"slow", b"a\nb") + packet(b"get", b"slow"):
        wire.socket.sendall(bytes([byte]))
    replies = [wire.reply(), wire.reply()]
    wire.close()
    return None if replies == [[b"ok", b"1"], [b"ok", b"a\nb"]] else f"{replies}"


def garbage(server, source):
    """random packets and bytes do no harm"""
    names = [b"get", b"set", b"scan", b"hscan", b"zscan", b"qslice", b"zincr", b"setbit", b"multi_set", b"substr"]
    words = [b"", b"0", b"-1", b"9223372036854775807", b"-9223372036854775808", b"x", b"good2", b"\xff" * 300, b"1.5"]
    for _ in range(100):
        wire = Wire(server.ssdb_port)
        sent = [packet(source.choice(names), *source.choices(words, k=source.randrange(8))) for _ in range(20)]
        sent.insert(source.randrange(20), source.randbytes(9))
        try:
            wire.socket.sendall(b"".join(sent))
        except OSError:
            pass
        wire.close()
    return None


def unread(server, _):
    """replies that a client does not read are not piled up"""
    wire, before = Wire(server.ssdb_port), resident(server)
    wire.say(b"set", b"long", b"y" * 100_000)
    wire.socket.settimeout(1)
    try:
        for _ in range(2_000):
            wire.socket.sendall(packet(b"get", b"long") * 100)
    except OSError:
        pass
    grown = resident(server) - before
    wire.close()
    return None if grown < 128 * MB else f"{grown >> 20} MB more"


def login(server, password, check):
    wire = Wire(server.ssdb_port)
    check("commands need a login", wire.say(b"get", b"a") == [b"noauth", b"authentication required."])
    check("a wrong password is refused", wire.say(b"auth", b"wrong") == [b"error", b"invalid password"])
    check("the password logs in", wire.say(b"auth", password.encode()) == [b"ok", b"1"])
    check("then commands work", wire.say(b"set", b"a", b"1") == [b"ok", b"1"])
    wire.close()


def survives(server, restart):
    """The problem, or None: what was acknowledged is there after a kill in sync mode."""
    wire = Wire(server.ssdb_port)
    for number in range(200):
        name = b"%03d" % number
        replies = [wire.say(b"set", b"k" + name, name), wire.say(b"hset", b"h", name, b"v"),
                   wire.say(b"zset", b"z", name, b"%d" % number), wire.say(b"qpush", b"q", name)]
        if any(reply[0] != b"ok" for reply in replies):
            return f"{replies}"
    asked = [(b"scan", b"", b"", b"-1"), (b"hgetall", b"h"), (b"zscan", b"z", b"", b"", b"", b"-1"),
             (b"qslice", b"q", b"0", b"-1")]
    before = [wire.say(*words) for words in asked]
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    restart()
    after = [Wire(server.ssdb_port).say(*words) for words in asked]
    if [len(reply) for reply in before] != [401, 401, 401, 201]:
        return f"not all was there before: {[len(reply) for reply in before]}"
    return None if before == after else "the replies after the restart are others"


def resident(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10
