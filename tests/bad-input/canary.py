"""A well-behaved client in a process of its own, which notes how long it waits while others misbehave."""

import multiprocessing
import time

from resp import Connection, Error, request

PAUSE_SECONDS = 0.002


class Canary:
    """Calls PING, GET and SET all the time from `with` to its end; then `waits` (sorted, in seconds) and `errors`.

    With `full_is_fine`, a write that is refused because memory is used up is no error."""

    def __init__(self, server, full_is_fine=False):
        self.server, self.full_is_fine = server, full_is_fine
        self.waits, self.errors = [], []

    def __enter__(self):
        self.ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_sing, args=(self.server, self.full_is_fine, theirs), daemon=True)
        self.process.start()
        theirs.close()
        started = self.ours.recv()
        if started != "started":
            raise AssertionError(f"the canary cannot start: {started}")
        return self

    def __exit__(self, *_):
        self.ours.send("stop")
        self.waits, self.errors = self.ours.recv()
        self.waits.sort()
        self.process.join()

    def worst_ms(self):
        """The longest wait for a reply."""
        return self.waits[-1] * 1000 if self.waits else float("inf")

    def p99_ms(self):
        """The wait that one call in a hundred exceeds."""
        return self.waits[len(self.waits) * 99 // 100] * 1000 if self.waits else float("inf")


def _sing(server, full_is_fine, pipe):
    waits, errors = [], []
    try:
        connection = Connection(server)
        pipe.send("started")
    except Exception as problem:
        pipe.send(repr(problem))
        return
    value = b"canary" * 10
    # Keys over many slots, so that every shard is asked now and then.
    keys = [f"canary:{number}" for number in range(64)]
    try:
        for number in range(10**9):
            if pipe.poll():
                break
            key = keys[number % len(keys)]
            for words, wanted in (
                (("PING",), (b"PONG",)),
                (("SET", key, value), (b"OK",)),
                (("GET", key), (value, None)),
            ):
                data = request(*words)
                start = time.perf_counter()
                connection.send(data)
                try:
                    reply = connection.reply()
                    if reply not in wanted:
                        errors.append(f"{words[0]}: {reply!r}")
                except Error as error:
                    if not (full_is_fine and str(error).startswith("OOM")):
                        errors.append(f"{words[0]}: {error}")
                waits.append(time.perf_counter() - start)
            time.sleep(PAUSE_SECONDS)
    except Exception as problem:
        errors.append(repr(problem))
        waits.append(time.perf_counter() - start)
    pipe.send((waits, errors[:5]))
