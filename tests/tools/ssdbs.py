"""`onggi import ssdb://...`: a running SSDB is copied into a running server, and followed under load, with connections
that are cut and a command that is killed; in the end the server has what SSDB has.

SSDB is in no registry. SSDB_SERVER names its program; without it a peer in this file speaks its protocol, with the rows
and the entries that SSDB 1.9.9 sends.
"""

import bisect
import os
import random
import socket
import socketserver
import struct
import subprocess
import threading
import time

from directory import SECONDS_MAX, Client
from directory import Server as Onggi
from follows import Import, Proxy
from servers import free_port

CUTS = 3
KILLS = 2
PASSWORD = "a password of thirty-two letters"
EXPIRE_LIST = b"\xff\xff\xff\xff\xff|EXPIRE_LIST|KV"
ITEM_FIRST = (2**63 - 1) // 2
SET, DEL, PUSH_BACK, PUSH_FRONT, POP_BACK, POP_FRONT, SET_ITEM = 1, 2, 10, 11, 12, 13, 14
SIZES = {b"h": b"H", b"s": b"Z", b"q": b"Q"}
KINDS = {"k": 0, "h": 2, "s": 4}
UNTAKEN = 1


def packet(*blocks):
    parts = [block if isinstance(block, bytes) else str(block).encode() for block in blocks]
    return b"".join(b"%d\n%s\n" % (len(part), part) for part in parts) + b"\n"


def read_packet(file):
    blocks = []
    while True:
        line = file.readline()
        if not line:
            return None
        if line.strip() == b"":
            if blocks:
                return blocks
            continue
        blocks.append(file.read(int(line)))
        file.readline()


class SsdbClient:
    """A client of SSDB's protocol."""

    def __init__(self, port, password=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.file = self.socket.makefile("rb")
        if password:
            self.call("auth", password)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, requests):
        self.socket.sendall(b"".join(packet(*words) for words in requests))
        replies = [read_packet(self.file) for _ in requests]
        for request, reply in zip(requests, replies):
            # A queue that has become empty has no item to set.
            if reply is None or reply[0] not in (b"ok", b"not_found") and request[0] != "qset":
                raise AssertionError(f"SSDB answers {reply} to {request[:2]}")
        return [reply[1:] for reply in replies]


