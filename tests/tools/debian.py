"""The package in a clean Debian: installed, upgraded over an edited configuration, removed and purged.

    python3 debian.py ONGGI ROOT

ROOT is a Debian of debootstrap, which is copied and stays as it is. Each check is one line.
"""

import subprocess
import sys
import time
from pathlib import Path

from directory import Client, run_as_program
from installed import SECONDS_MAX, none, text_of
from servers import free_port

EDITED = "maxmemory 64mb\n"


class Machine:
    """A root that packages are installed in."""

    def __init__(self, template, root):
        self.root = root
        subprocess.run(["cp", "--archive", "--reflink=auto", template, root], check=True, timeout=SECONDS_MAX)

    def run(self, *argv, status=0):
        """What a command in the root says."""
        done = subprocess.run(
            ["chroot", self.root, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=SECONDS_MAX, env={"PATH": "/usr/sbin:/usr/bin", "DEBIAN_FRONTEND": "noninteractive"},
        )
        if done.returncode != status:
            raise AssertionError(f"{' '.join(argv)}: status {done.returncode}: {done.stdout[-800:]}")
        return done.stdout

    def install(self, package, *options):
        to = self.root / "tmp" / Path(package).name
        subprocess.run(["cp", package, to], check=True, timeout=SECONDS_MAX)
        return self.run("dpkg", *options, "--install", f"/tmp/{to.name}")

    def status(self, path):
        """Owner, group and mode of a file, as the root names them."""
        return self.run("stat", "--format", "%U:%G %a", path).strip()

    def serve(self, work):
        """Starts the server as the unit does, and asks it."""
        unit = (self.root / "usr/lib/systemd/system/onggi.service").read_text()
        start = next(line for line in unit.splitlines() if line.startswith("ExecStart=")).partition("=")[2].split()
        port = free_port()
        inside = ["chroot", "--userspec=onggi:onggi", self.root]
        process = subprocess.Popen([*inside, *start, "--port", str(port), "--http-port", "0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            deadline = time.monotonic() + SECONDS_MAX
            while subprocess.run([*inside, "/usr/bin/onggi", "cli", "-p", str(port), "PING"], capture_output=True,
                                 timeout=SECONDS_MAX).stdout != b"PONG\n":
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise AssertionError(f"it does not start: {process.communicate()[0][-800:]}")
                time.sleep(0.1)
            with Client(port) as client:
                result = work(client)
            process.terminate()
            if process.wait(timeout=SECONDS_MAX) != 0:
                raise AssertionError(f"it ended with {process.returncode}")
            return result
        finally:
            process.kill()
            process.wait()


def equal(found, wanted):
    none(None if found == wanted else f"{found!r} in place of {wanted!r}")


def newer(package, scratch):
    """The package with a later version, and a configuration that the maintainers have changed."""
    work = scratch / "newer"
    text_of("dpkg-deb", "--raw-extract", package, work)
    control = work / "DEBIAN" / "control"
    control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1:"))
    with open(work / "etc/onggi/onggi.conf", "a") as conf:
        conf.write("# A later version.\n")
    text_of("dpkg-deb", "--root-owner-group", "--build", work, scratch / "newer.deb")
    return scratch / "newer.deb"


def is_installed(machine, package, has_systemd):
    if not has_systemd:
        machine.run("mv", "/usr/bin/systemd-sysusers", "/usr/bin/hidden")
    machine.install(package)
    equal(machine.status("/etc/onggi/onggi.conf"), "onggi:onggi 640")
    equal(machine.status("/var/lib/onggi"), "onggi:onggi 750")
    equal(machine.run("getent", "passwd", "onggi").strip().split(":")[5:], ["/var/lib/onggi", "/usr/sbin/nologin"])
    equal(machine.serve(lambda client: client.call("SET", "key", "value")), "OK")


def is_upgraded(machine, package, scratch):
    conf = machine.root / "etc/onggi/onggi.conf"
    conf.write_text(conf.read_text() + EDITED)
    machine.install(newer(package, scratch), "--force-confold")
    none(None if conf.with_name("onggi.conf.dpkg-dist").exists() else "the new configuration is not there to compare")
    none(None if conf.read_text().endswith(EDITED) else "the operator's line is gone")
    equal(machine.status("/etc/onggi/onggi.conf"), "onggi:onggi 640")
    equal(machine.serve(lambda client: (client.call("GET", "key"), client.call("CONFIG", "GET", "maxmemory"))),
          ("value", ["maxmemory", str(64 << 20)]))


def is_removed(machine):
    machine.run("dpkg", "--remove", "onggi")
    none("the program is there" if (machine.root / "usr/bin/onggi").exists() else None)
    none(None if (machine.root / "etc/onggi/onggi.conf").exists() else "the configuration is gone")
    said = machine.run("dpkg", "--purge", "onggi")
    none("the configuration is there" if (machine.root / "etc/onggi/onggi.conf").exists() else None)
    none(None if "the data in /var/lib/onggi stays" in said else f"it says {said!r}")
    none(None if list((machine.root / "var/lib/onggi").iterdir()) else "the data is gone")
    equal(machine.run("dpkg-query", "--list", "onggi", status=1).splitlines()[-1][:8], "dpkg-que")


def check(tools, template):
    scratch = tools.scratch
    package = text_of("packaging/deb", tools.onggi, scratch).strip().splitlines()[-1]
    for name, has_systemd in (("with systemd", True), ("without systemd-sysusers", False)):
        machine = Machine(template, scratch / name.replace(" ", "-"))
        tools.check(f"the package is installed in a clean Debian {name}, and serves",
                    lambda: is_installed(machine, package, has_systemd))
        if has_systemd:
            tools.check("an upgrade keeps the data and an edited configuration",
                        lambda: is_upgraded(machine, package, scratch))
        tools.check(f"what is removed {name} leaves the data", lambda: is_removed(machine))


if __name__ == "__main__":
    sys.exit(run_as_program(check))
