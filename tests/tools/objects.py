"""`--json` of the tools: every line is an object of the form that docs/tools.md describes, and errors are too."""

import json
import re
import subprocess

from directory import SECONDS_MAX, Client
from seeds import ROOT

HEADING = "## Output for programs"


def documented():
    """The fields of each result, by the tool and its subcommand, as the table in docs/tools.md lists them."""
    text = (ROOT / "docs" / "tools.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z -]+)` \| (.+?) \|$", text, re.MULTILINE)
    if len(rows) < 11:
        raise AssertionError(f"docs/tools.md lists the results of {[name for name, _ in rows]}")
    return {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows}


def objects(tools, *words, status=0):
    """The lines of a tool; fails unless they have the form, and only standard output has anything."""
    done = subprocess.run([tools.onggi, *map(str, words), "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=SECONDS_MAX)
    if done.returncode != status or done.stderr:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr[-200:]!r}, {done.stdout[-300:]!r}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1]
    wanted = "error" if "error" in last else "result"
    if (last["event"], last["tool"], last["exit"]) != (wanted, words[0], status):
        raise AssertionError(f"{words}: the last line is {last}")
    for line in lines[:-1]:
        if line["event"] not in ("message", "contents", "progress") or line["tool"] != words[0]:
            raise AssertionError(f"{words}: a line before the last is {line}")
        if line["event"] == "message" and not (line["text"] and line["level"]):
            raise AssertionError(f"{words}: a message is {line}")
    return lines


def result(tools, fields, *words, status=0, name=None):
    """The last line; fails unless it has the fields that are documented."""
    last = objects(tools, *words, status=status)[-1]
    found = set(last) - {"event", "tool", "exit"}
    wanted = fields[name or words[0]]
    if found != wanted:
        raise AssertionError(f"{words}: fields {sorted(found ^ wanted)} are in the table or in the result alone")
    return last


def error(tools, *words, status=2, says):
    last = objects(tools, *words, status=status)[-1]
    if set(last) != {"event", "tool", "exit", "error", "causes"} or says not in last["error"]:
        raise AssertionError(f"{words}: {last} has no {says!r}")


def tools_of_files(tools, fields):
    scratch = tools.scratch
    with tools.serve("objects", "--appendonly", "yes") as server, Client(server.port) as client:
        client.pipeline([("SET", f"key:{n}", n) for n in range(100)])
        client.call("SAVE")
        client.call("FLUSHALL")
        client.call("WAITAOF", 1, 0, 5000)
        address, copy, undone = f"127.0.0.1:{server.port}", scratch / "objects-copy", scratch / "objects-undone"
        done = result(tools, fields, "backup", "--from", address, "--into", copy)
        assert (done["checkpoint"], done["dir"]) == (1, str(copy)), done
        listed = result(tools, fields, "history", address)
        assert listed["flushes"][-1]["databases"] == 1 and listed["checkpoints"][-1]["keys"] == 100, listed
        done = result(tools, fields, "restore", "--from", address, "--time", "before-last-flush", "--into", undone)
        assert done["lsn"] == listed["flushes"][-1]["lsn_before"], done
        error(tools, "restore", "--from", address, "--time", "1", "--into", undone, says="not empty")
        error(tools, "check", server.data, says="in use by process")
        rows = result(tools, fields, "bench", "run", "--addr", address, "--test", "set", "--seconds", "0.2", "--keys",
                      "100", name="bench run")["rows"]
        assert rows[0]["operations"] > 0 and rows[0]["latency"]["p99_us"] > 0, rows
        filled = result(tools, fields, "bench", "load", "--addr", address, "--keys", "100", name="bench load")
        assert filled["rows"][0]["operations"] == 100 and filled["resident_bytes"]["after"] > 0, filled
        ycsb = result(tools, fields, "bench", "ycsb", "--server", "onggi", "--workload", "a,e", "--records", "200",
                      "--clients", "2", "--seconds", "0.2", "--rounds", "1", "--out", scratch / "objects-ycsb",
                      name="bench ycsb")
        cells = [row["cells"][0] for section in ycsb["results"]["sections"][:2] for row in section["rows"]]
        assert len(cells) == 4 and all(cell["windows"][0]["operations"] > 0 for cell in cells), cells
        assert all(cell["windows"][0]["errors"] == cell["windows"][0]["misses"] == 0 for cell in cells), cells
        server.shut_down()
    assert result(tools, fields, "check", undone)["verdict"] == "good"
    assert result(tools, fields, "repair", undone, name="repair")["is_damaged"] is False
    dump, imported = scratch / "objects.rdb", scratch / "objects-imported"
    assert result(tools, fields, "export", "--dir", undone, dump)["keys"] == 100
    contents, last = objects(tools, "import", dump, "--dry-run")
    assert contents["event"] == "contents" and contents["databases"][0]["types"]["string"]["keys"] == 100, contents
    assert last["is_imported"] is False and last["cannot_be_imported"] == [], last
    assert result(tools, fields, "import", dump, "--dir", imported)["keys"] == 100
    damaged = dump.with_name("objects-damaged.rdb")
    damaged.write_bytes(dump.read_bytes()[:-20])
    error(tools, "import", damaged, "--dry-run", status=1, says="damaged.rdb")


