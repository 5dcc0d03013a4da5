// BullMQ: every feature that has a script of its own.
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from "bullmq";
import { equal, holds, numbers, rejection, until } from "./harness.mjs";

const QUIET = { removeOnComplete: false, drainDelay: 1 };

export async function bullmq(h) {
  const connection = h.connection;

  /** Runs the body with a queue, its events, and a function that starts workers; all are closed at the end. */
  async function withQueue(name, body) {
    const queue = new Queue(name, { connection });
    // From the first event on: an event before its first read would be missed.
    const events = new QueueEvents(name, { connection, lastEventId: "0" });
    const open = [events, queue];
    const worker = (run, options = {}) => {
      const made = new Worker(name, run, { connection, ...QUIET, ...options });
      made.on("error", () => {});
      open.unshift(made);
      return made;
    };
    try {
      await events.waitUntilReady();
      await body({ queue, events, worker });
    } finally {
      await Promise.all(open.map((one) => one.close(true)));
    }
  }

  await h.check("bullmq: jobs run by priority, and first in, first out within one", () =>
    withQueue("priorities", async ({ queue, worker }) => {
      const wanted = [["plain", 0], ["late", 9], ["first", 1], ["middle", 5], ["second", 1], ["last", 100_000]];
      for (const [name, priority] of wanted) {
        await queue.add(name, {}, priority ? { priority } : {});
      }
      equal(await queue.getCountsPerPriority([0, 1, 5, 9]), { 0: 1, 1: 2, 5: 1, 9: 1 });
      const seen = [];
      worker(async (job) => void seen.push(job.name));
      await until(() => seen.length === wanted.length);
      equal(seen, ["plain", "first", "second", "middle", "late", "last"]);
    }));

  await h.check("bullmq: a failed job is retried with backoff, and keeps its attempts and log", () =>
    withQueue("retries", async ({ queue, events, worker }) => {
      worker(async (job) => {
        await job.log(`attempt ${job.attemptsMade}`);
        await job.updateProgress(50 + job.attemptsMade);
        if (job.attemptsMade < 2) throw new Error(`no ${job.attemptsMade}`);
        return { attempts: job.attemptsMade };
      });
      const job = await queue.add("shaky", { n: 1 }, { attempts: 3, backoff: { type: "exponential", delay: 20 } });
      equal(await job.waitUntilFinished(events), { attempts: 2 });
      const after = await queue.getJob(job.id);
      equal([after.attemptsMade, after.progress, after.failedReason ?? null], [3, 52, "no 1"]);
      equal((await queue.getJobLogs(job.id)).logs, ["attempt 0", "attempt 1", "attempt 2"]);
      equal(await after.getState(), "completed");
    }));

  await h.check("bullmq: failures that last, and their retry by hand", () =>
    withQueue("failures", async ({ queue, events, worker }) => {
      let broken = true;
      worker(async (job) => {
        if (broken) throw job.name === "never" ? new UnrecoverableError("never") : new Error("down");
        return job.name;
      });
      const jobs = await queue.addBulk([{ name: "never", data: {}, opts: { attempts: 5 } }, { name: "down", data: {} }]);
      equal((await rejection(jobs[0].waitUntilFinished(events))).message, "never");
      equal((await rejection(jobs[1].waitUntilFinished(events))).message, "down");
      equal((await queue.getFailed()).map((job) => job.attemptsMade), [1, 1]);
      broken = false;
      await queue.retryJobs({ state: "failed" });
      await until(async () => (await queue.getCompletedCount()) === 2);
      equal((await queue.getJobCounts("failed", "completed", "wait")), { failed: 0, completed: 2, wait: 0 });
    }));

  await h.check("bullmq: a delayed job waits for its time, and can be promoted or moved", () =>
    withQueue("delays", async ({ queue, events, worker }) => {
      const soon = await queue.add("soon", {}, { delay: 200 });
      const far = await queue.add("far", {}, { delay: 3_600_000 });
      const moved = await queue.add("moved", {}, { delay: 3_600_000 });
      equal(await queue.getDelayedCount(), 3);
      worker(async (job) => job.name);
      await soon.waitUntilFinished(events);
      const done = await queue.getJob(soon.id);
      holds(done.processedOn - done.timestamp >= 200, `ran after ${done.processedOn - done.timestamp} ms`);
      await moved.changeDelay(50);
      equal(await moved.waitUntilFinished(events), "moved");
      await far.promote();
      equal(await far.waitUntilFinished(events), "far");
      equal(await queue.getDelayedCount(), 0);
    }));

  await h.check("bullmq: a flow runs its children first, and the parent sees their values", async () => {
    const flow = new FlowProducer({ connection });
    try {
      await withQueue("flow", async ({ queue, events, worker }) => {
        const tree = await flow.add({
          name: "parent", queueName: "flow", data: {},
          children: numbers(5).map((n) => ({
            name: "child", queueName: "flow", data: { n },
            children: n === 0 ? [{ name: "grandchild", queueName: "flow", data: { n: 100 } }] : [],
          })),
        });
        equal(await queue.getJobCounts("waiting-children", "wait"), { "waiting-children": 2, wait: 5 });
        const order = [];
        worker(async (job) => {
          order.push(job.name);
          const below = Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0);
          return (job.data.n ?? 0) + below;
        }, { concurrency: 3 });
        equal(await tree.job.waitUntilFinished(events), 110);
        equal([order.length, order.at(-1)], [7, "parent"]);
        const dependencies = await (await queue.getJob(tree.job.id)).getDependenciesCount();
        equal([dependencies.processed, dependencies.unprocessed], [5, 0]);
      });
    } finally {
      await flow.close();
    }
  });

  await h.check("bullmq: a failed child fails its parent, or not, as the flow says", async () => {
    const flow = new FlowProducer({ connection });
    try {
      await withQueue("broken-flow", async ({ queue, events, worker }) => {
        const make = (name, opts) => flow.add({
          name, queueName: "broken-flow", data: {},
          children: [{ name: "bad", queueName: "broken-flow", data: {}, opts }, { name: "good", queueName: "broken-flow", data: {} }],
        });
        const strict = await make("strict", { failParentOnFailure: true });
        const lenient = await make("lenient", { ignoreDependencyOnFailure: true });
        worker(async (job) => {
          if (job.name === "bad") throw new Error("bad");
          return job.name;
        });
        holds((await rejection(strict.job.waitUntilFinished(events))).message.includes("failed"), "another reason");
        equal(await lenient.job.waitUntilFinished(events), "lenient");
        equal(Object.values(await (await queue.getJob(lenient.job.id)).getIgnoredChildrenFailures()), ["bad"]);
      });
    } finally {
      await flow.close();
    }
  });

  await h.check("bullmq: a scheduler repeats a job until its limit", () =>
    withQueue("schedule", async ({ queue, worker }) => {
      await queue.upsertJobScheduler("tick", { every: 60, limit: 3 }, { name: "tick", data: { kept: true } });
      await queue.upsertJobScheduler("nightly", { pattern: "0 0 3 * * *", tz: "UTC" });
      equal(await queue.getJobSchedulersCount(), 2);
      const ticks = [];
      worker(async (job) => void (job.name === "tick" && ticks.push(job.data.kept)));
      await until(() => ticks.length === 3);
      const nightly = await queue.getJobScheduler("nightly");
      equal([nightly.pattern, new Date(nightly.next).getUTCHours()], ["0 0 3 * * *", 3]);
      equal(await queue.removeJobScheduler("nightly"), true);
      equal(await queue.removeJobScheduler("nightly"), false);
      equal(ticks, [true, true, true]);
    }));

  await h.check("bullmq: duplicates are refused while the first job lives", () =>
    withQueue("duplicates", async ({ queue, events, worker }) => {
      const seen = new Promise((resolve) => events.once("deduplicated", resolve));
      const first = await queue.add("once", { n: 1 }, { deduplication: { id: "same" } });
      const second = await queue.add("once", { n: 2 }, { deduplication: { id: "same" } });
      equal([second.id, await queue.getWaitingCount()], [first.id, 1]);
      const { jobId, deduplicationId } = await seen;
      equal([jobId, deduplicationId], [first.id, "same"]);
      const named = await queue.add("named", { n: 1 }, { jobId: "my-id" });
      await queue.add("named", { n: 2 }, { jobId: "my-id" });
      equal([(await queue.getJob("my-id")).data, await queue.getWaitingCount()], [{ n: 1 }, 2]);
      worker(async (job) => job.data.n);
      equal([await first.waitUntilFinished(events), await named.waitUntilFinished(events)], [1, 1]);
      const third = await queue.add("once", { n: 3 }, { deduplication: { id: "same" } });
      equal(await third.waitUntilFinished(events), 3);
    }));

  await h.check("bullmq: a rate limit spreads the jobs", () =>
    withQueue("limited", async ({ queue, worker }) => {
      await queue.addBulk(numbers(6).map((n) => ({ name: "call", data: { n } })));
      const starts = [Date.now()];
      worker(async () => void starts.push(Date.now()), { limiter: { max: 2, duration: 250 }, concurrency: 4 });
      await until(() => starts.length === 7);
      holds(starts[6] - starts[0] >= 490, `six jobs in ${starts[6] - starts[0]} ms`);
    }));

  await h.check("bullmq: global concurrency holds over two workers", () =>
    withQueue("concurrency", async ({ queue, worker }) => {
      await queue.setGlobalConcurrency(2);
      await queue.addBulk(numbers(40).map((n) => ({ name: "job", data: { n } })));
      let now = 0;
      let most = 0;
      let done = 0;
      const run = async () => {
        most = Math.max(most, ++now);
        // The first waits for the second.
        await until(() => most > 1);
        now -= 1;
        done += 1;
      };
      worker(run, { concurrency: 10 });
      worker(run, { concurrency: 10 });
      await until(() => done === 40);
      equal(most, 2);
    }));

  await h.check("bullmq: a job of a lost worker stalls and runs again", () =>
    withQueue("stalled", async ({ queue, events, worker }) => {
      const stalled = new Promise((resolve) => events.once("stalled", resolve));
      const job = await queue.add("lost", {});
      let taken;
      const started = new Promise((resolve) => (taken = resolve));
      // It holds the job and never renews its lock, as a worker does whose process is gone.
      worker(() => new Promise(taken), { lockDuration: 150, skipLockRenewal: true, skipStalledCheck: true });
      await started;
      worker(async () => "rescued", { stalledInterval: 100 });
      equal(await job.waitUntilFinished(events), "rescued");
      equal((await stalled).jobId, job.id);
      equal((await queue.getJob(job.id)).stalledCounter, 1);
    }));

  await h.check("bullmq: a thousand jobs on three workers each run once", () =>
    withQueue("bulk", async ({ queue, worker }) => {
      await queue.addBulk(numbers(1000).map((n) => ({ name: "job", data: { n, text: "한글 \u0000 \r\n".repeat(n % 7) } })));
      equal(await queue.getWaitingCount(), 1000);
      const seen = new Map();
      for (const _ of numbers(3)) {
        worker(async (job) => {
          equal(job.data.text, "한글 \u0000 \r\n".repeat(job.data.n % 7));
          seen.set(job.data.n, (seen.get(job.data.n) ?? 0) + 1);
          return job.data.n * 2;
        }, { concurrency: 20 });
      }
      await until(async () => (await queue.getCompletedCount()) === 1000);
      equal([seen.size, Math.max(...seen.values()), await queue.getFailedCount()], [1000, 1, 0]);
      const values = (await queue.getCompleted(0, 1999)).map((job) => job.returnvalue).sort((a, b) => a - b);
      equal(values, numbers(1000).map((n) => n * 2));
      equal((await queue.clean(0, 400, "completed")).length, 400);
      equal(await queue.getCompletedCount(), 600);
    }));

  await h.check("bullmq: pause, remove, drain and obliterate", () =>
    withQueue("admin", async ({ queue, worker }) => {
      await queue.pause();
      const jobs = await queue.addBulk(numbers(10).map((n) => ({ name: "job", data: { n }, opts: n > 7 ? { delay: 60_000 } : {} })));
      let ran = 0;
      const one = worker(async () => void (ran += 1));
      await one.waitUntilReady();
      equal([await queue.isPaused(), await queue.getJobCountByTypes("paused", "wait"), ran], [true, 8, 0]);
      equal(await queue.remove(jobs[0].id), 1);
      equal(await queue.getJob(jobs[0].id) ?? null, null);
      await jobs[1].updateData({ n: "new" });
      equal((await queue.getJob(jobs[1].id)).data, { n: "new" });
      await queue.resume();
      await until(() => ran === 7);
      await one.close();
      await queue.add("left", {});
      await queue.drain(true);
      equal(await queue.getJobCounts("wait", "delayed"), { wait: 0, delayed: 0 });
      await queue.obliterate({ force: true });
      equal((await queue.getJobs()).length, 0);
    }));
}
