"""The page in a real browser, and the metrics in Prometheus' own parser.

    python3 main.py --axe AXE.JS --chromium PROGRAM [--picture FILE]

Without a browser (no --chromium) only the metrics are checked.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from browser import SECONDS_MAX, Browser
from metrics import check_metrics, get
from servers import Server, free_port

HERE = Path(__file__).parent
SIZES = HERE.parent.parent / "crates" / "ground" / "base" / "testdata" / "sizes.txt"
# Longest load of the page, in milliseconds. Other programs on the machine can disturb it.
LOAD_MS_MAX = 1000
PANELS = (
    "throughput", "latency", "memory", "prefixes", "durability", "keys", "hot", "slow", "clients", "compression",
    "disk", "commands",
)
SECRET = "value-of-a-client"
TOKEN = "a-token-of-the-watcher"


class Checks:
    """Counts checks, and prints one line for each."""

    failed = 0

    def run(self, name, body):
        try:
            body()
            print(f"ok - {name}", flush=True)
        except Exception as problem:
            self.failed += 1
            mark = " # MEASURED" if getattr(problem, "is_measured", False) else ""
            print(f"not ok - {name}: {str(problem)[:900]}{mark}", flush=True)


def load_data(port):
    """Keys of several prefixes and types, with slow calls and hot keys among them."""
    import redis

    client = redis.Redis(port=port)
    client.config_set("slowlog-log-slower-than", 0)
    pipe = client.pipeline(transaction=False)
    for number in range(2000):
        pipe.set(f"user:{number}", json.dumps({"id": number, "name": f"name {number}", "roles": ["reader"] * 8}))
        pipe.hset(f"session:{number}", mapping={"at": number, "token": "t" * 40})
        if number % 4 == 0:
            pipe.zadd("board:day", {f"player {number}": number})
            pipe.expire(f"session:{number}", 10_000)
    pipe.execute()
    for _ in range(3000):
        pipe.get("user:7")
    pipe.execute()
    client.set("secret", SECRET)
    client.execute_command("BGSAVE")
    return client


def every_panel_has_data(browser):
    for panel in PANELS:
        rows = f"[...document.querySelectorAll('#{panel} td')].some(cell => cell.textContent.trim())"
        browser.wait(rows, f"data in the panel {panel}")
        wrong = browser.run(f"/NaN|undefined|null/.exec(document.getElementById('{panel}').innerText)?.input")
        assert wrong is None, f"{panel}: {wrong}"
    for chart in ("throughput", "latency", "memory"):
        browser.wait(f"/L/.test(document.querySelector('#{chart} svg path').getAttribute('d'))", f"the chart {chart}")
        assert browser.run(f"document.querySelector('#{chart} svg').getAttribute('aria-label')"), chart
    browser.wait("document.querySelectorAll('#prefixes .treemap li button').length >= 3", "the map of prefixes")
    browser.wait("document.querySelectorAll('#durability svg rect').length > 0", "the time line")
    assert "onggi restore --from" in browser.run("document.querySelector('#durability code').textContent")


def every_field_has_its_meaning(browser):
    """All figures, which the page has from the table of the program."""
    browser.run("document.querySelector('#all summary').click()")
    rows = "[...document.querySelectorAll('#all tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    browser.wait(f"{rows}.length > 150", "the rows of all figures")
    found = {row[0]: row[1:] for row in browser.run(rows)}
    assert re.fullmatch(r"[\d.]+ [KM]iB", found["used_memory"][0]), found["used_memory"]
    assert found["used_memory"][2] == "redis_memory_used_bytes", found["used_memory"]
    assert found["aof_last_write_status"][0] == "ok", found["aof_last_write_status"]
    is_clear = lambda cells: cells[1].endswith(".") and not re.search("NaN|undefined", cells[0])
    unclear = [row for row, cells in found.items() if not is_clear(cells)]
    assert not unclear, unclear
    browser.run("document.querySelector('#all summary').click()")


def sizes_are_those_of_the_tools(browser):
    lines = [line for line in SIZES.read_text().splitlines() if not line.startswith("#")]
    wanted = [line.split(" ", 1)[1] for line in lines]
    numbers = ",".join(line.split(" ", 1)[0] for line in lines)
    found = browser.run(f"[{numbers}].map(bytes)")
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]]
    assert browser.run("bytes('1536.4')") == "1.5 KiB", "text of INFO"


def values_are_shown_when_asked_for(browser):
    assert SECRET not in browser.run("document.body.innerText"), "a value is shown before it was asked for"
    browser.run("document.getElementById('values').click()")
    browser.wait(f"document.getElementById('slow').innerText.includes('{SECRET}')", "the value")
    browser.run("document.getElementById('values').click()")
    browser.wait(f"!document.getElementById('slow').innerText.includes('{SECRET}')", "its end")


def no_serious_fault(browser, axe):
    """axe-core in both colour schemes."""
    browser.run(Path(axe).read_text() + "; 0")
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        found = browser.run(
            "axe.run({resultTypes: ['violations']}).then(result => result.violations"
            ".filter(one => ['serious', 'critical'].includes(one.impact))"
            ".map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 120) + ' '"
            " + (node.any[0]?.message ?? '')).join('; ')))"
        )
        assert not found, f"{scheme}: {found}"


def keyboard_reaches_everything(browser):
    reached = set()
    for _ in range(60):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(browser.run("(e => e.tagName + (e.name || e.id || e.className))(document.activeElement)"))
    for wanted in ("INPUTrange", "INPUTprefix", "INPUTvalues", "SUMMARY", "DIVfigures scroll"):
        assert wanted in reached, f"{wanted} is not in {sorted(reached)}"


def quick_load(browser, url):
    took = min(browser.load(url) for _ in range(3))
    if took >= LOAD_MS_MAX:
        problem = AssertionError(f"loaded in {took:.0f} ms")
        problem.is_measured = True
        raise problem


def a_password_is_asked_for(browser, chromium_port, password):
    browser.load(f"http://127.0.0.1:{chromium_port}/")
    browser.wait("!document.getElementById('login').hidden", "the login")
    for path in ("hotkeys", "slowlog", "clients", "explain"):
        assert get(chromium_port, f"/api/{path}")[0] == 401, path
    assert browser.run("document.getElementById('prefixes').hidden")
    browser.run(
        f"document.querySelector('#login [name=password]').value = '{password}';"
        "document.querySelector('#login form').requestSubmit()"
    )
    browser.wait("document.querySelector('#clients .list').innerText.includes('No client')", "the clients")
    assert browser.run("document.getElementById('login').hidden")


def a_user_sees_the_panels_that_it_may(browser, chromium_port, server):
    import redis

    client = redis.Redis(port=server.port, password="pass word")
    client.execute_command("ACL", "SETUSER", "watcher", "on", ">secret", "+client|list", "~*")
    client.close()
    browser.load(f"http://127.0.0.1:{chromium_port}/")
    browser.wait("!document.getElementById('login').hidden", "the login")
    browser.run(
        "document.querySelector('#login [name=user]').value = 'watcher';"
        "document.querySelector('#login [name=password]').value = 'secret';"
        "document.querySelector('#login form').requestSubmit()"
    )
    browser.wait("document.querySelector('#clients .list').innerText.includes('No client')", "the clients")
    browser.wait("document.querySelector('#hot .figures').innerText.includes('may not run HOTKEYS')", "the refusal")
    browser.wait("document.querySelector('#prefixes .note').innerText.includes('may not run MEMORY')", "the refusal")
    assert browser.run("document.getElementById('login').hidden")


def a_token_logs_in(browser, chromium_port):
    browser.load(f"http://127.0.0.1:{chromium_port}/")
    browser.wait("!document.getElementById('login').hidden", "the login")
    for token, shown in (("a-token-that-nobody-has", False), (TOKEN, True)):
        browser.run(
            f"document.querySelector('#login [name=token]').value = '{token}';"
            "document.querySelector('#login form').requestSubmit()"
        )
        state = "document.querySelector('#clients .list').innerText.includes('No client')"
        browser.wait(state if shown else "!document.getElementById('login').hidden", f"the answer to {token}")
    assert browser.run("document.getElementById('login').hidden")


def check_page(checks, port, options, scratch):
    url = f"http://127.0.0.1:{port}/"
    with Browser(options.chromium, scratch / "profile") as browser:
        checks.run("the page loads in less than a second", lambda: quick_load(browser, url))
        checks.run("every panel has data", lambda: every_panel_has_data(browser))
        checks.run("every field of INFO has its meaning", lambda: every_field_has_its_meaning(browser))
        checks.run("sizes are those of the tools", lambda: sizes_are_those_of_the_tools(browser))
        checks.run("values are shown when asked for", lambda: values_are_shown_when_asked_for(browser))
        checks.run("axe-core finds no serious fault, light and dark", lambda: no_serious_fault(browser, options.axe))
        checks.run("the keyboard reaches every control", lambda: keyboard_reaches_everything(browser))
        if options.picture:
            media = [{"name": "prefers-color-scheme", "value": "light"}]
            browser.call("Emulation.setEmulatedMedia", features=media)
            browser.run("document.activeElement.blur()")
            browser.picture(Path(options.picture))
        checks.run("the console has no error", lambda: nothing(browser.console))
        tokens = scratch / "tokens"
        tokens.write_text(f"watcher {TOKEN}\n")
        asked = [("http-port", free := free_port()), ("http-token-file", tokens)]
        with Server("onggi", password="pass word", options=asked) as server:
            checks.run("keys need the password", lambda: a_password_is_asked_for(browser, free, "pass word"))
            checks.run(
                "a user sees the panels that it may see",
                lambda: a_user_sees_the_panels_that_it_may(browser, free, server),
            )
            checks.run("a token logs in", lambda: a_token_logs_in(browser, free))


def nothing(console):
    assert not console, console


def main():
    parser = argparse.ArgumentParser()
    for name in ("--axe", "--chromium", "--picture"):
        parser.add_argument(name)
    options = parser.parse_args()
    checks, port = Checks(), free_port()
    scratch = tempfile.TemporaryDirectory(prefix="onggi-test-", ignore_cleanup_errors=True)
    with scratch as directory, Server("onggi", options=[("http-port", port), ("appendonly", "yes")]) as server:
        client = load_data(server.port)
        deadline = time.monotonic() + SECONDS_MAX
        while 'redis_db_keys{db="db0"}' not in get(port, "/metrics")[2]:
            assert time.monotonic() < deadline, "no keys are counted"
            time.sleep(0.05)
        check_metrics(checks, port, HERE)
        if options.chromium:
            check_page(checks, port, options, Path(directory))
        client.close()
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
