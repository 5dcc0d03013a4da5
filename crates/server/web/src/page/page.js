"use strict";
const panel = (id, part) => document.querySelector(`#${id} ${part}`);
/** The rule of `base::size`. */
const bytes = n => {
  n = Math.round(Number(n));
  if (n < 1024) return n + (n === 1 ? " byte" : " bytes");
  let u = 0;
  do n /= 1024; while (n.toFixed(1) >= 1024 && ++u < 5);
  return n.toFixed(1) + " " + ["KiB", "MiB", "GiB", "TiB", "PiB"][Math.min(u, 4)];
};
const number = n => Number(n).toLocaleString("en");
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + " %" : undefined;
const duration = usec => usec >= 1e6 ? (usec / 1e6).toFixed(2) + " s" : usec >= 1000 ? (usec / 1000).toFixed(1) + " ms" : Math.round(usec * 10) / 10 + " µs";
const ago = time => { const s = Math.max(0, Math.round(Date.now() / 1000 - time)); return s < 120 ? s + " s ago" : s < 7200 ? Math.round(s / 60) + " min ago" : Math.round(s / 3600) + " h ago"; };
const parts = text => Object.fromEntries(String(text).split(",").map(part => part.split("=")));
const make = (name, text, className) => { const made = document.createElement(name); if (text !== undefined) made.textContent = text; if (className) made.className = className; return made; };

/** A table of names and values. */
function facts(place, rows) {
  const table = make("table"), body = table.createTBody();
  for (const [name, value] of rows) {
    if (value === undefined || value === null) continue;
    const row = body.insertRow(), head = make("th", name);
    head.scope = "row"; row.append(head, make("td", value));
  }
  place.replaceChildren(table);
}

/** A table with a head; without rows, a sentence. */
function table(place, heads, rows, empty) {
  if (!rows.length) return place.replaceChildren(make("p", empty, "empty"));
  const made = make("table"), head = made.createTHead().insertRow(), body = made.createTBody();
  for (const text of heads) { const cell = make("th", text); cell.scope = "col"; head.append(cell); }
  for (const [name, ...values] of rows) {
    const row = body.insertRow(), first = make("th", name);
    first.scope = "row"; row.append(first, ...values.map(value => make("td", value)));
  }
  place.replaceChildren(made);
}

// The history: samples in the order of `fields`, time first.
let fields = [], samples = [];
const shown = () => Number(document.querySelector("#range input:checked").value);
const column = name => { const at = fields.indexOf(name) + 1; return samples.slice(-shown()).map(sample => sample[at]); };
const newest = name => samples.at(-1)?.[fields.indexOf(name) + 1] ?? 0;

function drawCharts() {
  const seconds = shown(), count = value => number(Math.round(value));
  drawLines(panel("throughput", "svg"), [{ name: "commands a second", values: column("commands") }], seconds, "Throughput", count);
  drawLines(panel("latency", "svg"), [["p50", "p50_usec"], ["p99", "p99_usec"], ["p99.9", "p999_usec"]].map(([name, field]) => ({ name, values: column(field) })), seconds, "Latency", duration);
  drawLines(panel("memory", "svg"), [{ name: "used", values: column("used_memory") }, { name: "resident", values: column("resident_memory") }], seconds, "Memory", bytes);
  const commands = column("commands"), top = name => Math.max(0, ...column(name));
  facts(panel("throughput", ".figures"), [["now", number(Math.round(newest("commands")))], ["highest", number(Math.round(Math.max(0, ...commands)))], ["received, sent a second", bytes(Math.round(newest("input_bytes"))) + ", " + bytes(Math.round(newest("output_bytes")))], ["error replies a second", number(newest("errors"))], ["processor", newest("cpu_percent").toFixed(1) + " %"]]);
  table(panel("latency", ".figures"), ["", "now", "highest"], [["p50", "p50_usec"], ["p99", "p99_usec"], ["p99.9", "p999_usec"]].map(([name, field]) => [name, duration(newest(field)), duration(top(field))]), "");
}

