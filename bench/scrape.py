#!/usr/bin/env python3
"""What watching costs the server: CPU per operation while `/metrics` is scraped every second and a page is open, and
while nothing watches.

    python3 bench/scrape.py --onggi target/release/onggi [--rounds 7] [--seconds 6]

`onggi bench run` loads one server with GET and SET of 64 bytes at pipeline 16, in windows that alternate between
"watched" and "not watched"; which comes first alternates too. While it is watched, one client reads `/metrics` every
second, and another does what an open page does: it follows `/api/live`, and asks for hot keys, slow calls and clients
every five seconds. CPU is the user and system time of the process, and of its thread `web` alone, from `/proc`.
"""

import argparse
import http.client
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import measured

SECONDS_MAX = 60


def run_ns(path):
    """Time on a processor of a thread, by the scheduler."""
    return int((path / "schedstat").read_text().split()[0])


class Watch:
    """A scrape a second, and a page."""

    def __init__(self, port):
        self.port, self.ended = port, threading.Event()
        self.scrapes = self.events = self.bytes = 0
        self.threads = [threading.Thread(target=work) for work in (self.scrape, self.follow, self.ask)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {text[:200]}")
        connection.close()
        return text

    def scrape(self):
        while not self.ended.wait(1):
            self.bytes = len(self.get("/metrics"))
            self.scrapes += 1

    def follow(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        connection.request("GET", "/api/live")
        answer = connection.getresponse()
        while not self.ended.is_set():
            if answer.readline().startswith(b"data:"):
                self.events += 1
        connection.close()

    def ask(self):
        while not self.ended.wait(5):
            for path in ("/api/hotkeys", "/api/slowlog", "/api/clients"):
                self.get(path)


def window(options, port, test, seconds, *more):
    """One window of load."""
    subprocess.run(
        [options.onggi, "bench", "run", "-a", f"127.0.0.1:{port}", "-t", test, "-P", "16", "-c", "20", "-k", "100000",
         "-s", str(seconds), "--rounds", "1", "--value-size", "64", *more],
        check=True, stdout=subprocess.DEVNULL, timeout=SECONDS_MAX + seconds,
    )


def commands_processed(port):
    """What the server counts."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as client:
        client.sendall(b"INFO stats\r\n")
        file = client.makefile("rb")
        text = file.read(int(file.readline()[1:])).decode()
    return int(next(line for line in text.splitlines() if line.startswith("total_commands_processed:")).split(":")[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--onggi", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=6)
    options = parser.parse_args()
    port, http_port = measured.free_port(), measured.free_port()
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.onggi, "serve", "--dir", directory, "--port", str(port), "--http-port", str(http_port), "--save",
             "", "--appendonly", "no", "--workers", "1"],
            stdout=subprocess.DEVNULL,
        )
        try:
            measure(options, server, port, http_port)
        finally:
            server.terminate()
            server.wait(timeout=SECONDS_MAX)


def measure(options, server, port, http_port):
    process = Path("/proc") / str(server.pid)
    web = None
    while web is None:
        time.sleep(0.1)
        web = next((task for task in (process / "task").iterdir() if (task / "comm").read_text() == "web\n"), None)
    window(options, port, "set", 1)
    print(f"load average {os.getloadavg()[0]:.0f}")
    print("round test watched ops us_per_op web_ms_per_s web_share_percent scrapes events")
    ratios, shares, scraped = [], {False: [], True: []}, 0
    for number in range(options.rounds):
        for test in ("get", "set"):
            costs = {}
            for watched in (False, True) if number % 2 == 0 else (True, False):
                watch = Watch(http_port)
                if watched:
                    watch.__enter__()
                ops = commands_processed(port)
                before, own, begun = measured.cpu_seconds(process.name), run_ns(web), time.monotonic()
                window(options, port, test, options.seconds, "--no-load")
                spent, own = measured.cpu_seconds(process.name) - before, (run_ns(web) - own) / 1e9
                scraped = max(scraped, watch.bytes)
                took, ops = time.monotonic() - begun, commands_processed(port) - ops
                if watched:
                    watch.__exit__()
                costs[watched] = 1e6 * spent / ops
                share = 100 * own / spent
                shares[watched].append(share)
                print(f"{number} {test} {watched} {ops} {costs[watched]:.4f} {1000 * own / took:.2f} {share:.2f} "
                      f"{watch.scrapes} {watch.events}", flush=True)
            ratios.append(costs[True] / costs[False])
    print(f"cost per operation, watched over not watched: median {statistics.median(ratios):.4f}, "
          f"{min(ratios):.4f} to {max(ratios):.4f}")
    for watched, found in shares.items():
        print(f"the thread web's share of the server's CPU, watched {watched}: "
              f"median {statistics.median(found):.3f} %, most {max(found):.3f} %")
    print(f"load average {os.getloadavg()[0]:.0f}, {scraped} bytes of /metrics")


if __name__ == "__main__":
    main()
