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
USERS = 20_000
USERS_IN_A_PIECE = 1_000_000
FAMILIES_OF_USERS = "acl,string,generic"


def compare_users(job, commands):
    """So many random commands about users and as users, against Valkey alone."""
    run_tests(
        job, "differential, users", target="differential",
        env={"VALKEY_SERVER": str(need.valkey()), "ONGGI_SERVER": str(need.onggi()),
             "ONGGI_DIFF_TARGETS": "valkey,onggi", "ONGGI_DIFF_FAMILIES": FAMILIES_OF_USERS,
             "ONGGI_DIFF_COMMANDS": str(commands), "ONGGI_DIFF_SCRIPTS": "none"},
    )


# Histories of scripts and functions, and of what their commands meet.
SCRIPTS = 20_000
SCRIPTS_IN_A_PIECE = 200_000
FAMILIES_OF_SCRIPTS = "scripting,functions,string,generic,hash,list,zset,transactions"


def compare_scripts(job, commands):
    """So many random commands, half of them scripts and calls of functions, against Valkey alone."""
    run_tests(
        job, "differential, scripts", target="differential",
        env={"VALKEY_SERVER": str(need.valkey()), "ONGGI_SERVER": str(need.onggi()),
             "ONGGI_DIFF_TARGETS": "valkey,onggi", "ONGGI_DIFF_FAMILIES": FAMILIES_OF_SCRIPTS,
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
    compare_users(job, USERS)
    compare_scripts(job, SCRIPTS)


def pieces(_job):
    data = [(f"million {piece}", lambda job: compare(job, IN_A_PIECE)) for piece in range(1, PIECES + 1)]
    on_disk = ("on disk", lambda job: compare_on_disk(job, ON_DISK_IN_A_PIECE))
    users = ("users", lambda job: compare_users(job, USERS_IN_A_PIECE))
    return [*data, on_disk, users, ("scripts", lambda job: compare_scripts(job, SCRIPTS_IN_A_PIECE))]


STAGE = Stage("differential", "replies compared with Valkey 9.1 and Redis 7.0", run, pieces)
