"""The runner's own tests."""

import self_test
from job import Stage

STAGE = Stage("runner", "the runner counts failures, skips and time-outs", self_test.run)
