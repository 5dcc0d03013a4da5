"""The edges of every numeric argument, and counts without sense."""

from resp import Connection, Error, request
from suite import equal, expect

EDGES = [0, 1, -1, 2, -2, 127, 255, 65535, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1, (1 << 32) - 1,
         1 << 32, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), -(1 << 63) + 1, 1 << 63, (1 << 64) - 1, 1 << 64, 10**30,
         -(10**30), "", " 1", "1 ", "+1", "01", "1.0", "1e3", "nan", "inf", "-inf", "-0", "0x10", "1" * 400,
         "9" * 20, b"\x001", 8 * (1 << 20), 8 * (1 << 20) - 1, (1 << 20), (1 << 20) - 1]

# `#` stands for a number, `@` for what DUMP gave. A command that has a numeric argument and is not here fails the first
# check below.
CALLS = [
    "ACL GENPASS #", "ACL LOG #", "ACL SETUSER edge #", "ACL DRYRUN default SELECT #", "APPEND k x",
    "BITCOUNT k # # BYTE", "BITCOUNT k # # BIT", "BITFIELD k GET u8 #", "BITFIELD k SET i64 # #",
    "BITFIELD k INCRBY u63 # #", "BITFIELD k OVERFLOW SAT INCRBY i8 # #", "BITFIELD_RO k GET i64 #", "BITPOS k 1 # #",
    "BITPOS k # 0 -1", "BITPOS k 0 # # BIT", "CLIENT KILL ID #", "CLIENT KILL MAXAGE #", "CLIENT LIST ID #",
    "CLIENT PAUSE #", "CLIENT UNBLOCK #", "COMMANDLOG GET # slow", "COPY k k2 DB #", "EVAL x #", "EVAL_RO x #",
    "EVALSHA x #", "EVALSHA_RO x #", "FCALL x #", "FCALL_RO x #", "DECRBY n #", "EXPIRE k #", "EXPIREAT k #",
    "GETBIT k #", "GETEX k EX #", "GETEX k EXAT #", "GETEX k PX #", "GETEX k PXAT #", "GETRANGE k # #", "HELLO #",
    "INCRBY n #", "INCRBYFLOAT f #", "LATENCY HISTOGRAM get", "LOLWUT VERSION #", "LCS k k2 IDX MINMATCHLEN #",
    "MEMORY USAGE k SAMPLES #", "MOVE k #", "MSETEX # k v EX 10", "MSETEX 1 k v PX #", "OBJECT FREQ k", "PEXPIRE k #",
    "PEXPIREAT k #", "PSETEX k # v", "SCAN #", "SCAN 0 COUNT #", "SELECT #", "SET k v EX #", "SET k v PX #",
    "SET k v EXAT #", "SET k v PXAT #", "SETBIT k # 1", "SETBIT k 1 #", "SETEX k # v", "SETRANGE k # v",
    "SLOWLOG GET #", "SUBSTR k # #", "SWAPDB # #", "WAIT # #", "WAITAOF # # #", "BACKUP HOLD #", "BGSAVE RDB VERSION #",
    "CLIENT TRACKING OFF REDIRECT #", "HOTKEYS COUNT #", "MEMORY EXPLAIN DEPTH #", "SORT k LIMIT # #",
    "SORT_RO k LIMIT # #", "DELIFEQ k #", "CONFIG SET maxmemory-samples #", "CONFIG SET slowlog-max-len #",
    "CONFIG SET hz #", "CONFIG SET acllog-max-len #", "RANDOMKEY", "REPLICAOF 127.0.0.1 #", "SLAVEOF 127.0.0.1 #",
    "MIGRATE 127.0.0.1 # k # 50 COPY", "MIGRATE 127.0.0.1 1 k 0 #", "MIGRATE 127.0.0.1 1 none # #",
    "RESTORE k # @ REPLACE", "RESTORE k 0 @ REPLACE IDLETIME #", "RESTORE k # @ REPLACE ABSTTL FREQ #",
]

# Of the edges that are a time to wait, those that a test has.
WAIT_MS_MAX = 255

NUMERIC = ("integer", "double", "unix-time")

# Families whose arguments the differential test bends.
BENT_ELSEWHERE = {"hash", "list", "set", "sorted-set", "stream", "geo"}


