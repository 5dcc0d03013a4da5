"""Values on a tier: more data than memory, as a client of redis-py sees it.

    main.py load PORT KEYS      stores values of 1 KB under numbered keys
    main.py read PORT KEYS      reads every value and compares it
    main.py save PORT KEYS      takes a checkpoint
    main.py change PORT KEYS    appends to, renames, copies and deletes some, and puts them back as they were

A value follows from its number, so nothing has to be noted.
"""

import sys
import time

import redis

VALUE_BYTES = 1024
BATCH = 256


def key(number):
    return b"key:%012d" % number


def value(number):
    text = b"%016d" % (number * 2654435761 % 10**16)
    return (text * (VALUE_BYTES // len(text) + 1))[:VALUE_BYTES]


def batches(count):
    for first in range(0, count, BATCH):
        yield range(first, min(first + BATCH, count))


def load(client, count):
    refused = 0
    for batch in batches(count):
        pipe = client.pipeline(transaction=False)
        for number in batch:
            pipe.set(key(number), value(number))
        refused += sum(reply is not True for reply in pipe.execute(raise_on_error=False))
    return refused


def read(client, count):
    wrong = 0
    for batch in batches(count):
        pipe = client.pipeline(transaction=False)
        for number in batch:
            pipe.get(key(number))
        got = pipe.execute(raise_on_error=False)
        wrong += sum(found != value(number) for number, found in zip(batch, got))
    return wrong


def change(client, count):
    """What commands do with a value that is away, one command after the other."""
    wrong = 0
    for number in range(0, count, max(count // 50, 1)):
        name, expected = key(number), value(number)
        other = name + b":other"
        steps = [
            client.strlen(name) == len(expected),
            client.getrange(name, 5, 9) == expected[5:10],
            client.type(name) == b"string",
            client.object("encoding", name) == b"raw",
            client.memory_usage(name) > 0,
            client.copy(name, other) is True,
            client.append(other, b"more") == len(expected) + 4,
            client.get(other) == expected + b"more",
            client.delete(other) == 1,
            client.rename(name, other) is True,
            client.get(other) == expected,
            client.rename(other, name) is True,
            client.expire(name, 10_000) is True,
            client.persist(name) is True,
            client.get(name) == expected,
        ]
        wrong += steps.count(False)
    return wrong


def save(client, _count):
    return 0 if client.save() else 1


def resident_bytes(client):
    pid = client.info("server")["process_id"]
    lines = open(f"/proc/{pid}/status", encoding="ascii").read().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith("kB")}
    if client.info("tier")["tier_medium"] != "file":
        # Mapped segments count as resident, and the greatest size has no parts.
        return sizes["RssAnon"], sizes["RssAnon"]
    return sizes["VmRSS"], sizes["VmHWM"]


def main():
    action, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    client = redis.Redis(port=port, socket_timeout=600)
    begin = time.monotonic()
    wrong = {"load": load, "read": read, "save": save, "change": change}[action](client, count)
    seconds = time.monotonic() - begin
    now, most = resident_bytes(client)
    print("# " + ", ".join(f"{name[5:]} {figure}" for name, figure in client.info("tier").items()))
    print(f"# {action}: {count} keys in {seconds:.1f} s, resident {now >> 20} MB, at most {most >> 20} MB")
    name = f"{action} {count} keys"
    print(f"ok - {name}" if wrong == 0 else f"not ok - {name}: {wrong} answers are errors or differ")
    keys = client.dbsize()
    print("ok - no key is evicted" if keys == count else f"not ok - no key is evicted: {keys} of {count} are left")
    bound = int(1.15 * int(client.config_get("maxmemory")["maxmemory"])) + (64 << 20)
    name = f"{action}: resident memory within the bound"
    print(f"ok - {name}" if most <= bound else f"not ok - {name}: {most} bytes of {bound} # MEASURED")


if __name__ == "__main__":
    main()
