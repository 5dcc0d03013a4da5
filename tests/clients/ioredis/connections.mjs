// Login, the unix socket, monitors, and coming back after the server has closed a connection.
import assert from "node:assert/strict";
import { equal, eventually, fails } from "./harness.mjs";

export async function connections(h) {
  const r = h.client();

  await h.check("connections: login is needed, wrong passwords are refused", async () => {
    const never = { maxRetriesPerRequest: 0, retryStrategy: () => null, enableReadyCheck: false };
    await fails(h.client({ ...never, password: undefined }).get("k"), "NOAUTH");
    const wrong = h.client({ ...never, password: "wrong" });
    await assert.rejects(wrong.get("k"));
    await eventually(5000, () => wrong.lastProblem !== undefined);
    assert.ok(wrong.lastProblem.message.includes("WRONGPASS"), wrong.lastProblem.message);
    equal(await h.client({ username: "default" }).ping(), "PONG");
  });

  await h.check("connections: unix socket", async () => {
    const local = h.client({ path: h.unix });
    equal(await local.set("p", "through the socket"), "OK");
    equal(await r.get("p"), "through the socket");
  });

  await h.check("connections: the client comes back after CLIENT KILL", async () => {
    const victim = h.client();
    const before = await victim.client("ID");
    equal(await r.client("KILL", "ID", before), 1);
    equal(await victim.get("p"), "through the socket");
    assert.notEqual(await victim.client("ID"), before);
  });

  await h.check("connections: HELLO switches the protocol and answers a map", async () => {
    const two = await h.client().call("HELLO", "2");
    equal(two[two.indexOf("proto") + 1], 2);
    await fails(h.client().call("HELLO", "7"), "NOPROTO");
  });

  await h.check("connections: MONITOR shows what others do, and no passwords", async () => {
    const monitor = await h.client().monitor();
    const seen = [];
    monitor.on("monitor", (_time, command) => seen.push(command));
    const secret = "not to be seen";
    await r.set("watched", "v");
    await assert.rejects(r.call("AUTH", secret));
    await r.set("watched", "last");
    await eventually(5000, () => seen.some((command) => command[2] === "last"));
    monitor.disconnect();
    assert.ok(seen.some((command) => command[0].toLowerCase() === "set" && command[2] === "v"));
    assert.ok(!JSON.stringify(seen).includes(secret), JSON.stringify(seen));
    await r.del("watched");
  });

  await h.check("connections: SELECT is repeated after a reconnect", async () => {
    const inNine = h.client({ db: 9 });
    await inNine.set("where", "nine");
    await r.client("KILL", "ID", await inNine.client("ID"));
    equal(await inNine.get("where"), "nine");
    equal(await inNine.flushdb(), "OK");
  });

  await r.del("p");
}