def edges(suite):
    """Every numeric argument with every edge: an answer, and the next command works."""
    server = suite.server
    with Connection(server) as connection:
        connection.call("SET", "n", 5)
        payload = connection.call("DUMP", "n")
        for call in CALLS:
            for edge in EDGES:
                if call == "CLIENT PAUSE #" and isinstance(edge, int) and edge > 0:
                    # A long pause would delay every client, as it should.
                    continue
                if call.startswith("WAIT") and isinstance(edge, int) and edge > WAIT_MS_MAX:
                    # Waits for missing replicas, as it should.
                    continue
                words = [{"#": edge, "@": payload}.get(word, word) for word in call.split(" ")]
                prepare = request("SET", "k", "value") + request("SET", "k2", "value2") + request("SET", "n", 5)
                connection.send(prepare + request(*words) + request("ECHO", "after"))
                answers = [answer(connection) for _ in range(5)]
                expect(answers[4] == b"after", f"{words}: {answers!r}")
                if call.startswith(("CLIENT PAUSE", "SELECT", "HELLO", "SWAPDB")):
                    connection.send(request("CLIENT", "UNPAUSE") + request("SELECT", 0) + request("HELLO", 2))
                    [answer(connection) for _ in range(3)]
                if call.startswith(("REPLICAOF", "SLAVEOF")):
                    # A valid port makes the server a replica, which refuses writes.
                    connection.call("REPLICAOF", "NO", "ONE")
        connection.call("ACL", "DELUSER", "edge")
        for setting, value in (("slowlog-max-len", 128), ("acllog-max-len", 128)):
            connection.call("CONFIG", "SET", setting, value)
        connection.call("FLUSHALL")


def answer(connection):
    """A reply of either protocol; an error as what it is."""
    try:
        return connection.reply()
    except Error as error:
        return error


def every_argument_is_tried(suite):
    """COMMAND DOCS names no numeric argument of a command that CALLS forgets."""
    tried = {" ".join(call.lower().split(" ")[:words]) for call in CALLS for words in (1, 2) if "#" in call}
    with Connection(suite.server) as connection:
        documents = connection.call("COMMAND", "DOCS")
    missing = []
    for name, document in zip(documents[::2], documents[1::2]):
        if dict(zip(document[::2], document[1::2]))[b"group"].decode() in BENT_ELSEWHERE:
            continue
        visit(name.decode(), dict(zip(document[::2], document[1::2])), missing)
    wrong = sorted(name for name in missing if name.replace("|", " ") not in tried)
    # These end or hold up the server or need one that is not there, and are tried elsewhere.
    elsewhere = {"debug", "failover", "shutdown"}
    equal([name for name in wrong if name.split("|")[0] not in elsewhere], [])


def visit(name, document, found):
    """Collects commands and subcommands with a numeric argument."""
    def numeric(arguments):
        for argument in arguments or []:
            fields = dict(zip(argument[::2], argument[1::2]))
            if fields.get(b"type", b"").decode() in NUMERIC or numeric(fields.get(b"arguments")):
                return True
        return False

    if numeric(document.get(b"arguments")):
        found.append(name)
    subcommands = document.get(b"subcommands") or []
    for sub, below in zip(subcommands[::2], subcommands[1::2]):
        visit(sub.decode(), dict(zip(below[::2], below[1::2])), found)


def counts(suite):
    """Random counts and cursors over many keys."""
    server, rng = suite.server, suite.random("counts")
    with Connection(server) as connection:
        for start in range(0, 50_000, 1000):
            connection.send(b"".join(request("SET", f"many:{number}", number) for number in range(start, start + 1000)))
            for _ in range(1000):
                connection.reply()
        for _ in range(80 * suite.times):
            numbers = [rng.randrange(1, 100), rng.randrange(1 << 63), rng.randrange(-(1 << 63), 0)]
            count = rng.choice([*numbers, *EDGES[:20]])
            words = rng.choice([
                ["SCAN", rng.choice([0, rng.randrange(1 << 64)]), "COUNT", count], ["RANDOMKEY"],
                ["SCAN", 0, "MATCH", "*" * rng.randrange(1, 40) + "a*b?[^x]", "COUNT", count],
                ["GETRANGE", "many:1", count, rng.randrange(1 << 63)],
                ["SLOWLOG", "GET", count], ["KEYS", "many:1" + "?" * rng.randrange(5) + "[0-4]*"],
            ])
            connection.send(request(*words) + request("ECHO", "after"))
            answers = [answer(connection) for _ in range(2)]
            expect(answers[1] == b"after", f"{words}: {str(answers)[:300]}")
        connection.call("FLUSHALL")


def run(suite):
    suite.check("every numeric argument is tried", lambda: every_argument_is_tried(suite))
    # PAUSE with a large number and SWAPDB hold up or hide what the canary writes.
    suite.check("number edges", lambda: edges(suite))
    suite.attack("random counts", lambda: counts(suite))
