"""The program for arm64 under qemu: it answers, keeps data through a kill and a restart, and checks its files. So do
those of the Debian package, the container image and the release.

    python3 arm64.py ONGGI PACKAGES

PACKAGES is the directory in which `make deb image release` put what they made. Each check is one line.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from directory import SECONDS_MAX, Client, ErrorReply, Tools
from servers import free_port

# Addresses that qemu may take. It keeps tables for all that the program reserves, which without a limit is terabytes.
ADDRESSES_BYTES = 12 << 30

# The libraries that Debian's cross compiler brings.
SYSROOT = "/usr/aarch64-linux-gnu"


class Emulated:
    """A program under qemu, with the libraries below a root."""

    def __init__(self, onggi, directory, root=SYSROOT):
        self.begin = ["prlimit", f"--as={ADDRESSES_BYTES}", "qemu-aarch64", "-L", root, onggi]
        self.directory = directory
        directory.mkdir()

    def run(self, *words):
        done = subprocess.run([*self.begin, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
        if done.returncode != 0:
            raise AssertionError(f"{words[0]}: status {done.returncode}: {done.stdout[-500:]}")
        return done.stdout

    def serve(self, work, is_killed=False):
        """Starts a server, asks it, and ends or kills it. qemu has no filters of system calls, so no sandbox."""
        port = free_port()
        process = subprocess.Popen(
            [*self.begin, "serve", "--dir", self.directory, "--port", str(port), "--http-port", "0", "--sandbox", "no",
             "--appendfsync", "always"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        try:
            deadline = time.monotonic() + SECONDS_MAX
            while True:
                try:
                    with Client(port) as client:
                        if client.call("PING") == "PONG":
                            break
                except (OSError, ErrorReply) as problem:
                    if process.poll() is not None or time.monotonic() > deadline:
                        process.kill()
                        raise AssertionError(f"{problem}: {process.communicate()[0][-500:]}") from problem
                time.sleep(0.2)
            with Client(port) as client:
                result = work(client)
            if is_killed:
                return result
            process.terminate()
            if process.wait(timeout=SECONDS_MAX) != 0:
                raise AssertionError(f"it ended with {process.returncode}: {process.stdout.read()[-500:]}")
            return result
        finally:
            process.kill()
            process.wait()


def filled(client):
    text = "value " * 200
    client.pipeline([("SET", f"key:{number}", text + str(number)) for number in range(2000)])
    client.call("HSET", "hash", *(word for number in range(600) for word in (f"field {number}", number)))
    client.call("ZADD", "zset", *(word for number in range(600) for word in (number % 7, f"member {number}")))
    return client.call("EVAL", "return redis.call('GET', KEYS[1])", 1, "key:7")[-5:], client.call("DBSIZE")


def kept(client):
    return client.call("GET", "key:7")[-5:], client.call("DBSIZE"), client.call("ZCARD", "zset")


def unpacked(archive, to):
    with tarfile.open(archive) as tar:
        tar.extractall(to, filter="fully_trusted")


def only(directory, pattern):
    """The one file of the name."""
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{pattern} in {directory}: {found}")
    return found[0]


def package(packages, scratch):
    """A program of the Debian package."""
    path = only(packages, "onggi_*_arm64.deb")
    said = subprocess.run(["dpkg-deb", "--field", path, "Architecture"], check=True, capture_output=True, text=True)
    if said.stdout.strip() != "arm64":
        raise AssertionError(f"the package is for {said.stdout.strip()}")
    subprocess.run(["dpkg-deb", "--extract", path, scratch / "deb"], check=True, timeout=SECONDS_MAX)
    if not list((scratch / "deb/usr/share/man/man1").glob("onggi-check.1.gz")):
        raise AssertionError("the package has no manual pages")
    return Emulated(scratch / "deb/usr/bin/onggi", scratch / "of-deb")


def image(packages, scratch):
    """A program of the image, with the libraries of the image."""
    layout, root = scratch / "layout", scratch / "image"
    unpacked(only(packages, "onggi-*-arm64.oci.tar"), layout)
    blob = lambda digest: layout / "blobs" / digest.replace(":", "/")
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]["digest"]).read_text())
    config = json.loads(blob(manifest["config"]["digest"]).read_text())
    if config["architecture"] != "arm64":
        raise AssertionError(f"the image is for {config['architecture']}")
    unpacked(blob(manifest["layers"][0]["digest"]), root)
    return Emulated(root / "usr/bin/onggi", scratch / "of-image", root)


def release(packages, scratch):
    """A program of the archive, whose checksums are right."""
    sums = only(packages, "onggi-*-aarch64-unknown-linux-gnu.sha256")
    for line in sums.read_text().splitlines():
        wanted, name = line.split()
        if hashlib.sha256((packages / name).read_bytes()).hexdigest() != wanted:
            raise AssertionError(f"the checksum of {name} is wrong")
    name = sums.name.removesuffix(".sha256")
    unpacked(packages / f"{name}.tar.gz", scratch / "release")
    return Emulated(scratch / "release" / name / "onggi", scratch / "of-release")


def equal(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} in place of {wanted!r}")


def checks(tools, what, program):
    """The program starts, answers, and finds its data again."""
    tools.check(f"{what} answers and runs scripts",
                lambda: equal(program().serve(filled, is_killed=True), ("lue 7", 2002)))
    tools.check(f"{what} keeps the data when it is killed", lambda: equal(program().serve(kept), ("lue 7", 2002, 600)))
    tools.check(f"{what} keeps the data through a restart", lambda: equal(program().serve(kept), ("lue 7", 2002, 600)))
    tools.check(f"{what} checks its files", lambda: program().run("check", program().directory))


def main():
    with tempfile.TemporaryDirectory(prefix="onggi-test-") as scratch:
        scratch, packages = Path(scratch), Path(sys.argv[2])
        tools = Tools(sys.argv[1], scratch)
        built = Emulated(sys.argv[1], scratch / "data")
        tools.check("arm64: the program says its version",
                    lambda: equal(built.run("--version").split()[0], "onggi"))
        checks(tools, "arm64: the program", lambda: built)
        for what, make in (("the package", package), ("the image", image), ("the release", release)):
            made = {}
            tools.check(f"arm64: {what} is whole", lambda: made.update(it=make(packages, scratch)))
            checks(tools, f"arm64: the program of {what}", lambda: made["it"])
        return 1 if tools.failed else 0


if __name__ == "__main__":
    sys.exit(main())