class Peer(socketserver.ThreadingTCPServer):
    """Speaks the part of SSDB's protocol that a copy and a load need."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, password=None, has_log=True):
        super().__init__(("127.0.0.1", 0), PeerClient)
        self.port = self.server_address[1]
        self.password, self.has_log = password, has_log
        self.lock = threading.Lock()
        self.rows, self.keys = {}, []
        self.log, self.log_from = [], 1
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def newest(self):
        return self.log_from + len(self.log) - 1

    def put(self, key, value):
        if key not in self.rows:
            bisect.insort(self.keys, key)
            self.count(key, 1)
        self.rows[key] = value

    def remove(self, key):
        if self.rows.pop(key, None) is not None:
            del self.keys[bisect.bisect_left(self.keys, key)]
            self.count(key, -1)
            return True
        return False

    def count(self, key, change):
        """Changes the size of what has this row."""
        kind = SIZES.get(key[:1])
        if kind is None or kind == b"Q" and struct.unpack(">Q", key[-8:])[0] <= 3:
            return
        key = kind + key[2:2 + key[1]]
        size = change + struct.unpack("<q", self.rows.get(key, bytes(8)))[0]
        if size:
            self.put(key, struct.pack("<q", size))
        else:
            self.remove(key)

    def entry(self, command, key):
        if self.has_log:
            self.log.append((command, key))

    def between(self, after, to):
        return self.keys[bisect.bisect_right(self.keys, after):bisect.bisect_right(self.keys, to)]

    def forget_log(self):
        """As a small replication.binlog.capacity does."""
        with self.lock:
            self.log_from, self.log = self.newest() + 1, []


class PeerClient(socketserver.StreamRequestHandler):
    def handle(self):
        is_in = self.server.password is None
        try:
            while request := read_packet(self.rfile):
                word, *words = request
                if word == b"auth":
                    is_in = words[0].decode() == self.server.password
                    self.wfile.write(packet("ok", 1) if is_in else packet("error", "invalid password"))
                elif not is_in:
                    self.wfile.write(packet("noauth", "authentication required"))
                elif word == b"dump":
                    self.dump(*words)
                elif word == b"sync140":
                    self.sync(int(words[0]))
                else:
                    with self.server.lock:
                        reply = getattr(self, word.decode())(*words)
                    self.wfile.write(packet("ok", *(reply or [1])))
        except OSError:
            # The other side is gone.
            pass

    def dump(self, after, to, _limit):
        peer = self.server
        with peer.lock:
            entries = []
            if after[:1] == b"\x01":
                since = struct.unpack(">Q", after[1:])[0]
                entries = [(b"\x01" + struct.pack(">Q", number), b"entry")
                           for number in range(max(since + 1, peer.log_from), peer.newest() + 1)]
            rows = entries + [(key, peer.rows[key]) for key in peer.between(after, to)]
        self.wfile.write(packet("begin"))
        # In pieces, so that a cut may come between any two rows.
        for at in range(0, len(rows), 50):
            self.wfile.write(b"".join(packet("set", *row) for row in rows[at:at + 50]))
        self.wfile.write(packet("end", len(rows)))
        self.rfile.read(1)

    def sync(self, last):
        peer = self.server
        if last < peer.log_from - (1 if peer.log_from == 1 else 0) or last > peer.newest():
            self.wfile.write(packet(struct.pack("<Q", last) + b"\x04\0OUT_OF_SYNC"))
            time.sleep(SECONDS_MAX)
        self.wfile.write(packet(struct.pack("<Q", last) + b"\x03\x08", "copy_end"))
        idle = 0
        while True:
            out = b""
            with peer.lock:
                if last + 1 < peer.log_from:
                    out = packet(struct.pack("<Q", last) + b"\x04\0OUT_OF_SYNC")
                while peer.log_from <= last + 1 <= peer.newest() and len(out) < 100_000:
                    last += 1
                    command, key = peer.log[last - peer.log_from]
                    head = struct.pack("<Q", last) + bytes([1, command]) + key
                    if command in (1, 3, 5):
                        # The value that the row has now; an entry of a row that is gone is passed by.
                        out += packet(head, peer.rows[key]) if key in peer.rows else b""
                    elif command in (PUSH_BACK, PUSH_FRONT, SET_ITEM):
                        out += packet(head, peer.rows.get(key, b""))
                    else:
                        out += packet(head)
            idle = 0 if out else idle + 1
            if idle > 40:
                idle, out = 0, packet(struct.pack("<Q", last) + b"\0\0", "noop")
            self.wfile.write(out)
            if not out:
                time.sleep(0.05)

    def info(self):
        peer = self.server
        newest = peer.newest() if peer.has_log else 0
        return ["ssdb-server", "version", "1.9.9", "binlogs",
                f"    capacity : 20000000\n    min_seq  : {peer.log_from}\n    max_seq  : {newest}"]

    def _set(self, kind, key, value):
        self.server.put(key, value)
        self.server.entry(KINDS[kind] + SET, key)

    def _del(self, kind, key):
        if self.server.remove(key):
            self.server.entry(KINDS[kind] + DEL, key)

    def set(self, key, value):
        self._set("k", b"k" + key, value)

    def setx(self, key, value, seconds):
        self.set(key, value)
        self.expire(key, seconds)

    def expire(self, key, seconds):
        if b"k" + key in self.server.rows:
            at = int(time.time() * 1000) + int(seconds) * 1000
            self.zset(EXPIRE_LIST, key, str(at).encode())

    def __getattr__(self, word):
        if word == "del":
            return self.delete
        raise AttributeError(word)

    def delete(self, key):
        self._del("k", b"k" + key)
        self.zdel(EXPIRE_LIST, key)

    def hset(self, name, field, value):
        self._set("h", b"h%c%s=%s" % (len(name), name, field), value)

    def hdel(self, name, field):
        self._del("h", b"h%c%s=%s" % (len(name), name, field))

    def zset(self, name, member, score):
        self._set("s", b"s%c%s%c%s" % (len(name), name, len(member), member), score)

    def zdel(self, name, member):
        self._del("s", b"s%c%s%c%s" % (len(name), name, len(member), member))

    def _span(self, name):
        rows = self.server.rows
        ends = [rows.get(item_key(name, number)) for number in (2, 3)]
        return [None if end is None else struct.unpack("<Q", end)[0] for end in ends]

    def _push(self, name, item, is_front):
        first, last = self._span(name)
        at = ITEM_FIRST if first is None else first - 1 if is_front else last + 1
        if first is None or is_front:
            self.server.put(item_key(name, 2), struct.pack("<Q", at))
        if first is None or not is_front:
            self.server.put(item_key(name, 3), struct.pack("<Q", at))
        self.server.put(item_key(name, at), item)
        self.server.entry(PUSH_FRONT if is_front else PUSH_BACK, item_key(name, at))

    def _pop(self, name, is_front):
        first, last = self._span(name)
        if first is None:
            return
        self.server.remove(item_key(name, first if is_front else last))
        self.server.entry(POP_FRONT if is_front else POP_BACK, name)
        if first == last:
            self.server.remove(item_key(name, 2))
            self.server.remove(item_key(name, 3))
        elif is_front:
            self.server.put(item_key(name, 2), struct.pack("<Q", first + 1))
        else:
            self.server.put(item_key(name, 3), struct.pack("<Q", last - 1))

    def qpush_back(self, name, item):
        self._push(name, item, False)

    def qpush_front(self, name, item):
        self._push(name, item, True)

    def qpop_back(self, name):
        self._pop(name, False)

    def qpop_front(self, name):
        self._pop(name, True)

    def qset(self, name, index, item):
        first, _ = self._span(name)
        key = item_key(name, (first or 0) + int(index))
        if key in self.server.rows:
            self.server.put(key, item)
            self.server.entry(SET_ITEM, key)


def item_key(name, number):
    return b"q%c%s%s" % (len(name), name, struct.pack(">Q", number))


def text(value):
    return value.decode(errors="surrogateescape")


class Real:
    """The program that SSDB_SERVER names."""

    def __init__(self, scratch, password=None, has_log=True):
        scratch.mkdir()
        self.port = free_port()
        login = f"\tauth: {password}\n" if password else ""
        (scratch / "ssdb.conf").write_text(
            f"work_dir = {scratch}\npidfile = {scratch}/pid\nserver:\n\tip: 127.0.0.1\n\tport: {self.port}\n{login}"
            f"replication:\n\tbinlog: {'yes' if has_log else 'no'}\n\tsync_speed: -1\n\tslaveof:\n"
            f"logger:\n\tlevel: error\n\toutput: {scratch}/log.txt\n"
            "leveldb:\n\tcache_size: 8\n\twrite_buffer_size: 4\n\tcompression: yes\n"
        )
        self.process = subprocess.Popen([os.environ["SSDB_SERVER"], str(scratch / "ssdb.conf")],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Reader:
    """What an SSDB has, by its commands."""

    def __init__(self, peer, password=None):
        self.peer, self.password = peer, password

    def state(self):
        if isinstance(self.peer, Peer):
            return self._rows()
        state = {}
        with SsdbClient(self.peer.port, self.password) as client:
            pairs = client.call("scan", "", "", 10**6)
            state.update({("key", text(key)): text(value) for key, value in zip(pairs[::2], pairs[1::2])})
            for name in client.call("hlist", "", "", 10**6):
                pairs = client.call("hscan", name, "", "", 10**6)
                state["hash", text(name)] = {text(k): text(v) for k, v in zip(pairs[::2], pairs[1::2])}
            for name in client.call("zlist", "", "", 10**6):
                if name != EXPIRE_LIST:
                    pairs = client.call("zscan", name, "", "", "", 10**6)
                    state["zset", text(name)] = {text(k): text(v) for k, v in zip(pairs[::2], pairs[1::2])}
            for name in client.call("qlist", "", "", 10**6):
                state["queue", text(name)] = [text(item) for item in client.call("qslice", name, 0, -1)]
        return state

    def _rows(self):
        state = {}
        with self.peer.lock:
            for key in self.peer.keys:
                value, rest = text(self.peer.rows[key]), key[2:]
                name, rest = rest[:key[1]], rest[key[1]:]
                if key[:1] == b"k":
                    state["key", text(key[1:])] = value
                elif key[:1] == b"h":
                    state.setdefault(("hash", text(name)), {})[text(rest[1:])] = value
                elif key[:1] == b"s" and name != EXPIRE_LIST:
                    state.setdefault(("zset", text(name)), {})[text(rest[1:])] = value
                elif key[:1] == b"q" and struct.unpack(">Q", rest)[0] > 3:
                    state.setdefault(("queue", text(name)), []).append(value)
        return state


def onggi_state(client):
    """What a server has, in the same form."""
    state = {}
    for key in client.call("KEYS", "*"):
        kind = client.call("TYPE", key)
        if kind == "string":
            state["key", key] = client.call("GET", key)
        elif kind == "hash":
            pairs = client.call("HGETALL", key)
            state["hash", key] = dict(zip(pairs[::2], pairs[1::2]))
        elif kind == "zset":
            pairs = client.call("ZRANGE", key, 0, -1, "WITHSCORES")
            state["zset", key] = dict(zip(pairs[::2], pairs[1::2]))
        else:
            state["queue", key] = client.call("LRANGE", key, 0, -1)
    return state


def expect_same(reader, client):
    theirs, ours = reader.state(), onggi_state(client)
    if theirs != ours:
        odd = [key for key in sorted(theirs.keys() | ours.keys()) if theirs.get(key) != ours.get(key)]
        key = odd[0]
        raise AssertionError(f"{len(odd)} differ, of {len(theirs)} and {len(ours)}: {key}: SSDB has "
                             f"{str(theirs.get(key))[:300]}, Onggi {str(ours.get(key))[:300]}")


class SsdbLoad(threading.Thread):
    """Random changes of all types until it is stopped. Each connection has names of its own."""

    def __init__(self, port, seed, password=None):
        super().__init__(daemon=True)
        self.port, self.seed, self.password = port, seed, password
        self.random = random.Random(seed)
        self.is_stopped, self.requests, self.failure = False, 0, None
        self.start()

    def run(self):
        try:
            with SsdbClient(self.port, self.password) as client:
                while not self.is_stopped:
                    client.pipeline([self.some() for _ in range(20)])
                    self.requests += 20
                    time.sleep(0.004)
        except Exception as problem:
            self.failure = problem

    def some(self):
        draw = self.random
        # Queues of short and of long names: SSDB has the latter behind all of the former.
        name = f"{self.seed}:{draw.randrange(12)}{'-long' * draw.randrange(2)}"
        member, number = f"m{draw.randrange(60)}", draw.randrange(-1000, 1000)
        return draw.choice([
            ("set", f"k{name}", "v" * draw.randrange(200)),
            ("set", f"k{name}", number),
            ("setx", f"k{name}:t", number, draw.choice([1, 600])),
            ("del", f"k{name}"),
            ("hset", f"h{name}", member, number),
            ("hset", f"h{name}", member, ""),
            ("hdel", f"h{name}", member),
            ("zset", f"z{name}", member, number),
            ("zdel", f"z{name}", member),
            ("qpush_back", f"{name}", f"{member}:{number}"),
            ("qpush_back", f"{name}", number),
            ("qpush_front", f"{name}", number),
            ("qpop_front", f"{name}"),
            ("qpop_back", f"{name}"),
            ("qset", f"{name}", 0, f"set:{number}") if draw.random() < 0.3 else ("hset", f"h{name}", member, 1),
        ])

    def stop(self):
        self.is_stopped = True
        self.join(SECONDS_MAX)
        if self.failure:
            raise self.failure


def fill(client):
    """Rows of every kind, enough for several transactions."""
    for at in range(0, 3000, 100):
        client.pipeline([("set", f"key:{n}", f"v{n}" * 9) for n in range(at, at + 100)])
        client.pipeline([("hset", f"hash:{n // 400}", f"field:{n}", "x" * (n % 90)) for n in range(at, at + 100)])
        client.pipeline([("zset", f"zset:{n // 700}", f"member:{n}", n * n - 9000) for n in range(at, at + 100)])
        client.pipeline([("qpush_back", f"queue:{n // 900}", f"item:{n}") for n in range(at, at + 100)])
    client.pipeline([("qpush_front", "queue:0", "first"), ("qpop_back", "queue:0"), ("set", b"\0\xff\n=", b"\r\n\0"),
                     ("hset", b"\xff=", b"=\n", ""), ("zset", "z", "least", -(2**53)), ("zset", "z", "most", 2**53),
                     ("set", "empty", ""), ("setx", "lives", 1, 5000), ("setx", "dies", 1, 1)])


def peers(tools):
    """How to start each kind of SSDB that is there."""
    kinds = {"peer": lambda name, **options: Peer(**options)}
    if os.environ.get("SSDB_SERVER"):
        kinds["real"] = lambda name, **options: Real(tools.scratch / f"real-{name}", **options)
    return kinds


def copied_once(tools, kind, start):
    name = f"ssdb-{kind}"
    with start(name, password=PASSWORD) as peer, tools.serve(name) as ours, Client(ours.port) as mine:
        with SsdbClient(peer.port, PASSWORD) as client:
            fill(client)
        to = f"redis://127.0.0.1:{ours.port}/3"
        refused = tools.run("import", f"ssdb://127.0.0.1:{peer.port}", "--to", to, status=2)
        assert "noauth" in refused and "ssdb://:PASSWORD@" in refused, refused
        address = f"ssdb://:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{peer.port}"
        told = tools.run("import", address, "--dry-run")
        assert "all of it can be imported" in told, told
        told = tools.run("import", address, "--to", to)
        assert "database 3 has 3" in told and PASSWORD not in told, told
        mine.call("SELECT", 3)
        deadline = time.monotonic() + SECONDS_MAX
        while ("key", "dies") in Reader(peer, PASSWORD).state() and kind == "real" and time.monotonic() < deadline:
            time.sleep(0.1)
        if kind == "peer":
            with SsdbClient(peer.port, PASSWORD) as client:
                time.sleep(1.1)
                client.call("del", "dies")
        expect_same(Reader(peer, PASSWORD), mine)
        assert 4900 < mine.call("TTL", "lives") <= 5000 and mine.call("TTL", "key:1") == -1
        again = tools.run("import", address, "--to", to, status=2)
        assert "name a database that is empty" in again, again


def followed_under_load(tools, kind, start):
    name = f"ssdb-follow-{kind}"
    with start(name) as peer, Proxy(peer.port) as proxy, tools.serve(name, "--database", "0 engine disk") as ours:
        with Client(ours.port) as mine, SsdbClient(peer.port) as client:
            # A client that says nothing is not kept.
            mine.call("PING")
            fill(client)
            loads = [SsdbLoad(peer.port, seed) for seed in (1, 2)]
            words = [f"ssdb://127.0.0.1:{proxy.port}", "--to", f"redis://127.0.0.1:{ours.port}", "--follow"]
            # The first cuts and the first kill come within the copy of rows.
            proxy.cut_after(450_000)
            copier = Import(tools, name, *words)
            copier.wait_for("connecting again")
            proxy.cut_after(250_000)
            copier.wait_for("copies the rows that are missing")
            copier.kill()
            proxy.cut_never()
            for _ in range(KILLS):
                copier = Import(tools, name, *words)
                before = copier.text().count("follows from entry")
                copier.wait_for("follows from entry", before + 1)
                for _ in range(CUTS):
                    proxy.cut_after(random.Random(before).randrange(1000, 60_000))
                    time.sleep(0.5)
                copier.kill()
                proxy.cut_never()
            copier = Import(tools, name, *words)
            time.sleep(1)
            for load in loads:
                load.stop()
            if kind == "peer":
                with SsdbClient(peer.port) as remover:
                    # As the thread of SSDB does that removes what has expired.
                    keys = [key for sort, key in Reader(peer).state() if sort == "key"]
                    remover.pipeline([("del", key) for key in keys if key == "dies" or key.endswith(":t")])
            copier.end()
            said = copier.text()
            assert said.count("copies all rows") == 1, said
            if kind == "real":
                # Both servers remove what lives for a second, SSDB a key at a time.
                time.sleep(2)
            expect_same(Reader(peer), mine)


def what_cannot_be_taken(tools, kind, start):
    name = f"ssdb-untaken-{kind}"
    with start(name) as peer, tools.serve(name) as ours, Client(ours.port) as mine:
        with SsdbClient(peer.port) as client:
            client.pipeline([("hset", "both", "f", 1), ("set", "both", 2), ("zset", "far", "m", 2**53 + 1),
                             ("zset", "near", "m", 1), ("setx", "both", 3, 100), ("qpush_back", "both", 4)])
        words = ["import", f"ssdb://127.0.0.1:{peer.port}", "--to", f"redis://127.0.0.1:{ours.port}"]
        told = tools.run(*words[:2], "--dry-run", status=UNTAKEN)
        assert "1 key, 1 of which expire; 1 field of hashes, 2 members of zsets" in told, told
        assert "1 name is of several types" in told and ": both" in told and "1 score is beyond 2^53" in told, told
        told = tools.run(*words[:2], "--dry-run", "--ssdb-namespaces", "separate", status=UNTAKEN)
        assert "several types" not in told and "of far m" in told, told
        for _ in range(2):
            told = tools.run(*words, status=UNTAKEN)
            assert "--partial" in told and "--ssdb-namespaces separate" in told, told
        told = tools.run(*words, "--partial")
        for left_out in ('ZADD "far": score 9007199254740993', 'SET "both": WRONGTYPE', 'GETEX "both": WRONGTYPE'):
            assert f"left out: {left_out}" in told, told
        state = onggi_state(mine)
        assert state == {("hash", "both"): {"f": "1"}, ("zset", "near"): {"m": "1"}}, state
        assert mine.call("TTL", "both") == -1
        words[-1] += "/4"
        told = tools.run(*words, "--partial", "--ssdb-namespaces", "separate")
        assert "database 4 has 4 keys" in told and told.count("left out: ") == 1, told
        states = []
        for db in range(4, 8):
            mine.call("SELECT", db)
            states.append(onggi_state(mine))
        expected = [{("key", "both"): "3"}, {("hash", "both"): {"f": "1"}}, {("zset", "near"): {"m": "1"}},
                    {("queue", "both"): ["4"]}]
        assert states == expected, states
        mine.call("SELECT", 4)
        assert 0 < mine.call("TTL", "both") <= 100


def without_a_binlog(tools, kind, start):
    name = f"ssdb-log-{kind}"
    with start(name, has_log=False) as peer, tools.serve(name) as ours, Client(ours.port) as mine:
        with SsdbClient(peer.port) as client:
            client.pipeline([("set", "a", 1), ("qpush_back", "q", 2)])
        words = ["import", f"ssdb://127.0.0.1:{peer.port}", "--to", f"redis://127.0.0.1:{ours.port}"]
        told = tools.run(*words, "--follow", status=2)
        assert "replication.binlog" in told, told
        mine.call("FLUSHDB")
        tools.run(*words)
        expect_same(Reader(peer), mine)


def a_binlog_that_is_too_short(tools):
    with Peer() as peer, Proxy(peer.port) as proxy, tools.serve("ssdb-short") as ours, Client(ours.port) as mine:
        with SsdbClient(peer.port) as client:
            # An SSDB without data is waited for.
            words = [f"ssdb://127.0.0.1:{proxy.port}", "--to", f"redis://127.0.0.1:{ours.port}", "--follow"]
            copier = Import(tools, "ssdb-short", *words)
            copier.wait_for("waiting for its first change")
            client.pipeline([("set", "a", 1), ("qpush_back", "q", 2)])
            copier.wait_for("0 entries behind")
            proxy.pause()
            client.pipeline([("set", "b", 1), ("del", "a"), ("qpop_front", "q")])
            peer.forget_log()
            client.pipeline([("qpush_back", "q", 3)])
            proxy.go_on()
            copier.wait_for("a new copy")
            copier.wait_for("0 entries behind", 2)
            copier.end()
            expect_same(Reader(peer), mine)


def arguments(tools):
    refused = tools.run("import", "ssdb://h", "--dir", tools.scratch / "none", status=2)
    assert "give --to redis://HOST:PORT/DATABASE" in refused, refused
    refused = tools.run("import", "ssdb://user:word@h", "--to", "redis://h", status=2)
    assert "expected ssdb://" in refused, refused
    refused = tools.run("import", "ssdb://h", "--to", "redis://h/x", status=2)
    assert "--to: database" in refused, refused
    refused = tools.run("import", "redis://h", "--to", "redis://h", status=2)
    assert "--to is for an SSDB" in refused, refused
    refused = tools.run("import", f"ssdb://127.0.0.1:{free_port()}", "--to", "redis://h", status=2)
    assert "SSDB 127.0.0.1" in refused, refused
    with tools.serve("ssdb-none") as ours:
        # A server of Redis' protocol is none of SSDB.
        address = f"ssdb://127.0.0.1:{ours.port}"
        refused = tools.run("import", address, "--to", f"redis://127.0.0.1:{ours.port}", status=2)
        assert "SSDB 127.0.0.1" in refused, refused


def run(tools):
    tools.check("ssdb: arguments", lambda: arguments(tools))
    tools.check("ssdb: a binlog that is too short", lambda: a_binlog_that_is_too_short(tools))
    for kind, start in peers(tools).items():
        for test in (copied_once, followed_under_load, what_cannot_be_taken, without_a_binlog):
            title = test.__name__.replace("_", " ")
            tools.check(f"ssdb: {title}, {kind}", lambda test=test, kind=kind, start=start: test(tools, kind, start))
