"""Two nodes of an ARCUS cluster: a real ZooKeeper, and ARCUS' own client, which finds them by it."""

import signal
import socket
import subprocess
import threading
import time

from wire import Wire

ZOOKEEPER = "/usr/share/java/zookeeper.jar"
SERVICE = "test"
LIST = f"/arcus/cache_list/{SERVICE}"
# The time after which ZooKeeper ends a silent session, and within which everything else here has to happen.
SESSION_SECONDS = 4
PATIENCE_SECONDS = 40
KEYS = 300


class ZooKeeper:
    """A server of ZooKeeper that is run by Debian's packages."""

    CONFIGURATION = """\
tickTime=400
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
"""

    def __init__(self, java, directory, port):
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.configuration = directory / "zoo.cfg"
        self.configuration.write_text(self.CONFIGURATION.format(directory=directory / "data", port=port))
        self.output = open(directory / "output", "ab")
        self.argv = [java, "-Xmx128m", "-cp", ZOOKEEPER,
                     "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.configuration]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT)
        until(self.answers)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return connection.recv(100) != b""
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


class Relay:
    """A way to ZooKeeper that can be cut: then all bytes are lost, and connections stay."""

    def __init__(self, port):
        self.to, self.is_cut, self.ends = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                close(near)
                continue
            self.ends += [near, far]
            for of, to in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(of, to), daemon=True).start()

    def carry(self, of, to):
        try:
            while data := of.recv(65536):
                if not self.is_cut:
                    to.sendall(data)
        except OSError:
            pass
        if not self.is_cut:
            close(of, to)

    def cut(self):
        self.is_cut = True

    def mend(self):
        self.is_cut = False
        close(*self.ends)
        self.ends = []


def close(*sockets):
    for end in sockets:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


class Client:
    """ARCUS' client, and a look into ZooKeeper by it."""

    def __init__(self, argv, directory):
        self.process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(directory / "client-errors", "wb"), text=True, bufsize=1)

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer.startswith("error: "):
            raise OSError(f"{' '.join(str(word) for word in words)}: {answer}")
        return answer

    def nodes(self):
        """The names of the list, without those of hosts."""
        return [name.split("-")[0] for name in self.ask("children", LIST).split(",") if name]


