"""Many changes a second: prepared packets of commands of all types, sent at a rate until the program is killed. A
program of its own, so that it does not share an interpreter with the test that starts it.

`flood.py PORT COMMANDS_A_SECOND`
"""

import random
import socket
import sys
import threading
import time

COMMANDS = 400
PACKETS = 40


def request(*words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def some(draw):
    key, number = f"load:flood:{draw.randrange(2000)}", draw.randrange(1000)
    return draw.choice([
        request("SET", f"{key}:s", "v" * draw.randrange(100)),
        request("SET", f"{key}:t", number, "PX", draw.randrange(50, 5000)),
        request("DEL", f"{key}:s"),
        request("INCRBY", f"{key}:n", number),
        request("HSET", f"{key}:h", f"f{number % 50}", number),
        request("HEXPIRE", f"{key}:h", draw.randrange(1, 50), "FIELDS", 1, f"f{number % 50}"),
        request("ZADD", f"{key}:z", number, f"m{number % 100}"),
        request("SADD", f"{key}:e", number % 100),
        request("SPOP", f"{key}:e"),
        request("LPUSH", f"{key}:l", number) + request("LTRIM", f"{key}:l", 0, 30),
        request("XADD", "load:flood:x", "MAXLEN", "~", 500, "*", "f", number),
        request("PFADD", f"{key}:p", number),
        request("MULTI") + request("INCR", f"{key}:n") + request("RPUSH", f"{key}:l", number) + request("EXEC"),
        request("EVAL", "return redis.call('INCRBY', KEYS[1], ARGV[1])", 1, f"{key}:n", number),
    ])


def drain(connection):
    while connection.recv(1 << 16):
        pass


def main():
    port, rate = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random("flood")
    packets = [b"".join(some(draw) for _ in range(COMMANDS)) for _ in range(PACKETS)]
    connection = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    due = time.monotonic()
    while True:
        connection.sendall(draw.choice(packets))
        # What a busy machine has missed is made up for, up to a second.
        due = max(due + COMMANDS / rate, time.monotonic() - 1)
        time.sleep(max(0, due - time.monotonic()))


if __name__ == "__main__":
    main()
