"""What the workers of RQ run: they import it by name."""

from rq import get_current_job


def double(number):
    return 2 * number


def total():
    """The sum of what the jobs returned that this one waited for."""
    job = get_current_job()
    return sum(dependency.return_value() for dependency in job.fetch_dependencies())


def fail(text):
    raise ValueError(text)


def fail_until(attempts):
    """Fails until it was called often enough."""
    job = get_current_job()
    tries = job.meta.get("tries", 0) + 1
    job.meta["tries"] = tries
    job.save_meta()
    if tries < attempts:
        raise ValueError(f"try {tries}")
    return tries
