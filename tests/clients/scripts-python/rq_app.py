"""RQ 3: unique jobs that are refused, scheduled jobs that run, dependencies, retries, groups and rate limits."""

import logging
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import rq_jobs
from rq import Callback, Queue, Repeat, Retry, SimpleWorker
from rq.exceptions import DuplicateJobError
from rq.group import Group
from rq.job import Job
from rq.rate_limit import RateLimit

HERE = Path(__file__).resolve().parent
SECONDS_MAX = 30


def run(h):
    logging.getLogger("rq").setLevel(logging.CRITICAL)
    client = h.client()

    def queue(name):
        return Queue(name, connection=client)

    def work(*queues):
        """Runs a worker until the queues are empty."""
        SimpleWorker(list(queues), connection=client).work(burst=True, logging_level="CRITICAL")

    def unique_jobs_are_refused():
        jobs = queue("unique")
        first = jobs.enqueue(rq_jobs.double, 4, unique=True, job_id="once")
        h.raises(DuplicateJobError, "once", lambda: jobs.enqueue(rq_jobs.double, 5, unique=True, job_id="once"))
        h.raises(DuplicateJobError, "once",
                 lambda: jobs.enqueue_in(timedelta(hours=1), rq_jobs.double, 6, unique=True, job_id="once"))
        h.equal((jobs.count, Job.fetch("once", connection=client).args), (1, (4,)))
        front = jobs.enqueue(rq_jobs.double, 5, unique=True, job_id="front", at_front=True)
        h.equal(jobs.job_ids, ["front", "once"])
        work(jobs)
        h.equal([job.return_value(refresh=True) for job in (first, front)], [8, 10])
        h.raises(DuplicateJobError, "once", lambda: jobs.enqueue(rq_jobs.double, 5, unique=True, job_id="once"))
        first.delete()
        jobs.enqueue(rq_jobs.double, 5, unique=True, job_id="once")
        later = jobs.enqueue_in(timedelta(hours=1), rq_jobs.double, 6, unique=True, job_id="later")
        h.equal((jobs.count, later.id in jobs.scheduled_job_registry), (1, True))

    def scheduled_jobs_run():
        jobs = queue("scheduled")
        begin = datetime.now(timezone.utc)
        # Its times are whole seconds, rounded down.
        soon = jobs.enqueue_in(timedelta(seconds=2), rq_jobs.double, 1)
        at = jobs.enqueue_at(begin + timedelta(seconds=1), rq_jobs.double, 2, unique=True, job_id="at")
        never = jobs.enqueue_in(timedelta(hours=1), rq_jobs.double, 3)
        repeated = jobs.enqueue(rq_jobs.double, 7, repeat=Repeat(times=2, interval=1))
        h.equal((soon.get_status(), len(jobs.scheduled_job_registry), jobs.count), ("scheduled", 3, 1))
        with worker(h, "scheduled"):
            h.eventually(lambda: soon.is_finished and at.is_finished, SECONDS_MAX)
            h.eventually(lambda: len(repeated.results()) == 3, SECONDS_MAX)
        h.equal([soon.return_value(refresh=True), at.return_value(refresh=True)], [2, 4])
        soon.refresh()
        h.equal(soon.started_at.replace(tzinfo=timezone.utc) - begin >= timedelta(seconds=1), True)
        h.equal(jobs.scheduled_job_registry.get_job_ids(), [never.id])

    def dependencies_retries_and_callbacks():
        jobs = queue("dependent")
        parents = [jobs.enqueue(rq_jobs.double, number) for number in range(5)]
        child = jobs.enqueue(rq_jobs.total, depends_on=parents)
        h.equal(child.get_status(), "deferred")
        shaky = jobs.enqueue(rq_jobs.fail_until, 3, retry=Retry(max=4))
        broken = jobs.enqueue(rq_jobs.fail, "broken", on_failure=Callback(failed))
        after = jobs.enqueue(rq_jobs.double, 1, depends_on=broken)
        work(jobs)
        h.equal((child.return_value(refresh=True), shaky.return_value(refresh=True)), (20, 3))
        h.equal((broken.get_status(), broken.get_meta()), ("failed", {"failed": "broken"}))
        h.equal((after.get_status(), jobs.failed_job_registry.get_job_ids()), ("deferred", [broken.id]))
        broken.requeue()
        h.equal(jobs.job_ids, [broken.id])

    def groups_and_many_jobs():
        jobs = queue("many")
        group = Group.create(connection=client)
        made = group.enqueue_many(jobs, [Queue.prepare_data(rq_jobs.double, (number,)) for number in range(200)])
        h.equal((len(made), jobs.count), (200, 200))
        work(jobs)
        h.equal(sorted(job.return_value(refresh=True) for job in group.get_jobs()), [2 * n for n in range(200)])
        h.equal((jobs.count, jobs.finished_job_registry.count), (0, 200))
        jobs.enqueue(rq_jobs.double, 1)
        h.equal((jobs.delete(delete_jobs=True), client.exists(jobs.key)), (None, 0))

    def rate_limits():
        jobs = queue("limited")
        made = [jobs.enqueue(rq_jobs.double, n, rate_limit=RateLimit("api", concurrency=2)) for n in range(6)]
        h.equal([job.get_status() for job in made], ["queued"] * 2 + ["rate_limited"] * 4)
        h.equal(jobs.count, 2)
        work(jobs)
        h.equal([job.return_value(refresh=True) for job in made], [0, 2, 4, 6, 8, 10])

    h.check("rq: a unique job is refused until it is deleted", unique_jobs_are_refused)
    h.check("rq: scheduled and repeated jobs run at their times", scheduled_jobs_run)
    h.check("rq: dependencies, retries and callbacks", dependencies_retries_and_callbacks)
    h.check("rq: groups, and queues with their jobs, are removed", groups_and_many_jobs)
    h.check("rq: rate limits hold jobs back", rate_limits)


def failed(job, _connection, _kind, problem, _trace):
    """Runs after a failure."""
    job.meta["failed"] = str(problem)
    job.save_meta()


@contextmanager
def worker(h, queue):
    """A worker of its own process that forks for each job, with a scheduler."""
    command = [Path(sys.executable).parent / "rq", "worker", "--with-scheduler", "--quiet", "--path", HERE,
               "--url", f"redis://:{h.password}@{h.host}:{h.port}", queue]
    process = subprocess.Popen(command, cwd=HERE)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=SECONDS_MAX)
