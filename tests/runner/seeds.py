"""Where random tests get their seed from: `tests/seed` in `make test`, a fresh one for each piece of `make test-long`.

`ONGGI_TEST_SEED` in the environment goes before both, to repeat a run that printed it.
"""

import os
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tests" / "seed"
NAME = "ONGGI_TEST_SEED"


def fixed():
    """The seed of `make test`."""
    lines = [line.split("#", 1)[0].strip() for line in PATH.read_text().splitlines()]
    return int(os.environ.get(NAME) or next(line for line in lines if line))


def fresh():
    """A seed of its own for a piece of a long run; below 2^32, which every generator takes."""
    return int(os.environ.get(NAME) or random.SystemRandom().randrange(1, 1 << 32))


def environment(seed):
    """What programs read it from: ours, and those that use proptest."""
    return {NAME: str(seed), "PROPTEST_RNG_SEED": str(seed)}
