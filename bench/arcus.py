#!/usr/bin/env python3
"""ARCUS' slides on persistence, run again on the memcached port, beside memcached.

    python3 bench/arcus.py --onggi target/release/onggi [--arcus PATH] [--scale 0.04] [--seconds 4] [--out DIRECTORY]

Three loads by 50 connections, one request in flight each: insert only (new keys), 1:9 and 3:7 of set and get over all
keys. Each with the log OFF, ASYNC (a sync every second) and SYNC (`STORED` after the sync), next to memcached, which
keeps nothing, and to ARCUS, where a path to its program is given. Then the picture of a checkpoint: items are filled,
3:7 runs, and a checkpoint is taken in ASYNC mode; throughput is drawn for every 100 ms.

Items have keys of 16 bytes and data of 16. The picture has 50 million of them times --scale, the other loads 2 million
times --scale. The generator is one Python process on the same machine, and its CPU time is in the table: where it is
near 100 %, it is what limits the throughput. Judge a server by its CPU time per request.
"""

import argparse
import json
import random
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measured

CONNECTIONS = 50
ITEMS = 2_000_000
PICTURE_ITEMS = 50_000_000
STEP_SECONDS = 0.1
BEFORE_SECONDS = 3
AFTER_SECONDS = 2
CHECKPOINT_SECONDS_MAX = 60
MODES = {
    "onggi OFF": ["--appendonly", "no"],
    "onggi ASYNC": ["--appendonly", "yes", "--appendfsync", "everysec"],
    "onggi SYNC": ["--appendonly", "yes", "--appendfsync", "always"],
}
# Sets among ten requests; None: keys that are new.
LOADS = {"insert only": None, "1:9": 1, "3:7": 3}


class Server:
    def __init__(self, name, argv, directory, port, resp_port=None):
        self.name, self.directory, self.port, self.resp_port = name, directory, port, resp_port
        self.process = subprocess.Popen(argv, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                with self.connect() as connection:
                    connection.sendall(b"get none\r\n")
                    if connection.recv(4096) == b"END\r\n":
                        return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"{name} does not answer on port {port}")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def cpu_seconds(self):
        return measured.cpu_seconds(self.process.pid)

    def ask(self, *words):
        """The reply to a command of RESP, as far as it comes at once."""
        with socket.create_connection(("127.0.0.1", self.resp_port)) as connection:
            parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(f"*{len(words)}\r\n{parts}".encode())
            return connection.recv(1 << 20).decode()

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def start(name, options):
    directory, port = tempfile.mkdtemp(prefix="onggi-arcus-", dir=options.directory), measured.free_port()
    if name == "memcached":
        argv = [options.memcached, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1",
                "-m", "16384"]
        return Server(name, argv, directory, port)
    if name.startswith("arcus"):
        sync = {"OFF": None, "ASYNC": "true", "SYNC": "false"}[name.split()[1]]
        lines = ["use_persistence=" + ("false" if sync is None else "true"), f"async_logging={sync or 'false'}",
                 f"data_path={directory}", f"logs_path={directory}"]
        Path(directory, "arcus.conf").write_text("\n".join(lines) + "\n")
        engine = options.arcus_engine or str(Path(options.arcus).parent / ".libs" / "default_engine.so")
        argv = [options.arcus, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", "1", "-m", "16384",
                "-E", engine, "-e", f"config_file={directory}/arcus.conf"]
        return Server(name, argv, directory, port)
    resp = measured.free_port()
    argv = [options.onggi, "serve", "--http-port", "0", "--port", str(resp), "--memcached-port", str(port),
            "--workers", "1", "--dir", directory, "--save", "", "--compression", "off",
            "--auto-aof-rewrite-percentage", "0", *MODES[name]]
    return Server(name, argv, directory, port, resp)


def key(number):
    return b"k:%014d" % number


