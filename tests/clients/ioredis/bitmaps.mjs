// Bitmaps over the catalogue, compared with byte arrays.
import { allCities } from "./catalogue.mjs";
import { batches, equal, replies } from "./harness.mjs";

const ones = (bytes) => bytes.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);

function model(holds) {
  const bytes = Buffer.alloc(Math.ceil(allCities.length / 8));
  allCities.forEach((city, at) => {
    if (holds(city)) bytes[at >> 3] |= 0x80 >> (at & 7);
  });
  return bytes;
}

export async function bitmaps(h) {
  const r = h.client();
  const south = model((city) => city.loc.coordinates[1] < 0);
  const big = model((city) => city.population > 50_000);

  await h.check("bitmaps: SETBIT and BITCOUNT of the catalogue, read back with GET", async () => {
    for (const [key, bytes] of [["south", south], ["big", big]]) {
      await r.setbit(key, bytes.length * 8 - 1, 0);
      const places = [...allCities.keys()].filter((at) => bytes[at >> 3] & (0x80 >> (at & 7)));
      for (const batch of batches(places, 10_000)) {
        const pipeline = r.pipeline();
        batch.forEach((at) => pipeline.setbit(key, at, 1));
        await replies(pipeline);
      }
      equal(await r.getBuffer(key), bytes);
      equal(await r.bitcount(key), ones(bytes));
      equal(await r.bitcount(key, 50, -50), ones(bytes.subarray(50, bytes.length - 49)));
    }
  });

  await h.check("bitmaps: BITOP equals the model", async () => {
    for (const [operation, combine] of [["AND", (a, b) => a & b], ["OR", (a, b) => a | b], ["XOR", (a, b) => a ^ b]]) {
      equal(await r.bitop(operation, "out", "south", "big"), south.length);
      equal(await r.getBuffer("out"), Buffer.from(south.map((byte, at) => combine(byte, big[at]))));
    }
    await r.bitop("NOT", "out", "big");
    equal(await r.getBuffer("out"), Buffer.from(big.map((byte) => ~byte & 0xff)));
  });

  await h.check("bitmaps: BITPOS and BITFIELD", async () => {
    const first = allCities.findIndex((city) => city.population > 50_000);
    equal(await r.bitpos("big", 1), first);
    equal(await r.bitpos("big", 1, first + 1, -1, "BIT"), allCities.findIndex((city, at) => at > first && city.population > 50_000));
    equal(await r.bitfield("bf", "SET", "u32", 0, 4294967295, "INCRBY", "u32", 0, 2, "GET", "u8", 24), [0, 1, 1]);
    equal(await r.bitfield("bf", "OVERFLOW", "FAIL", "INCRBY", "u2", 64, 4), [null]);
  });

  await r.del("south", "big", "out", "bf");
}
