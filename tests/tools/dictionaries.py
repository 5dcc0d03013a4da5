"""The tools on data whose strings are compressed with dictionaries: these go along, and are missed where they are
gone."""

import shutil
import time

from directory import Client, Server, digest

OPTIONS = ("--compression", "zstd", "--compression-when", "write", "--appendfsync", "always")
DOCUMENTS = 4000


def document(number):
    return (
        f'{{"customer-name":"customer {number * 7919 % 100_003}","delivery-street":"street {number * 31 % 997}",'
        f'"last-modified-at":{1_700_000_000 + number * 104_729 % 1_000_000},'
        f'"total-amount":{number * 15_485_863 % 32_452_843}}}'
    )


def figure(client, name):
    """A figure of INFO compression."""
    line, = (line for line in client.call("INFO", "compression").splitlines() if line.startswith(f"{name}:"))
    return int(line.split(":")[1])


def write(client, first):
    for start in range(first, first + DOCUMENTS, 500):
        client.pipeline([("SET", f"document:{n}", document(n)) for n in range(start, start + 500)])


def fill(client):
    """Writes documents until a dictionary is in use, then more of them, a part before a checkpoint and a part after
    it."""
    deadline = time.monotonic() + 60
    while figure(client, "compression_dictionaries_in_use") == 0:
        assert time.monotonic() < deadline, "no dictionary was trained"
        write(client, 0)
    write(client, DOCUMENTS)
    client.call("SAVE")
    write(client, 2 * DOCUMENTS)
    client.call("SET", "plain", "without a dictionary")
    assert figure(client, "compression_values_with_dictionary") >= 2 * DOCUMENTS


def read_back(client, before):
    """Fails unless the server has what was there, read by dictionaries."""
    assert digest(client) == before, "the data differ"
    assert figure(client, "compression_values_with_dictionary") >= 2 * DOCUMENTS
    assert client.call("GET", "document:5000") == document(5000)


def run(t):
    with t.serve("dictionaries", *OPTIONS) as server, Client(server.port) as client:
        fill(client)
        before = digest(client)

        def a_backup_has_them():
            t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", t.scratch / "dictionaries-backup")
            t.run("check", t.scratch / "dictionaries-backup")
            with t.serve("dictionaries-backup") as copy, Client(copy.port) as other:
                read_back(other, before)

        t.check("backup takes dictionaries along", a_backup_has_them)
        server.shut_down()
    data = t.scratch / "dictionaries"

    def a_restore_has_them():
        t.run("restore", "--from", data, "--time=-0s", "--into", t.scratch / "dictionaries-restored")
        t.run("check", t.scratch / "dictionaries-restored")
        with t.serve("dictionaries-restored") as copy, Client(copy.port) as other:
            read_back(other, before)

    def an_export_needs_none():
        t.run("export", "--dir", data, t.scratch / "dictionaries.rdb")
        t.run("import", t.scratch / "dictionaries.rdb", "--dir", t.scratch / "dictionaries-imported")
        assert not list((t.scratch / "dictionaries-imported").glob("dict-*"))
        with t.serve("dictionaries-imported") as copy, Client(copy.port) as other:
            assert digest(other) == before, "the data differ"

    def inspect_reads_values():
        snapshot = max(data.glob("prdb-*"), key=lambda path: path.stat().st_size)
        assert "delivery-street" in t.run("inspect", snapshot), "the values are not shown"

    def a_damaged_one_is_named():
        for damage in ("flipped", "gone"):
            damaged = t.scratch / f"dictionaries-{damage}"
            shutil.copytree(data, damaged)
            file = max(damaged.glob("dict-*"), key=lambda path: path.stat().st_size)
            contents = bytearray(file.read_bytes())
            contents[len(contents) // 2] ^= 1
            file.unlink() if damage == "gone" else file.write_bytes(contents)
            said = t.run("check", damaged, status=1)
            assert "DAMAGED" in said and file.name in said, said
            try:
                Server(t.onggi, damaged).kill()
                raise RuntimeError("a server starts without a dictionary that its strings need")
            except AssertionError as refusal:
                assert "does not start" in str(refusal), refusal
            assert file.name in (t.scratch / f"{damaged.name}.output").read_text(), "the refusal does not name it"

    t.check("restore takes dictionaries along", a_restore_has_them)
    t.check("export and import of strings with dictionaries", an_export_needs_none)
    t.check("inspect reads values by the dictionaries beside", inspect_reads_values)
    t.check("a damaged or missing dictionary is named by check, and a start is refused", a_damaged_one_is_named)