function showMemory(info) {
  const compressed = info.compression_stored_bytes ?? 0, values = info.used_memory_values ?? info.used_memory_dataset;
  const homes = [["raw values", Math.max(0, values - compressed)], ["compressed values", compressed], ["tables and buffers", Math.max(0, info.used_memory - values)], ["on disk", info.disk_table_bytes ?? 0], ["on a tier", info.tier_bytes ?? 0]];
  const total = homes.reduce((sum, [, size]) => sum + size, 0);
  panel("memory", ".bar").replaceChildren(...homes.map(([, size], index) => { const part = make("span", undefined, "c" + index); part.style.width = 100 * size / Math.max(1, total) + "%"; return part; }));
  panel("memory", ".bar").setAttribute("aria-label", "Memory by home: " + homes.map(([name, size]) => `${name} ${bytes(size)}`).join(", "));
  panel("memory", ".legend").replaceChildren(...homes.map(([name, size], index) => { const item = make("li"); item.append(make("i", undefined, "c" + index), `${name} ${bytes(size)}`); return item; }));
  facts(panel("memory", ".figures"), [["used", bytes(info.used_memory)], ["budget", info.maxmemory > 0 ? `${bytes(info.maxmemory)}, ${info.maxmemory_policy}` : "no limit"], ["resident", bytes(info.used_memory_rss)], ["peak", bytes(info.used_memory_peak)], ["evicted keys", number(info.evicted_keys)]]);
}

function showDurability(info) {
  const since = info.restorable_since, now = info.server_time_usec / 1e6, span = panel("durability", "svg");
  span.style.display = since > 0 ? "" : "none";
  panel("durability", ".restore").hidden = !(since > 0);
  if (since > 0) drawSpan(span, since, info.rdb_last_save_time, now);
  panel("durability", "code").textContent = `onggi restore --from 127.0.0.1:${info.tcp_port} --time -10m --into NEWDIR`;
  facts(panel("durability", ".figures"), [["guarantee", info.durability], ["not durable yet", info.log_unsynced_bytes === undefined ? undefined : bytes(info.log_unsynced_bytes)], ["oldest of that", info.log_oldest_unsynced_ms === undefined ? undefined : info.log_oldest_unsynced_ms + " ms"], ["longest sync", info.log_longest_sync_usec === undefined ? undefined : duration(info.log_longest_sync_usec)], ["last checkpoint", ago(info.rdb_last_save_time)], ["changes since", number(info.rdb_changes_since_last_save)], ["can be restored", info.restorable]]);
}

function showKeys(info) {
  const databases = Object.entries(info).filter(([name]) => /^db\d+$/.test(name)), reads = info.keyspace_hits + info.keyspace_misses;
  facts(panel("keys", ".figures"), [...(databases.length ? databases : [["db0", "keys=0,expires=0"]]).map(([name, value]) => { const p = parts(value); return [name, number(p.keys) + " keys" + (p.expires > 0 ? ", " + number(p.expires) + " expire" : "")]; }), ["found by reads", percent(info.keyspace_hits, reads) ?? "no reads yet"], ["expired", number(info.expired_keys)], ["evicted", number(info.evicted_keys)]]);
}

function showCompression(info) {
  const logical = info.compression_logical_bytes ?? 0, stored = info.compression_stored_bytes ?? 0;
  facts(panel("compression", ".figures"), [["codec", info.compression], ["values", number(info.compression_values ?? 0)], ["before", bytes(logical)], ["after", bytes(stored)], ["saved", bytes(Math.max(0, logical - stored))], ["dictionaries", number(info.compression_dictionaries ?? 0)]]);
}

function showDisk(info) {
  const written = info.disk_written_bytes;
  facts(panel("disk", ".figures"), [["log", info.log_size === undefined ? "off" : bytes(info.log_size)], ["checkpoints", info.checkpoint_bytes === undefined ? undefined : bytes(info.checkpoint_bytes)], ["files per byte of data", info.used_memory_dataset > 0 ? (((info.log_size ?? 0) + (info.checkpoint_bytes ?? 0)) / info.used_memory_dataset).toFixed(2) : undefined], ["databases on disk", number(info.disk_databases ?? 0)], ["their tables", info.disk_table_bytes === undefined ? undefined : bytes(info.disk_table_bytes)], ["write amplification", info.disk_write_amplification], ["written", written === undefined ? undefined : bytes(written)], ["a read of a row", info.disk_row_read_usec_per_read === undefined ? undefined : duration(info.disk_row_read_usec_per_read)]]);
}

