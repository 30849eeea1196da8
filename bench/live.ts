/**
 * The service under load: `npx tsx bench/live.ts --gpus 10000 --agents 1250 --faults 40 --every 1`. Starts
 * `faultline serve` and a process with all agents of a simulated job, breaks one thing after the other, and measures
 * from outside: when there is a verdict, whether it is right, what the service costs. `--healthy N`: first N iterations
 * without a fault, in which there must be no incident. `--quick`: 256 GPUs, 4 faults. `--built`: dist/ instead of src/.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { BoardFault } from "../src/live/fleet/fault-board.ts";
import type { JobView, LiveEvent } from "../src/live/service/view.ts";
import type { Incident } from "../src/model/incident.ts";
import type { Suspect } from "../src/model/verdict.ts";
import { drawFaults, fleetSpec, type DrawnFault } from "./live-shape.ts";

const { values: flags } = parseArgs({
  options: {
    gpus: { type: "string" },
    agents: { type: "string" },
    faults: { type: "string" },
    every: { type: "string", default: "1" },
    healthy: { type: "string", default: "0" },
    seed: { type: "string", default: "1" },
    quick: { type: "boolean", default: false },
    built: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const gpus = Number(flags.gpus ?? (flags.quick ? 256 : 10_000));
const agents = Number(flags.agents ?? Math.ceil(gpus / 8));
const faultCount = Number(flags.faults ?? (flags.quick ? 4 : 40));
const everyMs = Number(flags.every) * 1000;
const healthyIterations = Number(flags.healthy);
const seed = Number(flags.seed);
const shape = { gpus, agents, seed };

/** Bytes of an operator in a log. */
const OPERATOR_BYTES = 40;
/** Iterations whose operators would have to be read to compare all ranks: 16 healthy ones and three slow ones. */
const COMPARED_ITERATIONS = 19;
const FAULT_ITERATIONS = 10;
/** Healthy ones between two faults. */
const PAUSE_ITERATIONS = 10;
const WARM_UP_MS = Math.max(120_000, 120 * everyMs);
const RESOLVED_WITHIN_MS = 240_000;
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "faultline-live-"));
const children: ChildProcess[] = [];

function start(words: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, words, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  child.on("exit", (code, signal) => {
    if (children.includes(child)) end(`${words.join(" ")} ended: ${signal ?? code}`);
  });
  return child;
}

async function stopAll(): Promise<void> {
  for (const child of children.splice(0).reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
    const gone = once(child, "exit");
    child.stdin?.end();
    child.kill("SIGTERM");
    await gone;
    clearTimeout(late);
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Also from where nobody waits for an answer. */
function end(why: string): void {
  process.stderr.write(`${why}\n`);
  void stopAll().finally(() => process.exit(1));
}

function fail(why: string): never {
  throw new Error(why);
}

async function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  let text = "";
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    text += chunk.toString();
    const found = pattern.exec(text);
    if (found) {
      child.stdout!.resume();
      return found;
    }
  }
  return fail("a child ended without a word");
}

