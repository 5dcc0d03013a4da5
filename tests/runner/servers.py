"""Starts servers for tests: on a free port, with data in a temporary directory, ended when the test ends."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import need
from job import Failed

START_SECONDS_MAX = 30


# Ports that were given out: a server that has one may not listen on it yet.
given_ports = set()


def free_port():
    """A port on which no program listens and that was not given before. Taken from below the range the kernel gives to
    outgoing connections."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(low - 1 - os.getpid() % 2000, 10_000, -1):
        if port in given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                given_ports.add(port)
                return port
            except OSError:
                continue
    raise Failed("no free port")


# Servers that no package here has, each with the variable that names its program, and what it is.
OTHERS = {"redis-8": ("REDIS_8_SERVER", "Redis 8"), "valkey-8": ("VALKEY_8_SERVER", "Valkey 8")}
# Those that are older than what tests of files want.
OLD = {"redis-6": ("REDIS_6_SERVER", "Redis 6.2")}
# Directives that older servers do not know, and whose effect they have always.
NEW_DIRECTIVES = {"redis-6": {"enable-debug-command"}}


def others(table=OTHERS):
    """Those of a table that are there: kinds and titles."""
    return [(kind, title) for kind, (variable, title) in table.items() if os.environ.get(variable)]


class Server:
    """A running server. `kind` is `onggi`, `valkey`, `redis` or one of OTHERS or OLD; `options` are directives as
    (name, value); `wrap` is a command that ends by becoming the server, and `env` what it sees besides."""

    def __init__(self, kind, password=None, options=(), wrap=(), env=None):
        self.kind = kind
        self.password = password
        self.options = [option for option in options if option[0] not in NEW_DIRECTIVES.get(kind, ())]
        self.wrap = [str(word) for word in wrap]
        self.env = dict(env or {})
        self.directory = None
        self.process = None

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="onggi-test-"))
        self.port = free_port()
        self.unix = self.directory / "socket"
        directives = [("port", self.port), ("bind", "127.0.0.1"), ("dir", self.directory), ("unixsocket", self.unix),
                      ("save", ""), ("appendonly", "no"), *self.options]
        if self.password:
            directives.append(("requirepass", self.password))
        argv = self.wrap + [str(a) for a in self._program()]
        for name, value in directives:
            argv += [f"--{name}", str(value)]
        self.output = self.directory / "output"
        self.argv = argv
        self.start()
        return self

    def start(self):
        """Starts it; again on the same data after it has ended."""
        env = {**os.environ, **self.env}
        if self.kind == "valkey":
            env["LD_PRELOAD"] = str(need.jemalloc())
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=open(self.output, "wb"),
                                        stderr=subprocess.STDOUT, env=env)
        self._wait_for_answer()

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def alive(self):
        """Whether the process that was started still runs."""
        return self.process.poll() is None

    def _program(self):
        if self.kind == "valkey":
            return [need.valkey()]
        if self.kind == "redis":
            return [need.program("redis-server", "redis-server")]
        other = OTHERS.get(self.kind) or OLD.get(self.kind)
        if other:
            return [os.environ[other[0]]]
        return [need.onggi(), "serve", "--http-port", "0"]

    def _is_loaded(self):
        """Whether the server answers, and has loaded its data."""
        login = f"AUTH {self.password}\r\n" if self.password else ""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(f"{login}PING\r\n".encode())
            with connection.makefile("rb") as replies:
                lines = [replies.readline() for _ in range(2 if login else 1)]
        return lines[-1][:1] in (b"+", b"-") and not lines[-1].startswith(b"-LOADING")

    def _wait_for_answer(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if self._is_loaded():
                    return
            except OSError:
                pass
            time.sleep(0.02)
        printed = self.output.read_text(errors="replace")[-2000:]
        raise Failed(f"{self.kind} does not answer on port {self.port}; it printed:\n{printed}")