function showCommands(info) {
  const all = Object.entries(info).filter(([name]) => name.startsWith("cmdstat_")).map(([name, value]) => [name.slice(8).replace("|", " "), parts(value), parts(info["latency_percentiles_usec_" + name.slice(8)] ?? "")]);
  all.sort((a, b) => b[1].usec - a[1].usec);
  table(panel("commands", ".figures"), ["", "calls", "mean", "p99", "failed"], all.slice(0, 10).map(([name, p, l]) => [name, number(p.calls), duration(p.usec_per_call), l.p99 ? duration(l.p99) : "", number(p.failed_calls)]), "No command has run yet.");
}

// What the fields are, once all of them are looked at.
let meanings, shownInfo;
const inUnit = { "bytes": bytes, "us": duration, "ms": value => duration(value * 1000), "s": value => value + " s", "%": value => String(value).replace("%", "") + " %", "KiB/s": value => value + " KiB/s", "Unix time": value => value > 0 ? new Date(value * 1000).toISOString() : "never" };
async function showAll() {
  if (!panel("all", "details").open || !shownInfo) return;
  meanings ??= await ask("/api/figures");
  const rows = meanings.filter(row => shownInfo[row.field] !== undefined && shownInfo[row.field] !== "");
  table(panel("all", ".figures"), ["field", "value", "meaning", "metric"], rows.map(row => [row.field, (inUnit[row.unit] ?? String)(shownInfo[row.field]), row.help, row.metric]), "No figures.");
}

function showWarnings(found) {
  const section = document.getElementById("warnings"), text = JSON.stringify(found);
  if (section.dataset.text === text) return;
  section.dataset.text = text;
  section.classList.toggle("none", !found.length);
  panel("warnings", "ul").replaceChildren(...(found.length ? found : [{ what: "None.", remedy: "" }]).map(({ what, remedy }) => { const item = make("li", what + " "); if (remedy) item.append(make("code", remedy)); return item; }));
}

function show({ info, sample, warnings }) {
  if (sample) { samples.push(sample); if (samples.length > 3600) samples.shift(); }
  document.getElementById("state").textContent = [info.onggi_version && "version " + info.onggi_version, info.role, "port " + info.tcp_port, "process " + info.process_id, "up " + ago(Date.now() / 1000 - info.uptime_in_seconds).replace(" ago", "")].filter(Boolean).join(", ");
  shownInfo = info; showAll();
  showWarnings(warnings); showMemory(info); showDurability(info); showKeys(info); showCompression(info); showDisk(info); showCommands(info);
  facts(panel("clients", ".figures"), [["connected", number(info.connected_clients) + " of " + number(info.maxclients)], ["waiting", number(info.blocked_clients)], ["subscribed", number(info.pubsub_clients)]]);
  drawCharts();
}

// What names keys or clients: with a login where the server has one.
let authorization;
async function ask(path) {
  const answer = await fetch(path, { headers: authorization ? { authorization } : {} });
  if (answer.status === 401) {
    document.getElementById("login").hidden = false;
    for (const section of document.querySelectorAll(".keyed")) section.hidden = true;
    return null;
  }
  const text = async () => (await answer.text()).trim();
  if (answer.status === 403) return { refused: await text() };
  if (!answer.ok) throw new Error(await text());
  return answer.json();
}

