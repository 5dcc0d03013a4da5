"""`onggi top`: its pages at a terminal, a server that goes and comes back, and its lines of JSON."""

import json
import os
import signal
import subprocess

import interactive
from tools import SECONDS_MAX


def run(t, onggi):
    t.environment["ONGGI_PASSWORD"] = t.password
    argv = [onggi, "top", "--addr", f"{t.host}:{t.port}"]

    def top(*words):
        return subprocess.run([*argv, *words], env=t.environment, capture_output=True, text=True, timeout=SECONDS_MAX)

    def pages():
        t.cli("SET", "top:key", "v")
        t.cli("CLIENT", "SETNAME", "seen")
        terminal = interactive.Terminal(t, [*argv, "-i", "0.2"])
        try:
            # The cursor skips blanks that are blank already.
            terminal.until(r"Onggi *\d+\.\d+\.\d+ *at")
            terminal.until("Throughput")
            terminal.until("Durability")
            terminal.type("2")
            terminal.until("time *of *one")
            terminal.until("info")
            terminal.type("3")
            terminal.until("memory")
            terminal.until("default")
            terminal.type("4")
            terminal.until("took")
            terminal.type("\x1b[C")
            terminal.until("uses")
            terminal.type(" ")
            terminal.until("goes *on")
            terminal.type("q")
            t.equal(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 0)
            terminal.pid = None
        finally:
            if terminal.pid:
                terminal.close()

    def ended_by_a_signal():
        terminal = interactive.Terminal(t, [*argv, "-i", "0.2"])
        terminal.until("Throughput")
        os.kill(terminal.pid, signal.SIGTERM)
        # The end of the other screen: what was on the terminal before is there again.
        terminal.until(r"\x1b\[\?1049l")
        t.equal(os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]), 0)

    def lines():
        done = top("--json", "-c", "2", "-i", "0.2")
        t.equal(done.returncode, 0, done.stderr)
        readings = [json.loads(line) for line in done.stdout.splitlines()]
        t.equal(len(readings), 2)
        for reading in readings:
            t.equal(reading["commands"] > 0 and reading["used_memory"] > 0, True, reading)
            t.equal("info" in [each["command"] for each in reading["commands_by_name"]], True, reading)

    def errors():
        done = top()
        t.equal(done.returncode, 2)
        t.matches("standard output is not a terminal; use --json", done.stderr)
        nobody = [onggi, "top", "--json", "--addr", "127.0.0.1:1"]
        done = subprocess.run(nobody, capture_output=True, text=True, timeout=SECONDS_MAX)
        t.equal(done.returncode, 2)
        t.equal(json.loads(done.stdout)["error"], "127.0.0.1:1: cannot connect")
        done = top("--json", "-i", "0")
        t.matches("`0` is not a number of seconds from 0.1 to 3600", json.loads(done.stdout)["error"])

    for name, body in (
        ("its pages at a terminal", pages),
        ("a signal gives the terminal back", ended_by_a_signal),
        ("lines of JSON", lines),
        ("errors", errors),
    ):
        t.check(f"onggi top: {name}", body)