async function until<T>(what: string, limitMs: number, look: () => Promise<T | null>): Promise<T> {
  const from = Date.now();
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() - from > limitMs) fail(`${what}: not within ${limitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function json<T>(url: string, options: RequestInit = {}): Promise<T> {
  const response = await fetch(url, options);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text) as T;
}

interface FleetState {
  readonly iteration: number;
  readonly lateMs: number;
  readonly isConnected: number;
  readonly dropped: number;
  readonly operators: number;
  readonly cpuSeconds: number;
  readonly rssMb: number;
  readonly troubles: unknown;
  readonly faults: readonly BoardFault[];
}

/** CPU seconds and peak resident megabytes of a process (proc(5)). */
function costOf(pid: number): { cpuSeconds: number; peakMb: number; nowMb: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const mb = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0) / 1024;
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuSeconds: ticks / 100, peakMb: mb("VmHWM"), nowMb: mb("VmRSS") };
}

/** Every change of an incident, with when it was heard of. */
interface Heard {
  readonly atMs: number;
  readonly incident: Incident;
}

function listen(url: string, heard: Heard[]): void {
  const read = async (): Promise<void> => {
    const response = await fetch(`${url}/api/v1/events`);
    if (!response.ok || !response.body) throw new Error(`events: ${response.status}`);
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true });
      const blocks = rest.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data === undefined) continue;
        const event = JSON.parse(data) as LiveEvent;
        if (event.type === "incident") heard.push({ atMs: Date.now(), incident: event.incident });
      }
    }
  };
  const again = (): void => {
    if (children.length === 0) return;
    setTimeout(() => void read().then(again, again), 500);
  };
  void read().then(again, again);
}

/** Whether the first suspect names the place, and the cause. */
function judge(
  suspect: Suspect | undefined,
  truth: BoardFault,
): { place: boolean; cause: boolean; covers: boolean } {
  if (!suspect) return { place: false, cause: false, covers: false };
  const cause = suspect.cause === truth.cause;
  if (truth.link !== null) {
    const ends = truth.link.map(Number);
    const isPair = ends.every((rank) => suspect.ranks.includes(rank)) && suspect.ranks.length === 2;
    const named =
      suspect.link !== null && ends.every((rank) => suspect.link!.includes(`rank:${rank}`));
    const covers = ends.every((rank) => suspect.ranks.includes(rank));
    return { place: isPair || named, cause, covers: covers || named };
  }
  const [rank] = truth.ranks as [number];
  const nic = nicOf(rank);
  const isRank = suspect.ranks.length === 1 && suspect.ranks[0] === rank;
  return { place: isRank || suspect.name === nic, cause, covers: suspect.ranks.includes(rank) };
}

const spec = fleetSpec(shape);

function nicOf(rank: number): string {
  const machines = Math.ceil(spec.gpus / spec.gpusPerMachine);
  const width = Math.max(3, String(machines - 1).length);
  const machine = String(Math.floor(rank / spec.gpusPerMachine)).padStart(width, "0");
  return `node${machine}/mlx5_${rank % spec.gpusPerMachine}`;
}

interface Outcome {
  readonly fault: string;
  readonly effect: number;
  readonly verdictSeconds: number | null;
  readonly place: boolean;
  readonly cause: boolean;
  /** It is among the suspect's ranks: of a slow NIC in a ring only the ring may be told. */
  readonly covers: boolean;
  readonly suspect: string;
  /** The same when the fault was taken away. */
  readonly lastPlace: boolean;
  readonly lastCause: boolean;
  readonly resolvedSeconds: number | null;
  readonly incidents: number;
}

const isVerdict = ({ incident }: Heard): boolean =>
  (incident.state === "confirmed" || incident.state === "relapsed") &&
  (incident.verdict?.suspects.length ?? 0) > 0;

function words(suspect: Suspect | undefined): string {
  if (!suspect) return "nobody";
  const place = suspect.link?.join("-") ?? suspect.name ?? suspect.ranks.slice(0, 4).join();
  return `${suspect.cause} ${suspect.type} ${place}`;
}

async function breakOne(
  drawn: DrawnFault,
  url: string,
  control: string,
  heard: readonly Heard[],
): Promise<Outcome> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ fault: drawn.fault });
  const { id } = await json<BoardFault>(`${control}/faults`, { method: "POST", headers, body });
  const state = (): Promise<FleetState> => json<FleetState>(`${control}/state`);
  const truthOf = async (): Promise<{ truth: BoardFault; iteration: number }> => {
    const { faults, iteration } = await state();
    return { truth: faults.find((one) => one.id === id)!, iteration };
  };
  const from = heard.length;
  // Slow iterations take longer: the limit must not depend on how much.
  const limitMs = (FAULT_ITERATIONS + 10) * everyMs * (drawn.effect + 1) + 60_000;
  await until("the fault's iterations", limitMs, async () => {
    const { truth, iteration } = await truthOf();
    return truth.fromIteration !== null && iteration >= truth.fromIteration + FAULT_ITERATIONS
      ? true
      : null;
  });
  const before = heard.length;
  await json(`${control}/faults/${id}`, { method: "DELETE" });
  const ended = await until("the fault's end", limitMs, async () => {
    const { truth } = await truthOf();
    return truth.toMs === null ? null : truth;
  });
  const during = heard.slice(from, before).filter(isVerdict);
  const resolvedMs = await until("quiet", RESOLVED_WITHIN_MS + 60_000, async () => {
    const open = await openIncidents(url);
    if (open.length === 0) return Date.now();
    return Date.now() - ended.toMs! > RESOLVED_WITHIN_MS ? Infinity : null;
  });
  const { iteration: quietFrom } = await state();
  await until("a pause", limitMs, async () =>
    (await state()).iteration >= quietFrom + PAUSE_ITERATIONS ? true : null,
  );
  const first = during[0];
  const judged = judge(first?.incident.verdict?.suspects[0], ended);
  const last = judge(during.at(-1)?.incident.verdict?.suspects[0], ended);
  const ids = new Set(heard.slice(from).map(({ incident }) => incident.id));
  return {
    fault: drawn.fault,
    effect: drawn.effect,
    verdictSeconds: first ? (first.atMs - ended.firstEndMs!) / 1000 : null,
    ...judged,
    suspect: words(first?.incident.verdict?.suspects[0]),
    lastPlace: last.place,
    lastCause: last.cause,
    resolvedSeconds: resolvedMs === Infinity ? null : (resolvedMs - ended.toMs!) / 1000,
    incidents: ids.size,
  };
}

async function openIncidents(url: string): Promise<readonly Incident[]> {
  const answer = await json<readonly Incident[] | { incidents: readonly Incident[] }>(
    `${url}/api/v1/incidents?open=true`,
  );
  return "incidents" in answer ? answer.incidents : answer;
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^faultline_${name} (\\S+)`, "m").exec(text)?.[1] ?? NaN);
}

