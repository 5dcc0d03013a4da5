"""A server with values on a tier: backup, check, inspect, export, and damage that costs one key."""

from directory import Client, digest

KEYS = 6000
OPTIONS = ("--maxmemory", "12mb", "--compression", "off", "--workers", "1")


def value(number):
    return f"{number * 7919:012d}" * 300


def run(t):
    tier, copy = t.scratch / "values", t.scratch / "tier-copy"
    with t.serve("tiered", "--tier-dir", tier, *OPTIONS) as server, Client(server.port) as client:
        for start in range(0, KEYS, 100):
            client.pipeline([("SET", f"key:{n}", value(n)) for n in range(start, start + 100)])
        client.call("SAVE")

        def backup():
            before = digest(client)
            said = t.run("backup", "--from", f"127.0.0.1:{server.port}", "--into", copy)
            assert f"--tier-dir {copy}/tier" in said, said
            said = t.run("check", copy)
            assert "DAMAGED" not in said and "values of checkpoints, whole" in said, said
            with t.serve("tier-copy", "--tier-dir", copy / "tier", *OPTIONS) as other, Client(other.port) as reader:
                assert digest(reader) == before, "the copy differs"

        t.check("backup of a server with values on a tier", backup)

    def damaged():
        segment = sorted((copy / "tier").glob("seg-*"))[0]
        shown = t.run("inspect", segment)
        line = next(line for line in shown.splitlines() if line.startswith("  string at offset"))
        offset, key = int(line.split()[3].rstrip(",")), line.split('"')[1]
        # The copy's files are those of the source.
        whole = segment.read_bytes()
        segment.unlink()
        segment.write_bytes(whole[:offset + 100] + bytes([whole[offset + 100] ^ 1]) + whole[offset + 101:])
        said = t.run("check", copy, status=1)
        assert f"1 value cannot be read, the first at offset {offset}" in said, said
        assert "are no record" in t.run("inspect", segment, status=1)
        with t.serve("tier-copy", "--tier-dir", copy / "tier", *OPTIONS) as other, Client(other.port) as client:
            for n in range(KEYS):
                name = f"key:{n}"
                [reply] = client.pipeline_of_any([("GET", name)])
                if name == key:
                    assert str(reply).startswith("IOERR") and f"offset {offset}" in str(reply), reply
                else:
                    assert reply == value(n), f"{name}: {reply[:80]}"
            client.call("DEL", key)
            assert client.call("DBSIZE") == KEYS - 1

    def exported():
        t.run("export", "--dir", t.scratch / "tiered", t.scratch / "tiered.rdb")
        # RDB files compress such values.
        assert (t.scratch / "tiered.rdb").stat().st_size > 40 * KEYS

    t.check("damage on a tier costs one key, whose reads name segment and offset", damaged)
    t.check("export of a data directory with values on a tier", exported)
