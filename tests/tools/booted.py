"""The package under a systemd that runs: a clean Debian is booted in a container, which installs, upgrades and removes
the package, and kills and stops the server meanwhile.

    python3 booted.py ONGGI ROOT

ROOT is a Debian of debootstrap, which is copied and stays as it is. Each check is one line.
"""

import re
import subprocess
import sys

from debian import Machine, newer
from directory import run_as_program
from installed import EXPOSURE_MAX, text_of

SECONDS_MAX = 180

# Runs in the container. Each step prints its name, and what it found on one line; the container then ends.
PROBE = r"""#!/bin/sh
exec >/probe.log 2>&1
ask() { onggi cli "$@"; }
pid() { systemctl show --property MainPID --value onggi; }
found() { echo "$1: $2"; }
another() { # another process than $1 serves
    for _ in $(seq 200); do
        if [ "$(pid)" != "$1" ] && [ "$(pid)" != 0 ] && [ "$(ask PING 2>/dev/null)" = PONG ]; then echo yes; return; fi
        sleep 0.1
    done
    echo no
    journalctl --no-pager -u onggi | tail -n 20
}
dpkg --install /opt/onggi.deb >/dev/null
found installed "$(systemctl is-active onggi) $(systemctl is-enabled onggi)"
found unit "$(systemctl show --property Type,WatchdogUSec,User onggi | sort | tr '\n' ' ')"
found status "$(systemctl show --property StatusText --value onggi)"
found set "$(ask SET key value)"
before=$(pid)
found reload "$(systemctl reload onggi && sleep 1 && [ "$(pid)" = "$before" ] && ask GET key)"
systemctl restart onggi
found restart "$(another "$before") $(ask GET key)"
before=$(pid)
dpkg --force-confold --install /opt/newer.deb >/dev/null
found upgrade "$(another "$before") $(ask GET key)"
before=$(pid)
kill -KILL "$before"
found killed "$(another "$before") $(ask GET key)"
mkdir -p /run/systemd/system/onggi.service.d
printf '[Service]\nWatchdogSec=3\n' >/run/systemd/system/onggi.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart onggi
before=$(pid)
sleep 5
found alive "$([ "$(pid)" = "$before" ] && ask GET key)"
kill -STOP "$before"
found watchdog "$(another "$before") $(ask GET key)"
found cause "$(journalctl --no-pager -u onggi | grep -c 'Watchdog timeout')"
found security "$(systemd-analyze security --no-pager onggi | tail -n 1)"
dpkg --remove onggi >/dev/null
left=$(cat /proc/[0-9]*/comm | grep -c '^onggi$')
found removed "$(systemctl is-active onggi) $left $(ls /var/lib/onggi | wc -l | sed 's/^[1-9].*/files/')"
systemctl poweroff --no-block
"""
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/probe
"""


def boot(machine):
    """What the steps found, by name."""
    root = machine.root
    (root / "probe").write_text(PROBE)
    (root / "probe").chmod(0o755)
    units = root / "etc/systemd/system"
    (units / "probe.service").write_text(UNIT)
    wanted = units / "default.target.wants"
    wanted.mkdir(exist_ok=True)
    (wanted / "probe.service").symlink_to("../probe.service")
    done = subprocess.run(
        ["systemd-nspawn", "--directory", root, "--boot", "--private-network", "--register=no", "--keep-unit",
         "--console=pipe"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX,
    )
    log = root / "probe.log"
    if not log.exists():
        raise AssertionError(f"systemd does not come up: {done.stdout[-800:]}")
    return log.read_text()


def check(tools, template):
    scratch = tools.scratch
    package = text_of("packaging/deb", tools.onggi, scratch).strip().splitlines()[-1]
    machine = Machine(template, scratch / "booted")
    for name, path in (("onggi.deb", package), ("newer.deb", newer(package, scratch))):
        subprocess.run(["cp", path, machine.root / "opt" / name], check=True, timeout=SECONDS_MAX)
    said = {}
    tools.check("a Debian boots with its systemd", lambda: said.setdefault("log", boot(machine)))
    log = said.get("log", "")
    print("\n".join(f"# {line}" for line in log.splitlines()), flush=True)

    def step(name, pattern):
        line = re.search(rf"^{name}: (.*)$", log, re.MULTILINE)
        if not (line and re.fullmatch(pattern, line[1])):
            raise AssertionError(f"{line and line[1]!r} in place of {pattern!r}")

    for name, what, pattern in (
        ("installed", "the package starts and enables the server", "active enabled"),
        ("unit", "the unit waits for the server's word", r"Type=notify User=onggi WatchdogUSec=1min "),
        ("status", "the server says what it does", ".+"),
        ("set", "it answers", "OK"),
        ("reload", "a reload keeps the process", "value"),
        ("restart", "a restart keeps the data", "yes value"),
        ("upgrade", "an upgrade restarts it, and keeps the data", "yes value"),
        ("killed", "a server that is killed starts again", "yes value"),
        ("alive", "the watchdog leaves a server that lives", "value"),
        ("watchdog", "the watchdog restarts a server that stands still", "yes value"),
        ("cause", "the journal names the watchdog", "1"),
        ("removed", "a removal stops it, and leaves the data", "inactive 0 files"),
    ):
        tools.check(f"systemd: {what}", lambda name=name, pattern=pattern: step(name, pattern))

    def score():
        found = re.search(r"^security: .* (\d+)\.(\d) ", log, re.MULTILINE)
        if not found or int(found[1] + found[2]) > EXPOSURE_MAX:
            raise AssertionError(f"{found and found[0]!r} is more than {EXPOSURE_MAX / 10}")

    tools.check("systemd: the exposure of the running unit", score)


if __name__ == "__main__":
    sys.exit(run_as_program(check))
