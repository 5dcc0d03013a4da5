"""A client with few rights that tries everything, rules of users that are none, and hostile ACL files.

The ACL file is named by the environment, and the server's `aclfile` names it too.
"""

import os

from arguments import CALLS, EDGES
from resp import Connection, Error, request
from suite import MB, equal, expect

GUEST, SECRET = "guest", "guest-password"
OWN, OTHER = "own:k", "kept"
TRIES = 4000
RULES = 3000
FILES = 400
# The server reads no longer ACL file.
FILE_BYTES_MAX = 64 * MB

WORDS = ["on", "off", "nopass", "resetpass", "reset", "resetkeys", "resetchannels", "clearselectors", "allkeys",
         "allchannels", "alldbs", "resetdbs", "allcommands", "nocommands", ">pw", "<pw", "#" + "a" * 64, "!" + "a" * 64,
         "+get", "-get", "+config|get", "-config|get", "+select|0", "+@all", "-@all", "+@read", "-@dangerous", "~*",
         "~a:*", "%R~b", "%W~c", "%RW~d", "&*", "&news.*", "db=0", "db=0,1", "(+get ~x)", "(%R~x +@read)"]


def file():
    return os.environ["ONGGI_TEST_ACL_FILE"]


def restricted(suite):
    """Every call of the test of arguments, of commands that the user may not run too, on keys of others: nothing that
    is not the user's has changed, and nothing that it read was."""
    server, rng = suite.server, suite.random("restricted")
    secret = "a value of others"
    with Connection(server) as control:
        control.call("SET", OTHER, secret)
        control.call("ACL", "SETUSER", GUEST, "reset", "on", f">{SECRET}", "~own:*", "+@all", "-@dangerous", "-@admin",
                     "-@blocking", "-multi", "-auth", "-hello", "-quit", "-reset", "-subscribe", "-client|reply")
        others = [names(control), control.call("ACL", "LIST"), control.call("CONFIG", "GET", "*")]
        denied = ran = 0
        guest = guest_connection(server)
        for _ in range(TRIES * suite.times):
            call = rng.choice(CALLS).split(" ")
            name = {"k": rng.choice([OWN, OTHER]), "k2": rng.choice([OWN, OTHER, "kept2"]), "n": OTHER, "f": OTHER}
            words = [name.get(word, rng.choice(EDGES) if word in "#@" else word) for word in call]
            if waits(words):
                continue
            guest.send(request(*words) + request("ECHO", "after"))
            answers = [said(guest), said(guest)]
            expect(answers[1] == b"after", f"{words}: {answers!r}")
            expect(secret.encode() not in repr(answers[0]).encode(), f"{words} has read the key of another")
            denied += str(answers[0]).startswith("NOPERM")
            ran += not isinstance(answers[0], Error)
        guest.close()
        expect(denied > TRIES // 4 and ran > TRIES // 20, f"{denied} calls were denied and {ran} ran")
        equal(control.call("GET", OTHER), secret.encode())
        now = [names(control), control.call("ACL", "LIST"), control.call("CONFIG", "GET", "*")]
        equal(now, others)
        control.call("FLUSHALL")


def names(control):
    """The names of keys that are neither the user's nor the canary's."""
    return sorted(name for name in control.call("KEYS", "*") if not name.startswith((b"own:", b"canary:")))


def waits(words):
    """Whether the call may wait, or change the database of the connection."""
    return words[0] in ("WAIT", "WAITAOF", "SELECT", "EVAL", "EVAL_RO") or "PAUSE" in words


def guest_connection(server):
    connection = Connection(server, password="")
    equal(connection.call("AUTH", GUEST, SECRET), b"OK")
    return connection


def said(connection):
    """A reply, or the error that it is."""
    try:
        return connection.reply()
    except Error as error:
        return error


def broken_rule(rng):
    """A rule with a fault, or one without."""
    rule = bytearray(rng.choice(WORDS).encode())
    kind = rng.randrange(6)
    if kind == 0:
        rule[rng.randrange(len(rule))] = rng.randrange(256)
    elif kind == 1:
        rule = rule[: rng.randrange(len(rule) + 1)]
    elif kind == 2:
        rule += rng.randbytes(rng.randrange(1, 40))
    elif kind == 3:
        rule = bytearray(b"(" * rng.randrange(1, 50)) + rule + b")" * rng.randrange(3)
    elif kind == 4:
        rule = rule * rng.randrange(1, 2000)
    return bytes(rule)


def rules(suite):
    """Rules with faults: a user changes as a whole or not at all, and what it is can be given again."""
    server, rng = suite.server, suite.random("rules")
    with Connection(server) as control:
        control.call("ACL", "SETUSER", "target", "reset")
        taken = 0
        for number in range(RULES * suite.times):
            words = [broken_rule(rng) for _ in range(rng.randrange(1, 8))]
            before = described(control, "target")
            control.send(request("ACL", "SETUSER", "target", *words))
            answer = said(control)
            after = described(control, "target")
            if isinstance(answer, Error):
                expect(str(answer).startswith("ERR "), f"{words}: {answer}")
                expect(before == after, f"{words} failed, and changed the user")
                continue
            taken += 1
            control.call("ACL", "SETUSER", "twin", "reset", *after.split(b" ")[2:])
            equal(described(control, "twin").split(b" ")[2:], after.split(b" ")[2:])
            if number % 20 == 0:
                control.call("ACL", "SETUSER", "target", "reset")
        expect(taken > RULES // 20, f"only {taken} lists of rules were taken")
        control.call("ACL", "DELUSER", "target", "twin")


def described(control, user):
    """The line of ACL LIST of a user."""
    return next(line for line in control.call("ACL", "LIST") if line.startswith(b"user %b " % user.encode()))


def hostile_file(rng):
    """Lines of users, with faults."""
    lines = []
    for number in range(rng.randrange(1, 30)):
        rules = b" ".join(broken_rule(rng)[:200] if rng.random() < 0.2 else rng.choice(WORDS).encode()
                          for _ in range(rng.randrange(6)))
        lines.append(b"user u%d %b" % (number, rules))
    data = bytearray(b"\n".join(lines))
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(data) + 1)
        data[at:at + rng.randrange(9)] = rng.choice([b"\0", b"\r", b"\n", b"user", b"\xff" * 9, b"(", b"\t", b""])
    return bytes(data)


def write(data):
    """Replaces the file, whatever was there."""
    if os.path.lexists(file()):
        os.remove(file())
    with open(file(), "wb") as target:
        target.write(data)


def files(suite):
    """ACL files of any content: all of it counts or nothing, and a bad one is an error that says where."""
    server, rng = suite.server, suite.random("files")
    with Connection(server) as control:
        good = control.call("ACL", "LIST")
        taken = 0
        for _ in range(FILES * suite.times):
            data = hostile_file(rng) + b"\nuser default on nopass ~* &* +@all\n"
            write(data)
            before = control.call("ACL", "LIST")
            control.send(request("ACL", "LOAD"))
            answer = said(control)
            if isinstance(answer, Error):
                expect(str(answer).startswith("ERR ") and len(str(answer)) < MB, f"{data!r}: {str(answer)[:300]}")
                expect(control.call("ACL", "LIST") == before, f"{data!r} failed, and changed users")
                continue
            taken += 1
            listed = control.call("ACL", "LIST")
            equal(control.call("ACL", "SAVE"), b"OK")
            equal(control.call("ACL", "LOAD"), b"OK")
            equal(control.call("ACL", "LIST"), listed)
        expect(0 < taken < FILES * suite.times, f"{taken} files were taken")
        write(b"\n".join(good) + b"\n")
        equal(control.call("ACL", "LOAD"), b"OK")


def no_files(suite):
    """What is no file, or one without end, is refused at once."""
    server = suite.server
    with Connection(server) as control:
        before = control.call("ACL", "LIST")

        def refused(why):
            text = control.error("ACL", "LOAD")
            expect(text.startswith("ERR ") and why in text, text[:300])
            equal(control.call("ACL", "LIST"), before)

        write(b"")
        os.remove(file())
        refused("No such file")
        os.mkfifo(file())
        refused("regular file")
        os.remove(file())
        os.mkdir(file())
        refused("regular file")
        os.rmdir(file())
        os.symlink("/dev/zero", file())
        refused("regular file")
        write(b"")
        os.truncate(file(), FILE_BYTES_MAX + 1)
        refused("longer than")
        write(b"user x " + b"~" * (8 * MB) + b"\nuser y " + b"(" * MB)
        refused("")
        write(b"\n".join(before) + b"\n")
        equal(control.call("ACL", "LOAD"), b"OK")


def run(suite):
    suite.attack(f"users: {TRIES * suite.times} calls of a user with few rights", lambda: restricted(suite))
    suite.attack(f"users: {RULES * suite.times} lists of rules with faults", lambda: rules(suite))
    suite.attack(f"users: {FILES * suite.times} hostile ACL files", lambda: files(suite))
    suite.attack("users: an ACL file that is none", lambda: no_files(suite))
