"""A data directory of an earlier version, with all that ARCUS' clients store, is opened by this one.

`golden/` is kept for good: never write it again. With ONGGI_WRITE_GOLDEN=1 and no `golden/` a run makes it.
"""

import os
import pathlib
import shutil
import signal

from survives import MADE, READ, save
from wire import Wire

GOLDEN = pathlib.Path(__file__).parent / "golden"
REPLIES = GOLDEN / "replies"
OPTIONS = [("appendonly", "yes"), ("appendfsync", "always"), ("arcus-sticky-limit", "1mb")]

# Before the checkpoint and, after it, in the log: flags, sticky items, each kind of bkey, eflag and overflow action.
FIRST = MADE + (
    b"set plain 0 0 1\r\nx\r\nset flags 4000000000 0 2\r\nab\r\nset sticky 1 -1 3\r\nabc\r\nappend flags 0 0 1\r\nc\r\n"
    b"sop insert pinned 1 create 2 -1 0\r\nm\r\nlop create full 3 0 -1 head_trim\r\n"
    b"bop create range 4 0 0 largest_trim\r\n"
)
SECOND = (
    b"incr number 5 7 0 40\r\nincr number 2\r\nset sticky2 9 -1 1\r\nz\r\nbop insert range 0x0a 0xff00 1\r\na\r\n"
    b"bop insert range 0x0b 1\r\nb\r\nsetattr range maxbkeyrange=0x05\r\nbop update range 0x0a 0 -1\r\n"
    b"bop insert b 50 0x01 1\r\nw\r\nmop insert m g 1\r\nw\r\nlop insert full 0 1\r\nq\r\ndelete gone\r\n"
)
SHOWN = READ + (
    b"get plain flags sticky sticky2 number\r\ngetattr sticky\r\ngetattr pinned\r\nsop get pinned 0\r\ngetattr full\r\n"
    b"getattr range\r\nbop get range 0x00..0xff\r\nbop get range 0x00..0xff 0 EQ 0xff\r\nmop get m 0 0\r\n"
)
PARTS = (
    b"trimmed=1", b"expiretime=-1", b"maxbkeyrange=0x05", b"overflowaction=largest_trim", b"VALUE flags 4000000000 3",
)


def end(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def write(server):
    """Makes the directory with this program."""
    wire = Wire(server.memcached_port)
    wire.exchange(FIRST)
    save(server.port)
    wire.exchange(SECOND)
    replies = wire.exchange(SHOWN)
    end(server)
    GOLDEN.mkdir()
    for path in server.directory.iterdir():
        if path.is_file() and path.name not in ("LOCK", "output"):
            shutil.copy(path, GOLDEN / path.name)
            if path.name.startswith("log-"):
                # Most of it is reserved room: zeros.
                used = len((GOLDEN / path.name).read_bytes().rstrip(b"\0"))
                os.truncate(GOLDEN / path.name, -(-used // 4096) * 4096)
    REPLIES.write_bytes(replies)


def run(server, restart):
    """The problem, or None: the directory is opened, and again after a checkpoint of this version."""
    if os.environ.get("ONGGI_WRITE_GOLDEN") and not GOLDEN.exists():
        write(server)
    expected = REPLIES.read_bytes()
    missing = [part for part in PARTS if part not in expected]
    if missing:
        return f"the golden replies lack {missing}"
    if server.alive():
        end(server)
    for path in server.directory.iterdir():
        if path.is_file() and path.name != "output":
            path.unlink()
    for path in GOLDEN.iterdir():
        if path != REPLIES:
            shutil.copy(path, server.directory / path.name)
    for checkpoint in (False, True):
        if checkpoint:
            save(server.port)
            end(server)
        replies = Wire(restart()).exchange(SHOWN)
        if replies != expected:
            how = "after a checkpoint of this version" if checkpoint else "as it was"
            return f"the directory {how} has {replies[:3000]}, not {expected[:3000]}"
    return None
