"""What is installed: manual pages, completions, and the Debian package, unpacked and started from."""

import gzip
import re
import subprocess

from directory import Client
from seeds import ROOT

SECONDS_MAX = 120


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
    tools.check("a server starts from the Debian package", lambda: none(the_package_starts(tools, unpacked)))
