"""Differential: the same commands to this server, Valkey 9.1 and Redis 7.0; see tests/differential/."""

import need
import workspace
from job import ROOT, Job, Stage

IN_TEST = 300_000
IN_A_PIECE = 1_000_000
PIECES = 100
SECONDS_MAX = 1200
# As many again with strings that are compressed on write, most of them with a dictionary, short ones too. Collections
# are compressed every second.
COMPRESSED = 60_000
COMPRESSED_BY = ("compression=zstd compression-when=write compression-min-bytes=6 compression-idle-time=0 "
                 "compression-cpu-percent=100")
# And as many again over collections so large that their leaves are compressed, in every round. Idle time is 0, so
# leaves that a command has thawed or stored uncompressed are compressed again soon.
BIG = 30_000
BIG_BY = "compression=lz4 compression-when=idle compression-idle-time=0 compression-cpu-percent=100"


# Over databases on disk: the scripts with all of them, random commands with all but one. Rows are dropped and flushed
# between commands.
ON_DISK = 30_000
ON_DISK_IN_A_PIECE = 500_000


def run_tests(job, name, env, target=None):
    """The tests of the comparison, or of one target of it."""
    for program, home in workspace.test_programs(job, "differential", target=target):
        job.command([program], name=name, cwd=home, env=env, timeout=SECONDS_MAX, counts=True)


def compare_on_disk(job, commands):
    """The scripts and this many random commands over databases on disk, against Valkey alone."""
    for databases, scripts in [("all", {}), ("most", {"ONGGI_DIFF_SCRIPTS": "none"})]:
        run_tests(
            job, f"differential, {databases} on disk", target="differential",
            env={"VALKEY_SERVER": str(need.valkey()), "ONGGI_SERVER": str(need.onggi()),
                 "ONGGI_DIFF_TARGETS": "valkey,onggi", "ONGGI_DIFF_DISK": databases,
                 "ONGGI_DIFF_COMMANDS": str(commands if databases == "most" else 0), **scripts},
        )


# Histories of users: rules, logins, and commands as those users. Redis 7.0 lists users in other words.
USERS = ("users", "acl,string,generic")
# Histories of scripts and functions, and of what their commands meet.
SCRIPTS = ("scripts", "scripting,functions,string,generic,hash,list,zset,transactions")
HISTORIES = 20_000
# One request in 25 of the second is a script or calls a function: 100,000 in a piece.
HISTORIES_IN_A_PIECE = {"users": 1_000_000, "scripts": 3_000_000}


def compare_histories(job, kind, commands):
    """So many random commands of some families, against Valkey alone."""
    name, families = kind
    run_tests(
        job, f"differential, {name}", target="differential",
        env={"VALKEY_SERVER": str(need.valkey()), "ONGGI_SERVER": str(need.onggi()),
             "ONGGI_DIFF_TARGETS": "valkey,onggi", "ONGGI_DIFF_FAMILIES": families,
             "ONGGI_DIFF_COMMANDS": str(commands), "ONGGI_DIFF_SCRIPTS": "none"},
    )


def compare(job, commands, options="", big=False):
    """The scripts, and this many random commands from the job's seed, with options for this server; over big
    collections, without the scripts."""
    need.apt("redis-server")
    environment = {"VALKEY_SERVER": str(need.valkey()), "REDIS_SERVER": need.program("redis-server", "redis-server"),
                   "ONGGI_SERVER": str(need.onggi()), "ONGGI_DIFF_COMMANDS": str(commands),
                   "ONGGI_DIFF_OPTIONS": options}
    if big:
        environment |= {"ONGGI_DIFF_BIG": "1", "ONGGI_DIFF_SCRIPTS": "none"}
    name = "differential, leaves" if big else "differential, compressed" if options else "differential"
    run_tests(job, name, environment, target="differential" if options else None)


def run(job: Job):
    compare(job, IN_TEST)
    compare(job, COMPRESSED, COMPRESSED_BY)
    compare(job, BIG, BIG_BY, big=True)
    compare_on_disk(job, ON_DISK)
    compare_histories(job, USERS, HISTORIES)
    compare_histories(job, SCRIPTS, HISTORIES)


def pieces(_job):
    data = [(f"million {piece}", lambda job: compare(job, IN_A_PIECE)) for piece in range(1, PIECES + 1)]
    on_disk = ("on disk", lambda job: compare_on_disk(job, ON_DISK_IN_A_PIECE))
    histories = [
        (kind[0], lambda job, kind=kind: compare_histories(job, kind, HISTORIES_IN_A_PIECE[kind[0]]))
        for kind in (USERS, SCRIPTS)
    ]
    return [*data, on_disk, *histories]


STAGE = Stage("differential", "replies compared with Valkey 9.1 and Redis 7.0", run, pieces)
