// Expirations in all their spellings. Waits are for an event by a deadline.
import { between, equal, eventually, fails, replies } from "./harness.mjs";

export async function expirations(h) {
  const r = h.client();

  await h.check("expirations: EX, PX, EXAT, PXAT, KEEPTTL, SETEX, PSETEX", async () => {
    const now = Number((await r.time())[0]);
    await r.set("ex", "v", "EX", 100);
    await r.set("px", "v", "PX", 100_000);
    await r.set("exat", "v", "EXAT", now + 100);
    await r.set("pxat", "v", "PXAT", (now + 100) * 1000);
    await r.setex("setex", 100, "v");
    await r.psetex("psetex", 100_000, "v");
    for (const key of ["ex", "px", "exat", "pxat", "setex", "psetex"]) {
      between(await r.ttl(key), 95, 101);
      equal(await r.set(key, "w", "KEEPTTL"), "OK");
      between(await r.pttl(key), 95_000, 101_000);
    }
    equal(await r.expiretime("exat"), now + 100);
    equal(await r.pexpiretime("pxat"), (now + 100) * 1000);
  });

  await h.check("expirations: EXPIRE with NX, XX, GT, LT; PERSIST; GETEX", async () => {
    await r.set("k", "v");
    equal(await r.expire("k", 100, "XX"), 0);
    equal(await r.expire("k", 100, "NX"), 1);
    equal(await r.expire("k", 50, "GT"), 0);
    equal(await r.pexpire("k", 50_000, "LT"), 1);
    between(await r.ttl("k"), 45, 50);
    equal(await r.persist("k"), 1);
    equal(await r.getex("k", "EX", 20), "v");
    between(await r.ttl("k"), 15, 20);
    equal(await r.getex("k", "PERSIST"), "v");
    equal(await r.ttl("k"), -1);
    equal(await r.expireat("k", 1), 1);
    equal(await r.exists("k"), 0);
    await fails(r.set("k", "v", "PX", -5), "invalid expire");
  });

  await h.check("expirations: a key is there until its time and gone after it", async () => {
    const started = performance.now();
    await r.set("soon", "v", "PX", 120);
    await eventually(5000, async () => (await r.get("soon")) === null);
    between(performance.now() - started, 115, 5000);
  });

  await h.check("expirations: 10000 keys leave without being read", async () => {
    const other = h.client({ db: 8 });
    const pipeline = other.pipeline();
    for (let number = 0; number < 10_000; number += 1) {
      pipeline.set(`brief:${number}`, number, "PX", 100 + (number % 100));
    }
    await replies(pipeline);
    await eventually(20_000, async () => (await other.dbsize()) === 0);
  });

  await r.del("ex", "px", "exat", "pxat", "setex", "psetex");
}
