"""Servers on data directories, the tools that read these, and the checks."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from job import Skip
from servers import free_port

SECONDS_MAX = 60


class ErrorReply(Exception):
    """An error that a server answered."""


class Server:
    """A server on a data directory, on a free port, with its log on; killed at the end unless it was shut down."""

    def __init__(self, onggi, data, *options, environment=None, file=None):
        self.data = data
        self.port = free_port()
        data.mkdir(exist_ok=True)
        self.output = open(data.parent / f"{data.name}.output", "ab")
        files = [file] if file else []
        argv = [onggi, "serve", *files, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(data),
                "--enable-debug-command", "local", "--http-port", "0", *options]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                        env={**os.environ, **(environment or {})})
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                with Client(self.port) as client:
                    if client.call("PING") == "PONG":
                        return
            except (OSError, ErrorReply):
                # The server does not listen yet, or is loading.
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server on {data.name} does not start")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()
        self.output.close()

    def shut_down(self):
        """Ends it in order."""
        self.process.terminate()
        if self.process.wait(timeout=SECONDS_MAX) != 0:
            raise AssertionError(f"the server ended with status {self.process.returncode}")


class Client:
    """One connection, with replies as Python values."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        """The reply to one command; raises for an error."""
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        """The replies to several commands that are sent at once."""
        self._send(commands)
        return [self._reply() for _ in commands]

    def _send(self, commands):
        out = bytearray()
        for words in commands:
            parts = [word if isinstance(word, bytes) else str(word).encode(errors="surrogateescape") for word in words]
            out += b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self.socket.sendall(out)

    def pipeline_of_any(self, commands):
        """As `pipeline`, of commands that may answer errors, which stand among the replies."""
        self._send(commands)
        return [self._reply_or_error() for _ in commands]

    def _reply(self):
        reply = self._reply_or_error()
        if isinstance(reply, ErrorReply):
            raise reply
        return reply

    def _reply_or_error(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, text = line[:1], line[1:-2].decode(errors="surrogateescape")
        if kind == b"-":
            return ErrorReply(text)
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == "-1" else self.file.read(int(text) + 2)[:-2].decode(errors="surrogateescape")
        if kind == b"*":
            return [self._reply_or_error() for _ in range(int(text))]
        return text


class Tools:
    """Runs the tools below one scratch directory, and counts checks."""

    def __init__(self, onggi, scratch):
        self.onggi, self.scratch, self.failed = onggi, scratch, 0

    def check(self, name, body):
        """Runs `body`; what it raises is the failure, or the reason why it cannot run here."""
        try:
            body()
            print(f"ok - {name}", flush=True)
        except Skip as reason:
            print(f"ok - {name} # SKIP {reason}", flush=True)
        except Exception as problem:
            self.failed += 1
            print(f"not ok - {name}: {type(problem).__name__}: {str(problem)[:600]}", flush=True)

    def serve(self, name, *options, environment=None, file=None):
        """A server on the directory of this name, with these variables next to those of the tests, and the settings of
        this file."""
        return Server(self.onggi, self.scratch / name, *options, environment=environment, file=file)

    def run(self, *words, status=0, statuses=(), seconds_max=SECONDS_MAX):
        """What a tool prints; fails unless it ends with the status, or one of several."""
        done = subprocess.run([self.onggi, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=seconds_max)
        if done.returncode not in (statuses or (status,)):
            raise AssertionError(f"{words[0]} ended with status {done.returncode}, not {status}: {done.stdout[-400:]}")
        return done.stdout


def run_as_program(check):
    """Makes these checks of the program and the template of a machine that the command line names. The exit status."""
    with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
        tools = Tools(sys.argv[1], Path(scratch))
        check(tools, Path(sys.argv[2]))
        return 1 if tools.failed else 0


def load(client, keys):
    """Fills a server with strings and with one collection of each type, small and big."""
    for start in range(0, keys, 1000):
        client.pipeline([("SET", f"string:{n}", f"value {n}") for n in range(start, min(start + 1000, keys))])
    for count in (20, 3000):
        some = range(count)
        client.call("RPUSH", f"list:{count}", *some)
        client.call("SADD", f"set:{count}", *(f"member {n}" for n in some))
        client.call("HSET", f"hash:{count}", *(word for n in some for word in (f"field {n}", n)))
        client.call("ZADD", f"zset:{count}", *(word for n in some for word in (n % 97, f"member {n}")))
        client.pipeline([("XADD", f"stream:{count}", f"{n + 1}-0", "field", n) for n in some])


def digest(client):
    """The digest of all data."""
    return client.call("DEBUG", "DIGEST")
