// Bull, the queue before BullMQ: it has scripts of its own.
import Queue from "bull";
import { equal, holds, numbers, rejection, until } from "./harness.mjs";

export async function bull(h) {
  /** Runs the body with a queue, which is closed at the end. */
  async function withQueue(name, body, options = {}) {
    const queue = new Queue(name, { redis: h.connection, prefix: "bull3", ...options });
    queue.on("error", () => {});
    try {
      await queue.isReady();
      await body(queue);
    } finally {
      await queue.close(true);
    }
  }

  await h.check("bull: priorities and LIFO", () =>
    withQueue("priorities", async (queue) => {
      await queue.pause();
      for (const [name, priority] of [["b", 2], ["c", 3], ["a", 1], ["b2", 2]]) {
        await queue.add(name, {}, { priority });
      }
      await queue.add("top", {}, { lifo: true });
      const seen = [];
      queue.process("*", async (job) => void seen.push(job.name));
      await queue.resume();
      await until(() => seen.length === 5);
      equal(seen, ["top", "a", "b", "b2", "c"]);
    }));

  await h.check("bull: retries, progress and the value of a job", () =>
    withQueue("retries", async (queue) => {
      queue.process(async (job) => {
        await job.progress(10 * (job.attemptsMade + 1));
        if (job.attemptsMade < 2) throw new Error("again");
        return { n: job.data.n + 1 };
      });
      const job = await queue.add({ n: 41 }, { attempts: 3, backoff: 20 });
      equal(await job.finished(), { n: 42 });
      const after = await queue.getJob(job.id);
      equal([after.attemptsMade, after.progress(), await after.isCompleted()], [2, 30, true]);
      const bad = await queue.add({}, { attempts: 1, jobId: "bad" });
      equal((await rejection(bad.finished())).message, "again");
      equal(await queue.getFailedCount(), 1);
    }));

  await h.check("bull: delays, promotion and repeats", () =>
    withQueue("delays", async (queue) => {
      const ran = [];
      queue.process("*", async (job) => void ran.push([job.name, Date.now() - job.timestamp]));
      const soon = await queue.add("soon", {}, { delay: 200 });
      const far = await queue.add("far", {}, { delay: 3_600_000 });
      await soon.finished();
      holds(ran[0][0] === "soon" && ran[0][1] >= 200, `ran ${ran[0]}`);
      await far.promote();
      await far.finished();
      await queue.add("tick", {}, { repeat: { every: 60, limit: 3 } });
      await until(() => ran.filter(([name]) => name === "tick").length === 3);
    }));

  await h.check("bull: a rate limit spreads the jobs", () =>
    withQueue("limited", async (queue) => {
      const starts = [Date.now()];
      await queue.addBulk(numbers(6).map((n) => ({ data: { n } })));
      queue.process(4, async () => void starts.push(Date.now()));
      await until(() => starts.length === 7);
      holds(starts[6] - starts[0] >= 490, `six jobs in ${starts[6] - starts[0]} ms`);
    }, { limiter: { max: 2, duration: 250 } }));

  await h.check("bull: a job of a lost worker stalls and runs again", async () => {
    // The first queue takes the job and never renews its lock, as a process does that is gone.
    const settings = { lockDuration: 150, lockRenewTime: 60_000, stalledInterval: 0 };
    const lost = new Queue("stalled", { redis: h.connection, prefix: "bull3", settings });
    lost.on("error", () => {});
    const job = await lost.add({});
    await new Promise((resolve) => void lost.process(() => new Promise(resolve)));
    await withQueue("stalled", async (queue) => {
      const stalled = new Promise((resolve) => queue.on("stalled", resolve));
      queue.process(async () => "rescued");
      equal((await stalled).id, job.id);
      equal(await (await queue.getJob(job.id)).finished(), "rescued");
    }, { settings: { stalledInterval: 100 } });
    await lost.close(true);
  });

  await h.check("bull: five hundred jobs each run once, and are cleaned", () =>
    withQueue("bulk", async (queue) => {
      await queue.addBulk(numbers(500).map((n) => ({ data: { n } })));
      const seen = [];
      queue.process(25, async (job) => void seen.push(job.data.n));
      await until(async () => (await queue.getCompletedCount()) === 500);
      equal(seen.sort((a, b) => a - b), numbers(500));
      // Its clean has the time of the client, and takes what is older than the grace.
      await until(async () => {
        await queue.clean(0, "completed");
        return (await queue.getCompletedCount()) === 0;
      });
      await queue.pause();
      await queue.add({ n: "left" });
      await queue.obliterate({ force: true });
      equal((await queue.getJobCounts()).paused, 0);
    }));
}
