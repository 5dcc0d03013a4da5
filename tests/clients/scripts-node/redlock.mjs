// Redlock: acquire, extend and release, on one server and by majority of three databases.
import { Redis } from "ioredis";
import Redlock from "redlock";
import { equal, holds, numbers, rejection } from "./harness.mjs";

export async function redlock(h) {
  const clients = numbers(3).map((db) => new Redis({ ...h.connection, db }));
  const [one] = clients;
  const once = new Redlock([one], { retryCount: 0 });

  await h.check("redlock: a lock excludes until it is released", async () => {
    const lock = await once.acquire(["account:1"], 30_000);
    const left = await one.pttl("account:1");
    holds(left > 20_000 && left <= 30_000, `${left} ms left`);
    equal((await rejection(once.acquire(["account:1"], 30_000))).name, "LockError");
    await lock.unlock();
    equal(await one.exists("account:1"), 0);
    await (await once.acquire(["account:1"], 30_000)).unlock();
    equal((await rejection(lock.unlock())).name, "LockError");
  });

  await h.check("redlock: an extension lasts, and fails for a lost lock", async () => {
    const lock = await once.acquire(["account:2"], 5_000);
    const longer = await lock.extend(60_000);
    holds((await one.pttl("account:2")) > 50_000, "not extended");
    await one.set("account:2", "another");
    equal((await rejection(longer.extend(60_000))).name, "LockError");
    equal((await rejection(longer.unlock())).name, "LockError");
    equal(await one.get("account:2"), "another");
  });

  await h.check("redlock: several resources are locked as one", async () => {
    const held = await once.acquire(["b"], 30_000);
    await rejection(once.acquire(["a", "b", "c"], 30_000));
    equal(await one.exists("a", "b", "c"), 1);
    await held.unlock();
    const all = await once.acquire(["a", "b", "c"], 30_000);
    equal(await one.exists("a", "b", "c"), 3);
    await all.unlock();
    equal(await one.exists("a", "b", "c"), 0);
  });

  await h.check("redlock: an expired lock is free", async () => {
    await once.acquire(["brief"], 100);
    const patient = new Redlock([one], { retryCount: 100, retryDelay: 20, retryJitter: 0 });
    const lock = await patient.acquire(["brief"], 30_000);
    await lock.unlock();
  });

  await h.check("redlock: a majority of three decides", async () => {
    const three = new Redlock(clients, { retryCount: 0 });
    await clients[0].set("shared", "another");
    const lock = await three.acquire(["shared"], 30_000);
    equal(await Promise.all(clients.map((client) => client.get("shared"))), ["another", lock.value, lock.value]);
    await rejection(three.acquire(["shared"], 30_000));
    await lock.unlock();
    await clients[1].set("shared", "another");
    await rejection(three.acquire(["shared"], 30_000));
    // The one database that gave the lock has it no more.
    equal(await clients[2].get("shared"), null);
  });

  await h.check("redlock: 200 increments under the lock lose none", async () => {
    const patient = new Redlock([one], { retryCount: -1, retryDelay: 2, retryJitter: 5 });
    await one.set("balance", 0);
    await Promise.all(numbers(8).map(async () => {
      for (const _ of numbers(25)) {
        const lock = await patient.acquire(["lock:balance"], 30_000);
        await one.set("balance", Number(await one.get("balance")) + 1);
        await lock.unlock();
      }
    }));
    equal(await one.get("balance"), "200");
  });
  clients.forEach((client) => client.disconnect());
}