def until(holds):
    """Whether it holds within the time that it may take."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def line(node, request):
    """The first line of the reply."""
    wire = Wire(node.memcached_port)
    wire.socket.sendall(request + b"\r\n")
    with wire.socket.makefile("rb") as reply:
        return reply.readline().strip().decode()


def figures(node, of):
    """The statistics of this name."""
    reply = Wire(node.memcached_port).exchange(b"stats " + of + b"\r\n").decode()
    return dict(line.split(" ", 2)[1:] for line in reply.splitlines() if line.startswith("STAT "))


def items(node):
    return int(figures(node, b"")["curr_items"])


def run(zookeeper, client, start, check):
    """`start` starts a node with these options besides."""
    ports = [start.port(), start.port()]
    names = [f"127.0.0.1:{port}" for port in ports]
    for path in (LIST, f"/arcus/client_list/{SERVICE}", "/arcus/cache_server_log"):
        client.ask("create", path)
    client.ask("create", f"/arcus/cache_server_mapping/{names[0]}/{SERVICE}")
    first = start(ports[0], zookeeper.address, "yes")
    relay = Relay(zookeeper.port)
    second = start(ports[1], relay.address, "no")
    check("a node whose service is known joins", until(lambda: line(first, b"ready") == "READY"))
    check("one that belongs to no service waits", line(second, b"ready") == "NOT_READY")
    client.ask("create", f"/arcus/cache_server_mapping/{names[1]}/{SERVICE}")
    check("and joins when it is given one", until(lambda: line(second, b"ready") == "READY"))
    check("both are on the list", client.nodes() == sorted(names))
    both = until(lambda: figures(first, b"zookeeper")["zk_cache_nodes"] == "2")
    check("each node sees the other", both)
    share(first, second, client, check)
    lose(second, client, check)
    second.start()
    check("it comes back to the list", until(lambda: sorted(client.nodes()) == sorted(names)))
    check("keys that are its own then go elsewhere by themselves",
          until(lambda: figures(first, b"scrub").get("scrubber:cleaned", "0") != "0"))
    restart(zookeeper, first, second, client, names, check)
    expire(first, second, relay, client, names, check)
    second.process.terminate()
    second.process.wait(20)
    log = client.ask("children", "/arcus/cache_server_log")
    days = [client.ask("children", f"/arcus/cache_server_log/{day}") for day in log.split(",")]
    notes = [name for day in days for name in day.split(",")]
    check("a node that ends is off the list at once", client.nodes() == [])
    check("ARCUS' log of nodes has what has happened", sum(name.startswith(names[1]) for name in notes) >= 4)


def share(first, second, client, check):
    client.ask("connect")
    check("the client of ARCUS stores items", until(lambda: client.ask("set", KEYS, "one") == str(KEYS)))
    check("and finds them", client.ask("get", KEYS, "one") == str(KEYS))
    shares = [items(first), items(second)]
    check("both nodes have some", min(shares) > KEYS / 10 and sum(shares) == KEYS)
    check("b+trees of both come together", client.ask("collections") == "20")
    for node in (first, second):
        check("a scrub is taken", line(node, b"scrub stale") == "OK")
        until(lambda: figures(node, b"scrub")["scrubber:status"] == "stopped")
    scrubbed = [figures(node, b"scrub") for node in (first, second)]
    check("node and client agree whose a key is", all(figure["scrubber:cleaned"] == "0" for figure in scrubbed))
    check("all keys were looked at", sum(int(figure["scrubber:visited"]) for figure in scrubbed) == KEYS + 20)


def lose(second, client, check):
    second.process.send_signal(signal.SIGKILL)
    second.process.wait()
    check("a killed node leaves the list", until(lambda: len(client.nodes()) == 1))
    check("the client goes on with the other", until(lambda: client.ask("nodes") == "1"))
    check("which takes all keys", until(lambda: client.ask("set", KEYS, "two") == str(KEYS)))
    check("and has them", client.ask("get", KEYS, "two") == str(KEYS))


def restart(zookeeper, first, second, client, names, check):
    zookeeper.stop()
    check("without ZooKeeper nodes serve", until(lambda: figures(first, b"zookeeper")["zk_connected"] == "false")
          and line(second, b"ready") == "READY")
    zookeeper.start()
    connected = until(lambda: all(figures(node, b"zookeeper")["zk_connected"] == "true" for node in (first, second)))
    check("after its restart sessions go on", connected and first.alive())
    check("and the list is as before", until(lambda: sorted(client.nodes()) == sorted(names)))
    check("the servers can be named anew", line(first, b"zkensemble set " + zookeeper.address.encode()) == "OK")
    check("and are shown", line(first, b"zkensemble get") == zookeeper.address)
    check("a wrong list is refused", line(first, b"zkensemble set nowhere").startswith("ERROR failed to set"))
    check("which changes nothing", until(lambda: figures(first, b"zookeeper")["zk_connected"] == "true"))


def expire(first, second, relay, client, names, check):
    first.process.send_signal(signal.SIGSTOP)
    relay.cut()
    check("a node that is stopped and one that is cut off leave the list", until(lambda: client.nodes() == []))
    check("the latter serves, and knows that it is alone", until(
        lambda: figures(second, b"zookeeper")["zk_connected"] == "false")
        and Wire(second.memcached_port).exchange(b"set here 0 0 1\r\nx\r\nget here\r\ndelete here\r\n")
        == b"STORED\r\nVALUE here 0 1\r\nx\r\nEND\r\nDELETED\r\n")
    first.process.send_signal(signal.SIGCONT)
    relay.mend()
    check("with zkfailstop such a node ends", until(lambda: not first.alive()))
    check("without, it is not ready", until(lambda: line(second, b"ready") == "NOT_READY") and second.alive())
    check("it comes back when it is told to", line(second, b"zkensemble rejoin") == "Successfully rejoined")
    check("and is on the list", client.nodes() == [names[1]] and line(second, b"ready") == "READY")
    again = line(second, b"zkensemble rejoin")
    check("a second time there is nothing to do", again.startswith("ERROR failed to rejoin"))
