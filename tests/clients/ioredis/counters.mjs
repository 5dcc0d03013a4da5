// Counters: exact sums over the catalogue and from many connections, and their limits.
import { allCities } from "./catalogue.mjs";
import { batches, equal, fails, replies } from "./harness.mjs";

export async function counters(h) {
  const r = h.client();

  await h.check("counters: population by country, beyond 2^53 as text", async () => {
    const expected = new Map();
    for (const batch of batches(allCities, 10_000)) {
      const pipeline = r.pipeline();
      for (const city of batch) {
        pipeline.incrby(`population:${city.country}`, city.population);
        expected.set(city.country, (expected.get(city.country) ?? 0) + city.population);
      }
      await replies(pipeline);
    }
    for (const [country, sum] of expected) {
      equal(await r.getdel(`population:${country}`), String(sum));
    }
    await r.set("n", "9007199254740993");
    await r.incr("n");
    equal(await r.get("n"), "9007199254740994");
  });

  await h.check("counters: DECR, INCRBYFLOAT and their limits", async () => {
    await r.set("n", "9223372036854775807");
    await fails(r.incr("n"), "overflow");
    equal(await r.get("n"), "9223372036854775807");
    equal(await r.incrbyfloat("f", "0.1"), "0.1");
    equal(await r.incrbyfloat("f", "0.2"), "0.3");
    equal(await r.decrby("d", 5), -5);
    await r.set("d", "word");
    await fails(r.decr("d"), "not an integer");
  });

  await h.check("counters: 10 connections lose no increment", async () => {
    const clients = Array.from({ length: 10 }, () => h.client());
    await Promise.all(clients.flatMap((client) => Array.from({ length: 1000 }, () => client.incr("together"))));
    equal(await r.get("together"), "10000");
  });

  await r.del("n", "f", "d", "together");
}
