// Values of a megabyte and of 64, and pipelines of ten thousand commands and more.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { equal, replies } from "./harness.mjs";

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

export async function large(h) {
  const r = h.client();

  for (const megabytes of [1, 64]) {
    await h.check(`large: a value of ${megabytes} MB`, async () => {
      const value = randomBytes(megabytes << 20);
      equal(await r.set("large", value), "OK");
      equal(await r.strlen("large"), value.length);
      equal(digest(await r.getBuffer("large")), digest(value));
      assert.ok((await r.getrangeBuffer("large", 1000, 1999)).equals(value.subarray(1000, 2000)));
      equal(await r.del("large"), 1);
    });
  }

  await h.check("pipelines: 40000 commands, replies in order", async () => {
    const pipeline = r.pipeline();
    for (let number = 0; number < 20_000; number += 1) {
      pipeline.set(`p:${number}`, `value ${number}`).getdel(`p:${number}`);
    }
    const got = await replies(pipeline);
    equal(got.filter((_, at) => at % 2 === 1), Array.from({ length: 20_000 }, (_, number) => `value ${number}`));
  });

  await h.check("pipelines: keys and values of any bytes", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    await r.set(bytes, bytes);
    assert.ok((await r.getBuffer(bytes)).equals(bytes));
    equal(await r.del(bytes), 1);
  });
}