def set_request(number, tail=b""):
    return b"set %s 0 0 16%s\r\n%016d\r\n" % (key(number), tail, number)


def fill(server, count):
    with server.connect() as connection:
        for first in range(0, count, 2000):
            numbers = range(first, min(first + 2000, count))
            connection.sendall(b"".join(set_request(number, b" noreply") for number in numbers))
        connection.sendall(b"version\r\n")
        received = b""
        while not received.endswith(b"\n"):
            received += connection.recv(4096)


def load(server, sets, count, seconds, each_step=None):
    """Requests answered, their times in ms, and seconds, of a load that runs until each_step or the clock ends it."""
    source, poll, connections = random.Random(7), select.epoll(), {}
    fresh = count

    def request():
        nonlocal fresh
        if sets is None:
            fresh += 1
            return set_request(fresh)
        number = source.randrange(count)
        return set_request(number) if source.random() * 10 < sets else b"get " + key(number) + b"\r\n"

    times, done, began = [], 0, time.monotonic()
    for _ in range(CONNECTIONS):
        connection = server.connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections[connection.fileno()] = [connection, time.perf_counter()]
        poll.register(connection, select.EPOLLIN)
        connection.sendall(request())
    step, step_done = began + STEP_SECONDS, 0
    running = True
    while running:
        for descriptor, _ in poll.poll(1):
            entry = connections[descriptor]
            reply = entry[0].recv(4096)
            # A reply of this size comes in one piece on the loopback interface.
            assert reply.endswith((b"STORED\r\n", b"END\r\n")), reply
            now = time.perf_counter()
            times.append((now - entry[1]) * 1000)
            done += 1
            entry[1] = now
            entry[0].sendall(request())
        now = time.monotonic()
        while now >= step:
            if each_step:
                running = each_step(now - began, done - step_done) and running
                step_done = done
            step += STEP_SECONDS
        if not each_step and now - began >= seconds:
            running = False
    seconds = time.monotonic() - began
    for connection, _ in connections.values():
        connection.close()
    return done, times, seconds


def measure(name, options):
    """The row of a server: for each load, throughput, CPU time of both sides and the 99th percentile."""
    rows, count = {}, max(1000, int(ITEMS * options.scale))
    for title, sets in LOADS.items():
        server = start(name, options)
        try:
            fill(server, count)
            cpu, own = server.cpu_seconds(), time.process_time()
            done, times, seconds = load(server, sets, count, options.seconds)
            times.sort()
            rows[title] = {
                "per_second": done / seconds,
                "server_us": (server.cpu_seconds() - cpu) / done * 1e6,
                "p99_ms": times[int(len(times) * 0.99)],
                "generator_percent": (time.process_time() - own) / seconds * 100,
            }
        finally:
            server.stop()
    return rows


def picture(options):
    """Throughput per step before, during and after a checkpoint."""
    count = max(10_000, int(PICTURE_ITEMS * options.scale))
    server = start("onggi ASYNC", options)
    try:
        fill(server, count)
        # What filling has written is in a checkpoint before the one that is drawn.
        server.ask("BGREWRITEAOF")
        while "aof_rewrite_in_progress:1" in server.ask("INFO", "persistence"):
            time.sleep(0.1)
        steps, state = [], {"began": None, "ended": None}

        def each_step(at, done):
            steps.append(done)
            if state["began"] is None and at >= BEFORE_SECONDS:
                assert server.ask("BGREWRITEAOF").startswith("+"), "no checkpoint was begun"
                state["began"] = len(steps)
            elif state["began"] and not state["ended"] and len(steps) % 2 == 0:
                if "aof_rewrite_in_progress:0" in server.ask("INFO", "persistence"):
                    state["ended"] = len(steps)
            return at < CHECKPOINT_SECONDS_MAX and not (
                state["ended"] and len(steps) >= state["ended"] + AFTER_SECONDS / STEP_SECONDS
            )

        own, began = time.process_time(), time.monotonic()
        load(server, 3, count, None, each_step)
        generator = (time.process_time() - own) / (time.monotonic() - began) * 100
    finally:
        server.stop()
    begin, end = state["began"], state["ended"] or len(steps)
    before = statistics.mean(steps[5:begin]) / STEP_SECONDS
    whole = int(1 / STEP_SECONDS)
    seconds = range(begin, max(begin + 1, end - whole + 1))
    during = [statistics.mean(steps[at:at + whole]) / STEP_SECONDS for at in seconds]
    return {"items": count, "steps": [step / STEP_SECONDS for step in steps], "begin": begin, "end": end,
            "before": before, "worst_second": min(during), "generator_percent": generator}


