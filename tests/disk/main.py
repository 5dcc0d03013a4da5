"""A database on disk that is larger than memory, as a client of redis-py sees it.

    main.py load PORT MEGABYTES FILE      stores documents of this machine, and notes digests in the file
    main.py read PORT MEGABYTES FILE      reads every document and compares it with its digest
    main.py fill PORT MEGABYTES FILE      stores a hash and a sorted set of this size together
    main.py look PORT MEGABYTES FILE      compares elements of both, copies, and changes some

Documents are files under /usr, cut to 8 KiB; they are read again, with a number after each, where they are too few.
"""

import hashlib
import os
import pickle
import random
import sys
import time

import redis

ROOTS = ["/usr/share", "/usr/include", "/usr/lib/python3"]
DOCUMENT_BYTES = 8 << 10
FILE_BYTES_MAX = 4 << 20
BATCH = 64


def files():
    """Paths and contents, in one order."""
    for root in ROOTS:
        for directory, below, names in os.walk(root):
            below.sort()
            for name in sorted(names):
                path = os.path.join(directory, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                try:
                    with open(path, "rb") as file:
                        yield path, file.read(FILE_BYTES_MAX)
                except OSError:
                    continue


def documents(limit):
    """Keys and values, up to this many bytes of values."""
    total = 0
    for number in range(1_000_000):
        for path, data in files():
            for at in range(0, len(data), DOCUMENT_BYTES):
                value = data[at:at + DOCUMENT_BYTES] + (b"%d" % number if number else b"")
                yield f"doc:{number}:{path}:{at}".encode(), value
                total += len(value)
                if total >= limit:
                    return


def batches(items):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def digest(value):
    return hashlib.blake2b(value, digest_size=16).digest()


def load(client, megabytes, path):
    """Stores documents and notes their digests, since files may change. Gives how many there are and were refused."""
    count, refused, noted = 0, 0, []
    for batch in batches(documents(megabytes << 20)):
        pipe = client.pipeline(transaction=False)
        for key, value in batch:
            pipe.set(key, value)
            noted.append((key, digest(value)))
        count += len(batch)
        refused += sum(reply is not True for reply in pipe.execute(raise_on_error=False))
    with open(path, "wb") as file:
        pickle.dump(noted, file)
    return count, refused


def read(client, _megabytes, path):
    """Compares documents with what was noted, and gives how many there are and differ."""
    with open(path, "rb") as file:
        noted = pickle.load(file)
    wrong = 0
    for batch in batches(noted):
        pipe = client.pipeline(transaction=False)
        for key, _ in batch:
            pipe.get(key)
        got = pipe.execute(raise_on_error=False)
        wrong += sum(not isinstance(value, bytes) or digest(value) != noted for (_, noted), value in zip(batch, got))
    return len(noted), wrong


def field(number):
    return b"field:%d" % number


def value(number):
    return hashlib.blake2b(b"%d" % number, digest_size=64).digest() * 16


def member(number):
    return value(number)[:500] + field(number)


def count_of(megabytes):
    """Fields of the hash; as many members have as many bytes in the two trees of the sorted set."""
    return (megabytes << 20) // 2 // 1040


def fill(client, megabytes, _path):
    count, refused = count_of(megabytes), 0
    for batch in batches(range(count)):
        pipe = client.pipeline(transaction=False)
        for number in batch:
            pipe.hset("hash", field(number), value(number))
            pipe.zadd("zset", {member(number): number})
        refused += sum(reply != 1 for reply in pipe.execute(raise_on_error=False))
    return 2 * count, refused


def look(client, megabytes, _path):
    """Some elements are changed as they were before, so that leaves of both are stored anew. Then all are read."""
    count = count_of(megabytes)
    numbers = random.Random(count).sample(range(count), 300)
    wrong = sum((client.hlen("hash") != count, client.zcard("zset") != count))
    commands = {
        "HGET": (1, lambda number: client.hget("hash", field(number)) == value(number)),
        "ZRANK": (2, lambda number: client.zrank("zset", member(number)) == number),
        "ZRANGE": (2, lambda number: client.zrange("zset", number, number, withscores=True)
                   == [(member(number), number)]),
        "ZRANGEBYSCORE": (2, lambda number: client.zrangebyscore("zset", number, "+inf", start=0, num=1)
                          == [member(number)]),
        "HSET": (1, lambda number: client.hset("hash", field(number), b"changed") == 0),
        "HSET back": (1, lambda number: client.hset("hash", field(number), value(number)) == 0),
        "ZREM": (2, lambda number: client.zrem("zset", member(number)) == 1),
        "ZADD": (2, lambda number: client.zadd("zset", {member(number): number}) == 1),
    }
    for name, (leaves, command) in commands.items():
        before = client.info("disk")["disk_leaves_read"]
        wrong += sum(not command(number) for number in numbers)
        read = client.info("disk")["disk_leaves_read"] - before
        name = f"{name} reads at most {leaves} leaves"
        print(f"ok - {name}" if read <= leaves * len(numbers) else f"not ok - {name}: {read} by {len(numbers)}")
    found = client.hgetall("hash")
    wrong += len(found) != count or any(found[field(number)] != value(number) for number in numbers)
    found = client.zrange("zset", 0, -1)
    wrong += len(found) != count or any(found[number] != member(number) for number in numbers)
    wrong += client.rename("hash", "other") is not True
    wrong += client.hget("other", field(numbers[0])) != value(numbers[0])
    wrong += client.rename("other", "hash") is not True
    return len(commands) * len(numbers) + 6, wrong


def resident_bytes(client):
    """Resident memory of the server, now and at most, without the program's own pages: 20 MB of a development build."""
    pid = client.info("server")["process_id"]
    lines = open(f"/proc/{pid}/status", encoding="ascii").read().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith(" kB")}
    return sizes["VmRSS"] - sizes["RssFile"], sizes["VmHWM"] - sizes["RssFile"]


def main():
    action, port, megabytes, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    client = redis.Redis(port=port, socket_timeout=600)
    begin = time.monotonic()
    count, wrong = {"load": load, "read": read, "fill": fill, "look": look}[action](client, megabytes, path)
    seconds = time.monotonic() - begin
    now, most = resident_bytes(client)
    disk = client.info("disk")
    print("# " + ", ".join(f"{name[5:]} {value}" for name, value in disk.items()))
    bound = int(1.15 * int(client.config_get("maxmemory")["maxmemory"])) + (64 << 20)
    print(
        f"# {action}: {count} items of {megabytes} MB in {seconds:.1f} s, resident {now >> 20} MB, at most "
        f"{most >> 20} MB"
    )
    name = f"{action} {megabytes} MB"
    print(f"ok - {name}" if wrong == 0 else f"not ok - {name}: {wrong} of {count} are refused or differ")
    if action == "load":
        events = {event[0].decode() for event in client.execute_command("LATENCY", "LATEST")}
        print("ok - flushes are events of LATENCY" if "disk-flush" in events else f"not ok - LATENCY has {events}")
    name = f"{action}: resident memory within the bound"
    print(f"ok - {name}" if most <= bound else f"not ok - {name}: {most} bytes of {bound} # MEASURED")


if __name__ == "__main__":
    main()