async function main(): Promise<void> {
  process.stderr.write(`drawing ${faultCount} faults for ${gpus} GPUs…\n`);
  const drawn = drawFaults(spec, faultCount, seed);
  const program = flags.built ? ["dist/cli/main.js"] : ["--import", "tsx", "src/cli/main.ts"];
  const serve = ["serve", "--port", "0", "--host", "127.0.0.1", "--data", join(folder, "data")];
  const server = start([...program, ...serve]);
  const [, url] = await lineOf(server, /(https?:\/\/[^\s"]+?)\/?(?=[\s"])/);
  await until("healthz", 60_000, async () => {
    const response = await fetch(`${url}/healthz`).catch(() => null);
    return response?.ok ? true : null;
  });
  const about = JSON.stringify({ url, token: null, shape, everyMs });
  const fleet = start([
    "--max-old-space-size=4096",
    "--import",
    "tsx",
    "bench/live-fleet.ts",
    about,
  ]);
  const [, line] = await lineOf(fleet, /(\{.*\})\n/);
  const { control } = JSON.parse(line!) as { control: string };
  const state = (): Promise<FleetState> => json<FleetState>(`${control}/state`);
  await until("agents", 120_000, async () =>
    (await state()).isConnected === agents ? true : null,
  );
  const heard: Heard[] = [];
  listen(url!, heard);
  process.stderr.write(`${url}: ${agents} agents are there; warming up…\n`);
  await until("a healthy job", WARM_UP_MS, async () => {
    const { iteration } = await state();
    if (iteration < 40) return null;
    const answer = await json<readonly JobView[] | { jobs: readonly JobView[] }>(
      `${url}/api/v1/jobs`,
    );
    const [job] = "jobs" in answer ? answer.jobs : answer;
    return job?.health === "healthy" ? true : null;
  });

  const began = { ms: Date.now(), server: costOf(server.pid!), fleet: await state() };
  const stretch = { iterations: 0, incidents: 0, seconds: 0 };
  if (healthyIterations > 0) {
    const from = (await state()).iteration;
    const limitMs = healthyIterations * everyMs * 3 + 60_000;
    await until("the healthy stretch", limitMs, async () =>
      (await state()).iteration >= from + healthyIterations ? true : null,
    );
    stretch.iterations = (await state()).iteration - from;
    stretch.seconds = (Date.now() - began.ms) / 1000;
    stretch.incidents = new Set(heard.map(({ incident }) => incident.id)).size;
    for (const { incident } of heard)
      process.stderr.write(`healthy, yet: ${incident.state} ${incident.summary}\n`);
  }

  const fetched = await metric(url!, "fetched_bytes_total");
  const searches = await metric(url!, "localizations_total");
  const outcomes: Outcome[] = [];
  for (const one of drawn) {
    const outcome = await breakOne(one, url!, control, heard);
    outcomes.push(outcome);
    const time = outcome.verdictSeconds?.toFixed(1) ?? "-";
    const right = outcome.place && outcome.cause ? "right" : `WRONG: ${outcome.suspect}`;
    process.stderr.write(
      `${outcomes.length}/${faultCount} ${one.fault} (×${one.effect.toFixed(2)}): verdict ${time} s, ${right}, ` +
        `resolved ${outcome.resolvedSeconds?.toFixed(0) ?? "never"} s\n`,
    );
  }

  const wallSeconds = (Date.now() - began.ms) / 1000;
  const end = { server: costOf(server.pid!), fleet: await state() };
  const localizations = (await metric(url!, "localizations_total")) - searches;
  const bytes =
    ((await metric(url!, "fetched_bytes_total")) - fetched) / Math.max(1, localizations);
  const comparedIterations = COMPARED_ITERATIONS;
  const allBytes = end.fleet.operators * OPERATOR_BYTES * comparedIterations;
  const times = outcomes.flatMap(({ verdictSeconds }) => verdictSeconds ?? Infinity);
  times.sort((a, b) => a - b);
  const within = times.filter((seconds) => seconds <= 10).length;
  const rightOnes = outcomes.filter(({ place, cause }) => place && cause).length;
  // During a fault one incident is right; each further one is not.
  const falseIncidents = outcomes.reduce(
    (sum, { incidents }) => sum + Math.max(0, incidents - 1),
    0,
  );
  const summary = {
    schema: "faultline.bench.live/1",
    machine: `${cpus().length} cores, ${cpus()[0]?.model ?? "?"}`,
    gpus,
    agents,
    everyMs,
    seed,
    faults: faultCount,
    verdictWithin10s: outcomes.length === 0 ? null : within / outcomes.length,
    verdictSeconds: { median: at(times, 0.5), p95: at(times, 0.95), most: times.at(-1) ?? null },
    right: outcomes.length === 0 ? null : rightOnes / outcomes.length,
    rightPlace: share(outcomes, ({ place }) => place),
    rightOrCovered: share(outcomes, ({ covers, cause }) => covers && cause),
    rightAtEnd: share(outcomes, ({ lastPlace, lastCause }) => lastPlace && lastCause),
    falseIncidents: falseIncidents + stretch.incidents,
    healthy: stretch,
    server: {
      cores: (end.server.cpuSeconds - began.server.cpuSeconds) / wallSeconds,
      cpuSeconds: end.server.cpuSeconds,
      peakMb: end.server.peakMb,
    },
    fleet: {
      cores: (end.fleet.cpuSeconds - began.fleet.cpuSeconds) / wallSeconds,
      rssMb: end.fleet.rssMb,
      lateMs: end.fleet.lateMs,
      dropped: end.fleet.dropped,
      troubles: end.fleet.troubles,
    },
    fetched: {
      localizations,
      bytesEach: bytes,
      allBytes,
      comparedIterations,
      share: bytes / allBytes,
    },
    seconds: wallSeconds,
    outcomes,
  };
  table(summary);
  const text = JSON.stringify(summary, null, 1);
  if (flags.json) writeFileSync(flags.json, `${text}\n`);
  else process.stdout.write(`${text}\n`);
}