const TILES = 24;
function showPrefixes(explained) {
  const rows = explained.prefixes.filter(row => row.stored_bytes > 0).sort((a, b) => b.stored_bytes - a.stored_bytes), map = panel("prefixes", ".treemap");
  const tiles = rows.slice(0, TILES), places = tiles.length ? squarify(tiles.map(row => row.stored_bytes), Math.max(1, map.clientWidth / 224)) : [];
  map.replaceChildren(...tiles.map((row, index) => {
    const item = make("li", undefined, "c" + index % 4), tile = make("button", `${row.prefix || "(no prefix)"} ${bytes(row.stored_bytes)}`), place = places[index];
    Object.assign(item.style, { left: place.x + "%", top: place.y + "%", width: place.width + "%", height: place.height + "%" });
    tile.type = "button"; tile.title = `${row.prefix || "(no prefix)"}: ${number(row.keys)} keys, ${bytes(row.stored_bytes)}`;
    tile.addEventListener("click", () => { panel("prefixes", "input").value = panel("prefixes", "input").value + (row.prefix === "(other)" ? "" : row.prefix); explain(); });
    item.append(tile); return item;
  }));
  if (!tiles.length) map.replaceChildren(make("li", "No keys.", "note"));
  table(panel("prefixes", ".figures"), ["prefix", "keys", "memory", "content", "overhead", "ratio"], rows.map(row => [row.prefix || "(no prefix)", number(row.keys), bytes(row.stored_bytes), bytes(row.logical_bytes), bytes(row.overhead_bytes), row.ratio]), "No keys.");
  const codecs = {};
  let plain = 0;
  for (const { sample = {} } of rows) {
    plain += sample.logical_bytes ?? 0;
    for (const [name, size] of Object.entries(sample)) if (name.endsWith("_bytes") && !/^(logical|stored)_/.test(name)) codecs[name.slice(0, -6)] = (codecs[name.slice(0, -6)] ?? 0) + size;
  }
  table(panel("compression", ".codecs"), ["a sample under", "share of its size"], plain > 0 ? Object.entries(codecs).map(([name, size]) => [name, percent(size, plain)]) : [], "No values to try codecs on.");
}

async function explain() {
  const note = panel("prefixes", ".note");
  note.textContent = "counting keys";
  try {
    const explained = await ask("/api/explain?prefix=" + encodeURIComponent(panel("prefixes", "input").value));
    if (!explained) return;
    if (explained.refused) throw new Error(explained.refused);
    showPrefixes(explained);
    note.textContent = `${number(explained.keys)} keys, counted in ${number(explained.duration_ms)} ms`;
  } catch (error) { note.textContent = error.message; }
}

async function askPanels() {
  try {
    const values = document.getElementById("values").checked;
    await Promise.all([
      fill("/api/hotkeys", panel("hot", ".figures"), ["key", "calls", "database"], "No key stands out yet.",
        row => [row.key, "≈ " + number(row.calls), row.db]),
      fill("/api/slowlog" + (values ? "?values=1" : ""), panel("slow", ".figures"), ["call", "took", "when", "client"], "No call was slow.",
        row => [row.words ? row.words.join(" ") : `${row.command} (${row.arguments} arguments)`, duration(row.usec), ago(row.at), row.client]),
      fill("/api/clients", panel("clients", ".list"), ["address", "name", "last command", "idle", "memory"], "No client is connected.",
        row => [row.addr, row.name, row.cmd, row.idle + " s", bytes(row["tot-mem"])],
        rows => rows.sort((a, b) => b["tot-mem"] - a["tot-mem"]).slice(0, 50)),
    ]);
  } catch (error) { console.warn("panels: " + error.message); }
}

// A panel of rows. A user who may not see them reads that in the panel.
async function fill(path, place, heads, empty, cells, choose = rows => rows) {
  const rows = await ask(path);
  if (rows) table(place, heads, choose(rows.refused ? [] : rows).map(cells), rows.refused || empty);
}

function follow() {
  const events = new EventSource("/api/live");
  events.onmessage = event => { const told = JSON.parse(event.data); if (told) show(told); else document.getElementById("state").textContent = "the server does not serve yet"; };
  events.onerror = () => { document.getElementById("state").textContent = "no answer from the server; trying again"; };
}

async function start() {
  const known = await ask("/api/history");
  fields = known.fields; samples = known.samples;
  document.getElementById("range").addEventListener("change", drawCharts);
  panel("prefixes", "form").addEventListener("submit", event => { event.preventDefault(); explain(); });
  document.getElementById("values").addEventListener("change", askPanels);
  panel("login", "form").addEventListener("submit", event => {
    event.preventDefault();
    const form = new FormData(event.target), text = new TextEncoder().encode(`${form.get("user")}:${form.get("password")}`);
    authorization = form.get("token") ? "Bearer " + form.get("token").trim() : "Basic " + btoa(String.fromCharCode(...text));
    document.getElementById("login").hidden = true;
    for (const section of document.querySelectorAll(".keyed")) section.hidden = false;
    askPanels(); explain();
  });
  panel("all", "details").addEventListener("toggle", showAll);
  follow(); askPanels(); explain();
  setInterval(() => { if (!document.hidden && document.getElementById("login").hidden) askPanels(); }, 5000);
}
start();
