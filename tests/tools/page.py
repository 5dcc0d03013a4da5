"""The HTTP listener: metrics in the form that Prometheus reads, health, and the page; and what is refused."""

import http.client
import json
import re
import socket
import subprocess
import time

from directory import Client, SECONDS_MAX
from servers import free_port

# Where the page is without a setting.
PORT = 9121

SAMPLE = re.compile(
    r'^([a-z_][a-z0-9_]*)(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? (-?[0-9.eE+-]+)$'
)


def get(port, path, host=None):
    """Status, type and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type"), text


def samples(text):
    """Metrics by name and labels; fails for a line that Prometheus would not read, and for a name with two heads."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types and kind in ("gauge", "counter", "histogram"), line
            types[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.match(line)
            assert match, line
            whole = re.sub("_(bucket|count|sum)$", "", match[1])
            assert match[1] in types or types.get(whole) == "histogram", line
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


def metrics_agree_with_info(tools):
    port = free_port()
    with tools.serve("page", "--http-port", str(port)) as server, Client(server.port) as client:
        client.pipeline(
            [("SET", f"k:{n}", "v") for n in range(100)] + [("EXPIRE", "k:1", 1000), ("SELECT", 3), ("SADD", "s", 1)]
        )
        client.pipeline_of_any([("NOSUCH",), ("GET", "k:1")])
        status, kind, text = get(port, "/metrics")
        deadline = time.monotonic() + SECONDS_MAX
        while 'redis_db_keys{db="db3"}' not in text:
            # A worker counts keys once a second.
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
            status, kind, text = get(port, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8"), (status, kind)
        found = samples(text)
        for name, value in {
            "redis_up": 1,
            'redis_db_keys{db="db0"}': 100,
            'redis_db_keys_expiring{db="db0"}': 1,
            'redis_db_keys{db="db3"}': 1,
            'redis_commands_total{cmd="set"}': 100,
            'redis_errors_total{err="ERR"}': 1,
            "redis_connected_clients": 1,
            "redis_aof_enabled": 1,
        }.items():
            assert found.get(name) == value, f"{name}: {found.get(name)} instead of {value}"
        info = dict(line.split(":", 1) for line in client.call("INFO", "everything").splitlines() if ":" in line)
        told = json.loads(get(port, "/api/info")[2])
        assert info.keys() <= told.keys() | {"db0"}, info.keys() - told.keys()
        assert told["maxclients"] == 10000 and told["tcp_port"] == server.port, told
        for path in ("/healthz", "/readyz"):
            assert get(port, path)[::2] == (200, "ok\n"), path
        status, kind, text = get(port, "/")
        assert status == 200 and kind.startswith("text/html") and "<title>Onggi</title>" in text
        assert get(port, "/nothing")[0] == 404
        # The name of another site that leads here.
        assert get(port, "/metrics", host="evil.example")[0] == 421
        # An open connection does not keep the server.
        with socket.create_connection(("127.0.0.1", port)):
            server.shut_down()


def the_port_is_fixed(tools):
    port = free_port()
    with tools.serve("page-loads", "--http-port", str(port)) as server, Client(server.port) as client:
        client.pipeline_of_any([("CONFIG", "SET", "http-port", "1")])
        assert client.call("CONFIG", "GET", "http-port") == ["http-port", str(port)]


def a_port_in_use_is_named(tools):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = tools.run(
            "serve", "--port", "0", "--unixsocket",
            tools.scratch / "page.sock",
            "--dir",
            tools.scratch / "page-taken",
            "--http-port", port, status=1,
        )
        assert f"127.0.0.1:{port} (http-port): Address already in use" in told, told


def figures_are_sent_by_a_program_that_can(tools):
    """The program of a release cannot: it refuses the settings, at a start and in a check of a configuration."""
    words = ("--otlp-endpoint", "http://127.0.0.1:4318/v1/metrics")
    told = tools.run("serve", *words, "--dir", tools.scratch / "page-otlp", status=1)
    assert "otlp-endpoint is set, and this program was built without OTLP: build it with" in told, told
    (tools.scratch / "otlp.conf").write_text("otlp-interval 5\n")
    told = tools.run("config", "check", tools.scratch / "otlp.conf", status=1)
    assert "otlp-interval is set, and this program was built without OTLP" in told, told


def a_port_that_no_setting_asks_for_is_a_warning(tools):
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        except OSError:
            # Another program has it, which is all that this test needs.
            pass
        directory = tools.scratch / "page-default"
        words = [tools.onggi, "serve", "--port", str(free_port()), "--bind", "127.0.0.1", "--dir", str(directory)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "page, metrics:" in line:
                    break
            told = "".join(lines)
            assert f"no page and no metrics: another program uses 127.0.0.1:{PORT}" in told, told
            assert lines[-1].rstrip().endswith("page, metrics:  none"), told
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, process.returncode


def run(tools):
    tools.check("metrics, health and page say what INFO says", lambda: metrics_agree_with_info(tools))
    tools.check("the port of the page is fixed at the start", lambda: the_port_is_fixed(tools))
    tools.check("a port of the page that is in use is named", lambda: a_port_in_use_is_named(tools))
    tools.check("a program without OTLP refuses its settings", lambda: figures_are_sent_by_a_program_that_can(tools))
    tools.check(
        "the usual port of the page in use is a warning", lambda: a_port_that_no_setting_asks_for_is_a_warning(tools)
    )