function share(outcomes: readonly Outcome[], is: (one: Outcome) => boolean): number | null {
  return outcomes.length === 0 ? null : outcomes.filter(is).length / outcomes.length;
}

function at(sorted: readonly number[], quantile: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? null;
}

function table(of: {
  readonly verdictWithin10s: number | null;
  readonly right: number | null;
  readonly falseIncidents: number;
  readonly server: { readonly cores: number; readonly peakMb: number };
  readonly fetched: { readonly share: number };
  readonly verdictSeconds: { readonly median: number | null; readonly p95: number | null };
}): void {
  const percent = (n: number | null): string => (n === null ? "-" : `${(100 * n).toFixed(1)} %`);
  const rows: [what: string, is: string, target: string][] = [
    ["verdict within 10 s of onset", percent(of.verdictWithin10s), "≥ 95 %"],
    ["median, p95 of it", `${of.verdictSeconds.median} s, ${of.verdictSeconds.p95} s`, ""],
    ["first suspect right, with its cause", percent(of.right), ""],
    ["false incidents", String(of.falseIncidents), "0"],
    ["server, cores", of.server.cores.toFixed(2), "≤ 1"],
    ["server, peak MB", of.server.peakMb.toFixed(0), "≤ 1,000"],
    ["fetched per localization", percent(of.fetched.share), "≤ 1 %"],
  ];
  for (const [what, is, target] of rows)
    process.stderr.write(`${what.padEnd(38)}${is.padEnd(24)}${target}\n`);
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void stopAll().finally(() => process.exit(130)));
try {
  await main();
} finally {
  await stopAll();
}
