"""What is installed: manual pages, completions; the Debian package and the container image, unpacked and started."""

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import need
from directory import Client
from seeds import ROOT
from servers import free_port

SECONDS_MAX = 300
# What `systemd-analyze security` may say of the unit, in tenths.
EXPOSURE_MAX = 15


def text_of(*argv):
    return subprocess.run(
        [str(word) for word in argv], check=True, capture_output=True, text=True, timeout=SECONDS_MAX, cwd=ROOT
    ).stdout


def commands(tools):
    """The commands that the help lists."""
    listed = text_of(tools.onggi, "--help").partition("Commands:")[2].partition("Options:")[0]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def every_command_has_a_page(tools, share):
    pages = {path.name.removesuffix(".1.gz") for path in (share / "man" / "man1").iterdir()}
    expected = {"onggi", *(f"onggi-{name}" for name in commands(tools) if name != "help")}
    if pages != expected or len(pages) < 10:
        return f"there are {sorted(pages)}"
    for page in sorted(pages):
        text = gzip.decompress((share / "man" / "man1" / f"{page}.1.gz").read_bytes()).decode()
        if f"\n.TH {page} 1 " not in text or ".SH NAME" not in text:
            return f"{page} begins with {text[:200]!r}"
    return None


def pages_show_options(tools):
    text = text_of(tools.onggi, "man", "import").replace("\\-", "-")
    missing = [word for word in ("onggi import", "--dir", "--dry-run", "--follow") if word not in text]
    return f"the page of import lacks {missing}" if missing else None