def drawing(found):
    width, height, left = 900, 260, 60
    most = max(found["steps"]) * 1.05
    x = lambda at: left + at * (width - left - 10) / len(found["steps"])
    y = lambda value: height - 30 - value / most * (height - 50)
    line = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in enumerate(found["steps"]))
    band = f'<rect x="{x(found["begin"]):.1f}" y="20" width="{x(found["end"]) - x(found["begin"]):.1f}" ' \
           f'height="{height - 50}" fill="#e4efe9"/>'
    texts = [(left, 14, "requests per second, every 100 ms; shaded: the checkpoint"), (4, y(found["before"]),
             f"{found['before']:.0f}"), (4, height - 30, "0")]
    texts = "".join(f'<text x="{a}" y="{b:.0f}" font-family="sans-serif" font-size="12">{text}</text>'
                    for a, b, text in texts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{band}'
            f'<polyline points="{line}" fill="none" stroke="#2f7d5b"/>{texts}</svg>\n')


def table(results):
    lines = ["| | load | requests/s | server CPU, us | p99, ms | generator CPU, % |", "|---|---|---:|---:|---:|---:|"]
    for name, rows in results.items():
        for title, row in rows.items():
            lines.append(f"| {name} | {title} | {row['per_second']:.0f} | {row['server_us']:.2f} | {row['p99_ms']:.2f} "
                         f"| {row['generator_percent']:.0f} |")
    return "\n".join(lines)


def ratios(results):
    """Throughput of ASYNC and SYNC by that of OFF at 1:9."""
    off = results["onggi OFF"]["1:9"]["per_second"]
    return {mode: results[f"onggi {mode}"]["1:9"]["per_second"] / off for mode in ("ASYNC", "SYNC")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onggi", required=True)
    parser.add_argument("--memcached", default="memcached")
    parser.add_argument("--arcus", help="ARCUS' memcached program, built with persistence")
    parser.add_argument("--arcus-engine", help="its default_engine.so; the one next to it if this is not given")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--directory", help="where servers keep their data")
    parser.add_argument("--out", help="a directory for results.json and checkpoint.svg")
    options = parser.parse_args()
    names = ["memcached", *MODES]
    if options.arcus:
        names += ["arcus OFF", "arcus ASYNC", "arcus SYNC"]
    results = {name: measure(name, options) for name in names}
    print(table(results), flush=True)
    for mode, ratio in ratios(results).items():
        print(f"\n{mode} at 1:9: {ratio:.2f} of OFF")
    found = picture(options)
    seconds = (found["end"] - found["begin"]) * STEP_SECONDS
    print(f"\nCheckpoint of {found['items']} items: {seconds:.1f} s; {found['before']:.0f} requests/s before, "
          f"{found['worst_second']:.0f} in its worst second ({found['worst_second'] / found['before']:.2f}); "
          f"generator CPU {found['generator_percent']:.0f} %")
    if options.out:
        out = Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        kept = {"scale": options.scale, "seconds": options.seconds, "loads": results, "picture": found}
        (out / "results.json").write_text(json.dumps(kept, indent=1) + "\n")
        (out / "checkpoint.svg").write_text(drawing(found))


if __name__ == "__main__":
    main()
