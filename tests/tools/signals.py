"""Signals to a real server, and what a start refuses: no acknowledged write is lost, and no directory is mistaken for
an empty one."""

import os
import signal
import threading
import time

from directory import Client, SECONDS_MAX

# Without the log, everything depends on the checkpoint at the end.
NO_LOG = ("--appendonly", "no", "--save", "3600 1")


class Counter(threading.Thread):
    """Counts upwards in one key until the connection ends; `acknowledged` is the last number that the server has
    confirmed."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.acknowledged = port, 0
        self.has_begun = threading.Event()
        self.start()

    def run(self):
        try:
            with Client(self.port) as client:
                while True:
                    client.call("SET", "count", self.acknowledged + 1)
                    self.acknowledged += 1
                    self.has_begun.set()
        except OSError:
            # The server has ended.
            pass


def wait_for_line(path, text):
    """The first line of a log file that contains the text."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            if text in line:
                return line
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never says {text!r}")


def number(tools, name):
    with tools.serve(name, *NO_LOG) as server, Client(server.port) as client:
        return int(client.call("GET", "count") or 0)


def acknowledged_just_before(tools):
    for end in (signal.SIGTERM, signal.SIGINT) * 3:
        with tools.serve("signal-once", *NO_LOG) as server, Client(server.port) as client:
            before = int(client.call("INCR", "count"))
            server.process.send_signal(end)
            status = server.process.wait(timeout=SECONDS_MAX)
        if status != 0 or number(tools, "signal-once") != before:
            raise AssertionError(f"signal {end}: status {status}, the write {before} is lost")


def acknowledged_while_it_ends(tools):
    with tools.serve("signal-load", *NO_LOG) as server:
        writer = Counter(server.port)
        writer.has_begun.wait(SECONDS_MAX)
        server.shut_down()
    writer.join(SECONDS_MAX)
    acknowledged, found = writer.acknowledged, number(tools, "signal-load")
    # One more may have been saved whose reply was on its way.
    if not acknowledged <= found <= acknowledged + 1:
        raise AssertionError(f"{acknowledged} writes were acknowledged, {found} were saved")


def refused_while_it_cannot_save(tools):
    log, data, away = tools.scratch / "refused.log", tools.scratch / "signal-refused", tools.scratch / "signal-away"
    with tools.serve("signal-refused", *NO_LOG, "--logfile", log) as server, Client(server.port) as client:
        client.call("SET", "count", 7)
        data.rename(away)
        server.process.terminate()
        wait_for_line(log, "SIGTERM refused")
        if client.call("GET", "count") != "7":
            raise AssertionError("it does not go on serving")
        away.rename(data)
        server.shut_down()
    if number(tools, "signal-refused") != 7:
        raise AssertionError("the write is lost")


def hup_reopens_and_changes_nothing(tools):
    log, old = tools.scratch / "hup.log", tools.scratch / "hup.log.1"
    with tools.serve("signal-hup", "--logfile", log) as server, Client(server.port) as client:
        client.call("CONFIG", "SET", "maxmemory", "100mb")
        log.rename(old)
        for harmless in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            server.process.send_signal(harmless)
        wait_for_line(log, 'maxmemory: "104857600" is in force, "0" is configured')
        if client.call("CONFIG", "GET", "maxmemory") != ["maxmemory", "104857600"]:
            raise AssertionError("SIGHUP has undone CONFIG SET")
        server.shut_down()
    line = wait_for_line(log, "ended")
    if not line.startswith(f"{server.process.pid}:M ") or " * ended" not in line:
        raise AssertionError(f"not a line as of Valkey: {line}")
    wait_for_line(old, "ready: ")


def strangers_are_refused(tools):
    data = tools.scratch / "foreign"
    data.mkdir()
    (data / "dump.rdb").write_bytes(b"REDIS0010\xfa\x09redis-ver\x067.0.15\xff" + bytes(8))
    words = ("--port", "0", "--unixsocket", tools.scratch / "foreign.sock", "--dir")
    text = tools.run(*words, data, status=1)
    if "dump.rdb (Redis 7.0.15)" not in text or f"onggi import {data}/dump.rdb --dir NEWDIR" not in text:
        raise AssertionError(text)
    text = tools.run(*words, tools.scratch / "not" / "mounted", status=1)
    if "not does not exist" not in text:
        raise AssertionError(text)
    text = tools.run(*words, tools.scratch / "empty", "--dir-must-hold-data", "yes", status=1)
    if "holds no data" not in text or (tools.scratch / "empty").exists():
        raise AssertionError(text)


def dumps_of_others_stay(tools):
    data = tools.scratch / "beside"
    data.mkdir()
    dump = data / "dump.rdb"
    dump.write_bytes(b"REDIS0010\xfa\x09redis-ver\x067.0.15\xff" + bytes(8))
    before = dump.read_bytes()
    log = tools.scratch / "beside.log"
    with tools.serve("beside", "--ignore-foreign-files", "yes", "--logfile", log) as server, Client(
        server.port
    ) as client:
        client.call("BGSAVE", "RDB")
        wait_for_line(log, "was not written by Onggi (Redis 7.0.15)")
        if dump.read_bytes() != before:
            raise AssertionError("BGSAVE RDB has replaced the dump of another server")
        os.remove(dump)
        client.call("BGSAVE", "RDB")
        wait_for_line(log, "RDB file done")


def run(tools):
    tools.check("a write just before SIGTERM or SIGINT is saved", lambda: acknowledged_just_before(tools))
    tools.check(
        "no write is acknowledged and lost while a signal ends the server", lambda: acknowledged_while_it_ends(tools)
    )
    tools.check("SIGTERM is refused while the data cannot be saved", lambda: refused_while_it_cannot_save(tools))
    tools.check("SIGHUP opens the log anew and changes no setting", lambda: hup_reopens_and_changes_nothing(tools))
    tools.check("foreign, missing and empty directories are refused", lambda: strangers_are_refused(tools))
    tools.check("BGSAVE RDB keeps a dump of another server", lambda: dumps_of_others_stay(tools))
