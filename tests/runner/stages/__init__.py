"""The stages in the order they run. A new stage is a file here with a `STAGE`, and its name in this list."""

from importlib import import_module

ORDER = [
    "runner", "format", "lints", "unit", "instructions", "differential", "clients", "tls", "memcached", "ssdb",
    "redis_tools", "tools", "page", "site", "papers", "bad_input", "big_collections", "disk", "tier", "crash", "kill",
    "power_cut", "disk_faults", "shuttle", "miri", "tsan", "fuzz", "supply",
]

STAGES = [import_module(f"stages.{name}").STAGE for name in ORDER]
