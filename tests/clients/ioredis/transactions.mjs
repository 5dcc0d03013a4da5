// MULTI, EXEC, DISCARD and WATCH, with conflicts made on purpose and by contention.
import { equal, eventually, fails } from "./harness.mjs";

export async function transactions(h) {
  const r = h.client();
  const other = h.client();

  await h.check("transactions: results come in order", async () => {
    const results = await r.multi().set("t", 1).incrby("t", 9).get("t").exec();
    equal(results, [[null, "OK"], [null, 10], [null, "10"]]);
  });

  await h.check("transactions: a change between WATCH and EXEC aborts, a read does not", async () => {
    await r.watch("t");
    await other.set("t", "other");
    equal(await r.multi().set("t", "mine").exec(), null);
    equal(await r.get("t"), "other");
    await r.watch("t");
    await other.get("t");
    equal(await r.multi().append("t", "!").exec(), [[null, 6]]);
  });

  await h.check("transactions: a watched key that expires aborts", async () => {
    await r.set("brief", "v", "PX", 30);
    await r.watch("brief");
    await eventually(5000, async () => (await other.exists("brief")) === 0);
    equal(await r.multi().ping().exec(), null);
  });

  await h.check("transactions: DISCARD, EXECABORT, and an error inside", async () => {
    await r.multi({ pipeline: false });
    equal(await r.set("t", "never"), "QUEUED");
    equal(await r.discard(), "OK");
    equal(await r.get("t"), "other!");
    await r.multi({ pipeline: false });
    await fails(r.call("NOSUCH"), "unknown command");
    await fails(r.exec(), "EXECABORT");
    const results = await r.multi().incr("t").set("t", "after").exec();
    equal(results[0][0].message.includes("not an integer"), true);
    equal(results[1], [null, "OK"]);
  });

  await h.check("transactions: 4 connections with retry loops lose no update", async () => {
    await r.set("balance", 0);
    const add = async (client) => {
      for (let step = 0; step < 100; step += 1) {
        let done = null;
        while (done === null) {
          await client.watch("balance");
          const value = Number(await client.get("balance"));
          done = await client.multi().set("balance", value + 1).exec();
        }
      }
    };
    await Promise.all(Array.from({ length: 4 }, () => add(h.client())));
    equal(await r.getdel("balance"), "400");
  });

  await r.del("t");
}
