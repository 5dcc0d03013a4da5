"""A database on disk that is larger than memory, as a client of redis-py sees it.

    main.py load PORT MEGABYTES      stores documents of this machine
    main.py read PORT MEGABYTES      compares every document with what is stored

Documents are files under /usr, cut to 8 KiB; they are read again, with a number behind each, where they are too few.
"""

import os
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
    """Keys and values, up to so many bytes of values."""
    total = 0
    for number in range(1_000_000):
        for path, data in files():
            for at in range(0, len(data), DOCUMENT_BYTES):
                value = data[at:at + DOCUMENT_BYTES] + (b"%d" % number if number else b"")
                yield f"doc:{number}:{path}:{at}".encode(), value
                total += len(value)
                if total >= limit:
                    return


def batches(limit):
    batch = []
    for document in documents(limit):
        batch.append(document)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def load(client, batch):
    """Stores documents, and gives how many were refused."""
    pipe = client.pipeline(transaction=False)
    for key, value in batch:
        pipe.set(key, value)
    return sum(reply is not True for reply in pipe.execute(raise_on_error=False))


def read(client, batch):
    """Compares documents, and gives how many differ."""
    pipe = client.pipeline(transaction=False)
    for key, _ in batch:
        pipe.get(key)
    return sum(got != value for (_, value), got in zip(batch, pipe.execute(raise_on_error=False)))


def resident_bytes(client):
    """Resident memory of the server, now and at most."""
    pid = client.info("server")["process_id"]
    lines = open(f"/proc/{pid}/status", encoding="ascii").read().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.startswith("Vm") and "kB" in line}
    return sizes["VmRSS"], sizes["VmHWM"]


def main():
    action, port, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    client = redis.Redis(port=port, socket_timeout=600)
    begin, count, wrong = time.monotonic(), 0, 0
    for batch in batches(megabytes << 20):
        count += len(batch)
        wrong += {"load": load, "read": read}[action](client, batch)
    seconds = time.monotonic() - begin
    now, most = resident_bytes(client)
    bound = int(1.15 * int(client.config_get("maxmemory")["maxmemory"])) + (64 << 20)
    print(
        f"# {action}: {count} documents of {megabytes} MB in {seconds:.1f} s, resident {now >> 20} MB, at most "
        f"{most >> 20} MB"
    )
    name = f"{action} {megabytes} MB"
    print(f"ok - {name}" if wrong == 0 else f"not ok - {name}: {wrong} of {count} documents are refused or differ")
    name = f"{action}: resident memory within the bound"
    print(f"ok - {name}" if most <= bound else f"not ok - {name}: {most} bytes of {bound} # MEASURED")


if __name__ == "__main__":
    main()
