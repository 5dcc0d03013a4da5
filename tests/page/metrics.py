"""/metrics in the parsers of Prometheus' own client library, its names, and those that a dashboard needs."""

import http.client
import re

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

SECONDS_MAX = 60
OPEN = "application/openmetrics-text"


def get(port, path, **headers):
    """Status, type and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS_MAX)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type"), text


def names_of(families):
    """Without the suffix that the parsers add to counters which have none."""
    return {sample.name.removesuffix("_total") for family in families for sample in family.samples}


def written(port):
    """Names of samples as they stand in the text."""
    lines = get(port, "/metrics")[2].splitlines()
    return {re.split("[{ ]", line)[0] for line in lines if not line.startswith("#")}


def listed(path):
    return {line for line in path.read_text().split("\n") if line and not line.startswith("#")}


def both_parsers_read_them(port):
    kind, text = get(port, "/metrics")[1:]
    assert kind.startswith("text/plain; version=0.0.4"), kind
    plain = names_of(prometheus(text))
    kind, text = get(port, "/metrics", Accept=f"{OPEN};version=1.0.0,text/plain;q=0.5")[1:]
    assert kind.startswith(OPEN), kind
    other = names_of(open_metrics(text))
    assert plain == other, plain ^ other


def names_are_those_of_the_list(port, path):
    found, wanted = written(port), listed(path)
    assert found == wanted, f"new: {sorted(found - wanted)}; gone: {sorted(wanted - found)}"


def the_dashboard_finds_its_names(port, path):
    found, needed = written(port), listed(path)
    assert needed <= found, f"no {sorted(needed - found)}"


def check_metrics(checks, port, home):
    checks.run("both parsers of prometheus_client read /metrics", lambda: both_parsers_read_them(port))
    checks.run("the names are those of names.txt", lambda: names_are_those_of_the_list(port, home / "names.txt"))
    checks.run(
        "the dashboard of redis_exporter finds its names",
        lambda: the_dashboard_finds_its_names(port, home / "dashboard.txt"),
    )
