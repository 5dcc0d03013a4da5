"""A backup of a server that is written to meanwhile: it is a state that was, and the server does not notice."""

import threading

from directory import Client, digest, load

KEYS = 20_000


class Writer(threading.Thread):
    """Counts upwards, one step a transaction: each number as a key of its own, and the last in `count`."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.count, self.problem = port, 0, None
        self.stopped = threading.Event()
        self.start()

    def run(self):
        try:
            with Client(self.port) as client:
                while not self.stopped.is_set():
                    number = self.count + 1
                    step = [("MULTI",), ("SET", f"number:{number}", number), ("RPUSH", "numbers", number),
                            ("SET", "count", number), ("EXEC",)]
                    client.pipeline(step)
                    self.count = number
        except Exception as problem:
            self.problem = problem

    def stop(self):
        """Ends it; raises what ended it before."""
        self.stopped.set()
        self.join()
        if self.problem:
            raise self.problem


def whole(client, low, high):
    """Fails unless the server has the numbers up to one between the bounds, all of them and no other."""
    count = int(client.call("GET", "count"))
    if not low <= count <= high:
        raise AssertionError(f"the backup ends with {count}; it was made between {low} and {high}")
    numbers = [int(number) for number in client.call("LRANGE", "numbers", 0, -1)]
    if numbers != list(range(1, count + 1)):
        raise AssertionError(f"the list does not have the numbers up to {count}")
    keys = client.call("EXISTS", *(f"number:{n}" for n in range(1, count + 1)))
    if keys != count or client.call("EXISTS", f"number:{count + 1}"):
        raise AssertionError(f"{keys} of {count} numbers have keys, or one more has")


def run(t):
    with t.serve("source", "--appendfsync", "always") as server, Client(server.port) as client:
        load(client, KEYS)
        before = digest(client)

        def of_a_server_that_has_saved_nothing():
            t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", t.scratch / "from-log")
            with t.serve("from-log") as copy, Client(copy.port) as other:
                assert digest(other) == before, "the copy differs"

        def under_load():
            client.call("BGSAVE")
            writer = Writer(server.port)
            while writer.count < 200 and not writer.problem:
                writer.stopped.wait(0.01)
            low = writer.count
            t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", t.scratch / "copy")
            # A step may be in the log and not yet known to the writer.
            high = writer.count + 1
            writer.stop()
            said = t.run("check", t.scratch / "copy")
            assert "DAMAGED" not in said, said
            with t.serve("copy") as copy, Client(copy.port) as other:
                whole(other, low, high)
                assert other.call("DBSIZE") >= KEYS
                # What is written to the copy is nothing to its source.
                other.call("FLUSHALL")
                other.call("BGREWRITEAOF")
            whole(client, writer.count, writer.count)

        def into_a_full_directory():
            said = t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", t.scratch / "copy", status=2)
            assert "empty" in said, said

        t.check("backup of a server that has only its log", of_a_server_that_has_saved_nothing)
        t.check("backup while the server is written to: a state between its begin and its end", under_load)
        t.check("backup into a directory that is not empty is refused", into_a_full_directory)
        t.check("the source is whole when it has ended", lambda: (server.shut_down(), t.run("check", server.data)))