def an_unknown_page_is_named(tools):
    done = subprocess.run([tools.onggi, "man", "imprt"], capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode != 2 or done.stdout or "onggi-imprt" not in done.stderr:
        return f"status {done.returncode}, {done.stdout[:100]!r}, {done.stderr!r}"
    return None


def bash_completes(share):
    script = share / "bash-completion" / "completions" / "onggi"
    for words, expected in (("onggi imp", "import"), ("onggi import --dry", "--dry-run")):
        last = words.split()[-1]
        line = (
            f"source {script}; COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; "
            f'_onggi onggi "{last}" ""; echo "${{COMPREPLY[@]}}"'
        )
        found = text_of("bash", "--norc", "-c", line).split()
        if found != [expected]:
            return f"{words!r} is completed by {found}"
    return None


def other_shells_have_scripts(share):
    zsh = (share / "zsh" / "site-functions" / "_onggi").read_text()
    fish = (share / "fish" / "vendor_completions.d" / "onggi.fish").read_text()
    return None if zsh.startswith("#compdef onggi") and "complete -c onggi" in fish else "a script is another one"


def the_package_starts(tools, root):
    """The configuration and the unit's options, out of the package, without its root."""
    unit = (root / "usr/lib/systemd/system/onggi.service").read_text()
    start = re.search(r"^ExecStart=(/\S+) serve (/\S+) (.*)$", unit, re.MULTILINE)
    if not start or not (root / start[1][1:]).is_file():
        return f"the unit starts {start and start[0]}"
    conf = root / start[2][1:]
    if "\ndir /var/lib/onggi\n" not in conf.read_text():
        return "the configuration names another data directory"
    packaged = type(tools)(root / start[1][1:], tools.scratch)
    with packaged.serve("packaged", *start[3].split(), file=conf) as server, Client(server.port) as client:
        client.call("SET", "key", "value")
        return None if client.call("GET", "key") == "value" else "the value is another one"


def symbols_are_apart(package, root, unpacked):
    """The program of the package has no symbols, and names the file of the package that has them."""
    package = Path(package)
    symbols = package.with_name(package.name.replace("onggi_", "onggi-dbgsym_"))
    text_of("dpkg-deb", "--extract", symbols, unpacked)
    sections = text_of("readelf", "--sections", "--wide", root / "usr/bin/onggi")
    if ".debug_line" in sections or ".symtab" in sections or ".gnu_debuglink" not in sections:
        return f"the program's sections are {sections}"
    file = unpacked / "usr/lib/debug/usr/bin/onggi.debug"
    return None if ".debug_line" in text_of("readelf", "--sections", "--wide", file) else "there are no symbols"


def the_package_is_complete(package, root):
    fields = text_of("dpkg-deb", "--field", package)
    for expected in ("Package: onggi", "Depends: libc6 (>= 2."):
        if expected not in fields:
            return f"{expected!r} is missing: {fields}"
    if text_of("dpkg-deb", "--info", package, "conffiles").split() != ["/etc/onggi/onggi.conf"]:
        return "the configuration is no conffile"
    owners = {line.split()[1] for line in text_of("dpkg-deb", "--contents", package).splitlines()}
    if owners != {"root/root"}:
        return f"files belong to {owners}"
    for script in ("postinst", "prerm", "postrm"):
        text = text_of("dpkg-deb", "--info", package, script)
        subprocess.run(["sh", "-n"], input=text, check=True, text=True, timeout=SECONDS_MAX)
    expected = ("usr/bin/onggi", "usr/share/man/man1/onggi.1.gz", "usr/share/doc/onggi/copyright",
                "usr/lib/sysusers.d/onggi.conf")
    missing = [path for path in expected if not (root / path).is_file()]
    return f"the package lacks {missing}" if missing else None


def the_unit_is_confined(root):
    """systemd rates what the unit may do at most as high as the manual says."""
    unit = root / "usr/lib/systemd/system/onggi.service"
    program = need.program("systemd-analyze", "systemd")
    said = text_of(program, "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", "--no-pager", unit)
    found = float(re.search(r"Overall exposure level for onggi.service: ([\d.]+)", said)[1])
    return f"its exposure is {found}" if found > EXPOSURE_MAX / 10 else None


def blob_of(layout, descriptor):
    """The bytes of a part of the image, whose digest and size are those that name it."""
    algorithm, digest = descriptor["digest"].split(":")
    content = (layout / "blobs" / algorithm / digest).read_bytes()
    if hashlib.sha256(content).hexdigest() != digest or len(content) != descriptor["size"]:
        raise AssertionError(f"{digest} is another part")
    return content


def unpacked_image(image, layout, root):
    """The configuration of an image whose parts are whole; the files of its layer are unpacked."""
    with tarfile.open(image) as archive:
        archive.extractall(layout)
    index = json.loads((layout / "index.json").read_bytes())
    manifest = json.loads(blob_of(layout, index["manifests"][0]))
    config = json.loads(blob_of(layout, manifest["config"]))
    packed = blob_of(layout, manifest["layers"][0])
    tar = gzip.decompress(packed)
    if config["rootfs"]["diff_ids"] != [f"sha256:{hashlib.sha256(tar).hexdigest()}"]:
        raise AssertionError("the layer is another one")
    root.mkdir()
    subprocess.run(["tar", "-x", "-C", root], input=tar, check=True, timeout=SECONDS_MAX)
    return config["config"]


def the_image_starts(config, root):
    """Its command as its user with its files alone: a server that other hosts may reach, and that refuses them."""
    port = free_port()
    user = config["User"]
    inside = ["chroot", f"--userspec={user}", root]
    process = subprocess.Popen([*inside, *config["Entrypoint"], "--port", str(port), "--http-port", "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    health = [*inside, *config["Healthcheck"]["Test"][1:2], "cli", "-p", str(port), *config["Healthcheck"]["Test"][3:]]
    try:
        deadline = time.monotonic() + SECONDS_MAX
        # The check of health takes LOADING for an answer.
        while subprocess.run(health, capture_output=True, timeout=SECONDS_MAX).stdout != b"PONG\n":
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                return f"it does not start: {process.communicate()[0][-500:]}"
            time.sleep(0.1)
        with Client(port) as client:
            client.call("SET", "key", "value")
            asked = dict(zip(*[iter(client.call("CONFIG", "GET", "bind", "protected-mode", "dir"))] * 2))
            if asked != {"bind": "* -::*", "protected-mode": "yes", "dir": "/data"}:
                return f"its settings are {asked}"
        process.send_signal(getattr(signal, config["StopSignal"]))
        if process.wait(timeout=SECONDS_MAX) != 0:
            return f"it ended with {process.returncode}"
    finally:
        process.kill()
        process.wait()
    owners = {path.stat().st_uid for path in (root / "data").iterdir()}
    return None if owners == {int(user.split(":")[0])} else f"files of the data belong to {owners}"


def components_of(listed):
    """Names and versions of a list of components, whose references lead to entries."""
    if listed["bomFormat"] != "CycloneDX" or listed["specVersion"] != "1.5":
        raise AssertionError(f"it begins with {str(listed)[:200]}")
    all_of_them = [listed["metadata"]["component"], *listed["components"]]
    references = {entry["bom-ref"] for entry in all_of_them}
    for entry in listed["dependencies"]:
        if not references.issuperset([entry["ref"], *entry["dependsOn"]]):
            raise AssertionError(f"{entry} names what is not listed")
    bare = [entry["name"] for entry in all_of_them if "licenses" not in entry]
    unknown = [entry["name"] for entry in all_of_them if "purl" in entry and len(entry["hashes"][0]["content"]) != 64]
    if len(references) != len(all_of_them) or bare or unknown:
        raise AssertionError(f"{len(references)} references; without a licence {bare}, without a checksum {unknown}")
    return {(entry["name"], entry["version"]) for entry in all_of_them}


def the_release_is_whole(tools, out):
    """Checksums, the program out of the archive, and components that are those of `cargo tree`."""
    sums = Path(text_of("packaging/release", tools.onggi, out).strip())
    for line in sums.read_text().splitlines():
        digest, file = line.split("  ")
        if hashlib.sha256((out / file).read_bytes()).hexdigest() != digest:
            return f"{file} has another checksum"
    name = sums.name.removesuffix(".sha256")
    with tarfile.open(out / f"{name}.tar.gz") as archive:
        archive.extractall(out)
    inside = out / name
    listed = json.loads((inside / "onggi.cdx.json").read_text())
    edges = "normal,no-proc-macro"
    tree = text_of("cargo", "tree", "--locked", "--package", "onggi", "--edges", edges, "--prefix", "none")
    expected = set(re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE))
    found = components_of(listed)
    more = {crate for crate in found - expected if not crate[0].endswith("-src")}
    lacks = (expected - found) | ({"lua-src"} - {crate for crate, _ in found})
    if lacks or more or len(expected) < 100:
        return f"of {len(expected)} crates the list lacks {lacks}, and has besides {more}"
    notices = (inside / "THIRD-PARTY-NOTICES.txt").read_text()
    unnamed = [entry["name"] for entry in listed["components"]
               if "purl" in entry and f"\n{entry['name']} {entry['version']} (" not in notices]
    if unnamed or "Permission is hereby granted" not in notices:
        return f"the notices lack {unnamed}"
    packaged = type(tools)(inside / "onggi", tools.scratch)
    with packaged.serve("released", file=inside / "onggi.conf") as server, Client(server.port) as client:
        return None if client.call("PING") == "PONG" else "it does not answer"


def the_release_is_the_same_twice(tools, out, again):
    text_of("packaging/release", tools.onggi, again)
    differ = [file.name for file in again.iterdir() if file.read_bytes() != (out / file.name).read_bytes()]
    return f"{differ} differ" if differ else None


def none(problem):
    if problem:
        raise AssertionError(problem)


def run(tools):
    """The checks."""
    root, unpacked = tools.scratch / "installed", tools.scratch / "unpacked"
    share = root / "usr" / "share"
    packages = []

    def install():
        text_of("make", "-s", "install-files", f"BINARY={tools.onggi}", f"DESTDIR={root}", "PREFIX=/usr")

    def package():
        packages.append(text_of("packaging/deb", tools.onggi, tools.scratch).strip())
        text_of("dpkg-deb", "--extract", packages[0], unpacked)

    tools.check("files are installed", install)
    tools.check("every command has a manual page", lambda: none(every_command_has_a_page(tools, share)))
    tools.check("a manual page has the options", lambda: none(pages_show_options(tools)))
    tools.check("a page that is missing is named", lambda: none(an_unknown_page_is_named(tools)))
    tools.check("bash completes commands and options", lambda: none(bash_completes(share)))
    tools.check("zsh and fish have their scripts", lambda: none(other_shells_have_scripts(share)))
    tools.check("the Debian package is built", package)
    tools.check("the Debian package is complete", lambda: none(the_package_is_complete(packages[0], unpacked)))
    tools.check(f"systemd rates the exposure of the unit {EXPOSURE_MAX / 10} or less",
                lambda: none(the_unit_is_confined(unpacked)))
    tools.check("debug symbols have a package of their own",
                lambda: none(symbols_are_apart(packages[0], unpacked, tools.scratch / "symbols")))
    tools.check("a server starts from the Debian package", lambda: none(the_package_starts(tools, unpacked)))
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")
    release, again = tools.scratch / "release", tools.scratch / "release-again"
    tools.check("the release has its checksums, components and notices, and starts",
                lambda: none(the_release_is_whole(tools, release)))
    tools.check("two releases of one program are equal",
                lambda: none(the_release_is_the_same_twice(tools, release, again)))
    image_of(tools)


def image_of(tools):
    """The checks of the container image. Entering its files takes root."""
    found = {}

    def build():
        found["image"] = text_of("packaging/image", tools.onggi, tools.scratch / "image").strip()
        again = text_of("packaging/image", tools.onggi, tools.scratch / "image-again").strip()
        with open(found["image"], "rb") as one, open(again, "rb") as other:
            none(None if one.read() == other.read() else "two builds of one program differ")

    def unpack():
        image = found["image"]
        found["config"] = unpacked_image(image, tools.scratch / "layout", tools.scratch / "image-root")

    tools.check("the container image is built, and is the same twice", build)
    tools.check("the container image is whole", unpack)
    if os.geteuid() == 0:
        tools.check("a server starts from the container image as its user",
                    lambda: none(the_image_starts(found["config"], tools.scratch / "image-root")))
