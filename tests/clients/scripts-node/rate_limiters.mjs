// rate-limiter-flexible: exact numbers of points, whatever the number of callers.
import { Redis } from "ioredis";
import { BurstyRateLimiter, RateLimiterQueue, RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible";
import { equal, holds, numbers, rejection } from "./harness.mjs";

export async function rateLimiters(h) {
  const storeClient = new Redis({ ...h.connection, enableOfflineQueue: true });
  const limiter = (keyPrefix, options) => new RateLimiterRedis({ storeClient, keyPrefix, ...options });

  await h.check("rate-limiter-flexible: points are consumed, and the one too many is refused", async () => {
    const login = limiter("login", { points: 3, duration: 60 });
    for (const left of [2, 1, 0]) {
      equal((await login.consume("ann")).remainingPoints, left);
    }
    const refused = await rejection(login.consume("ann"));
    equal([refused.remainingPoints, refused.consumedPoints], [0, 4]);
    holds(refused.msBeforeNext > 55_000 && refused.msBeforeNext <= 60_000, `${refused.msBeforeNext} ms before the next`);
    equal((await login.consume("bob", 2)).remainingPoints, 1);
    equal((await login.get("bob")).consumedPoints, 2);
    equal((await login.reward("bob", 1)).consumedPoints, 1);
    equal((await login.penalty("bob", 5)).consumedPoints, 6);
    equal([await login.delete("bob"), await login.get("bob"), await login.delete("bob")], [true, null, false]);
  });

  await h.check("rate-limiter-flexible: of 200 callers at once exactly 50 pass", async () => {
    const api = limiter("api", { points: 50, duration: 60 });
    const results = await Promise.allSettled(numbers(200).map(() => api.consume("all")));
    equal(results.filter(({ status }) => status === "fulfilled").length, 50);
    equal((await api.get("all")).consumedPoints, 200);
  });

  await h.check("rate-limiter-flexible: a window ends, a block lasts, and set replaces", async () => {
    const short = limiter("short", { points: 1, duration: 1 });
    let refused;
    while (!refused) {
      await short.consume("ann").catch((result) => (refused = result));
    }
    const { msBeforeNext } = refused;
    holds(msBeforeNext <= 1000, `${msBeforeNext} ms`);
    await new Promise((resolve) => setTimeout(resolve, msBeforeNext + 20));
    equal((await short.consume("ann")).remainingPoints, 0);
    const strict = limiter("strict", { points: 1, duration: 1, blockDuration: 600 });
    await strict.consume("ann");
    holds((await rejection(strict.consume("ann"))).msBeforeNext > 500_000, "not blocked");
    await strict.block("bob", 30);
    holds((await rejection(strict.consume("bob"))).msBeforeNext > 25_000, "not blocked");
    await strict.set("cat", 7, 100);
    equal((await strict.get("cat")).consumedPoints, 7);
    const forever = limiter("forever", { points: 5, duration: 0 });
    equal((await forever.consume("ann")).msBeforeNext, -1);
  });

  await h.check("rate-limiter-flexible: bursts, unions, queues and a script of the user", async () => {
    const bursty = new BurstyRateLimiter(limiter("slow", { points: 1, duration: 60 }), limiter("burst", { points: 2, duration: 60 }));
    for (const _ of numbers(3)) await bursty.consume("ann");
    await rejection(bursty.consume("ann"));
    const union = new RateLimiterUnion(limiter("minute", { points: 2, duration: 60 }), limiter("hour", { points: 1, duration: 3600 }));
    await union.consume("ann");
    equal(Object.keys(await rejection(union.consume("ann"))), ["hour"]);
    const queue = new RateLimiterQueue(limiter("queue", { points: 5, duration: 60 }));
    equal(await Promise.all(numbers(5).map(() => queue.removeTokens(1))), [4, 3, 2, 1, 0]);
    const own = limiter("own", {
      points: 5, duration: 60,
      customIncrTtlLuaScript: `local ok = redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
        local consumed = redis.call('incrby', KEYS[1], ARGV[1])
        return {consumed, redis.call('pttl', KEYS[1])}`,
    });
    equal((await own.consume("ann", 2)).remainingPoints, 3);
  });
  storeClient.disconnect();
}