def damage(tools, fields):
    with tools.serve("objects-cut", "--appendonly", "yes") as server, Client(server.port) as client:
        for value in range(2):
            client.call("SET", "key", value)
            client.call("SAVE")
        server.shut_down()
    newest = sorted(server.data.glob("prdb-*-0*"), key=lambda path: (path.name[5:13], path.stat().st_size))[-1]
    newest.write_bytes(newest.read_bytes()[:-40] + bytes(40))
    lines = objects(tools, "check", server.data, status=1)
    levels = {line["level"] for line in lines[:-1]}
    assert lines[-1]["verdict"] == "damaged" and {"good", "damaged"} <= levels, lines
    asked = objects(tools, "repair", server.data, status=1)[-1]
    assert asked["is_damaged"] and not asked["is_repaired"] and asked["damage"] and asked["lost"] == [], asked
    done = objects(tools, "repair", server.data, "--yes")[-1]
    assert done["is_repaired"] and "damaged-" in done["damaged_files"], done
    found = set(done) - {"event", "tool", "exit"}
    assert found == fields["repair of damage"], f"fields {sorted(found ^ fields['repair of damage'])}"
    assert result(tools, fields, "check", server.data)["verdict"] == "good"


def configurations(tools, fields):
    scratch = tools.scratch
    (scratch / "good.conf").write_text("port 7000\nactivedefrag no\n")
    (scratch / "bad.conf").write_text("maxmemroy 1gb\nport x\n")
    (scratch / "arcus.conf").write_text("cache_size=1048576\n")
    check = lambda name, status=0: result(tools, fields, "config", "check", scratch / name, status=status,
                                          name="config check")
    wanted = {"event": "result", "tool": "config", "exit": 0, "is_valid": True, "errors": [], "directives": None}
    assert check("good.conf") == wanted, check("good.conf")
    levels = {line["level"] for line in objects(tools, "config", "check", scratch / "good.conf")[:-1]}
    assert levels <= {"warning"}, levels
    assert ["maxmemory", "1048576"] in check("arcus.conf")["directives"]
    found = check("bad.conf", status=1)
    assert not found["is_valid"] and len(found["errors"]) == 2, found
    assert "did you mean 'maxmemory'" in found["errors"][0], found
    assert check("missing.conf", status=1)["errors"], "a file that is missing"
    # The option may stand before the file as well.
    done = subprocess.run([tools.onggi, "config", "check", "--json", scratch / "bad.conf"], capture_output=True,
                          text=True, timeout=SECONDS_MAX)
    assert json.loads(done.stdout) == found and (done.returncode, done.stderr) == (1, ""), done
    error(tools, "config", "check", says="FILE")


def refusals(tools, fields):
    listed = result(tools, fields, "bench", "list", name="bench list")
    assert "get" in [test["name"] for test in listed["tests"]], listed
    missing = tools.scratch / "objects-missing"
    error(tools, "check", says="<DIR>")
    error(tools, "check", missing, says="objects-missing")
    error(tools, "repair", missing, says="No such file")
    error(tools, "export", "--dir", missing, missing / "x.rdb", says="objects-missing")
    error(tools, "bench", "run", "--addr", "127.0.0.1:1", "-t", "get", says="cannot connect")
    error(tools, "bench", "echo", "--port", "1", says="--json")
    error(tools, "history", "127.0.0.1:1", says="cannot connect")
    error(tools, "inspect", missing, says="objects-missing")
    error(tools, "top", "--addr", "127.0.0.1:1", says="cannot connect")
    error(tools, "import", "redis://127.0.0.1:1", "--dir", missing, says="127.0.0.1:1")
    # People read what has no --json, on standard error.
    done = subprocess.run([tools.onggi, "check"], capture_output=True, text=True, timeout=SECONDS_MAX)
    assert (done.returncode, done.stdout) == (2, "") and "Usage: onggi check" in done.stderr, done.stderr


def run(tools):
    fields = documented()
    tools.check("--json: results have the fields that docs/tools.md lists", lambda: tools_of_files(tools, fields))
    tools.check("--json: damage is a verdict and a plan", lambda: damage(tools, fields))
    tools.check("--json: configurations are checked", lambda: configurations(tools, fields))
    tools.check("--json: errors are objects too", lambda: refusals(tools, fields))
