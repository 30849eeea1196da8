/** What takes time about an incident of a job that stands still, or died: its evidence, and the diagnosis of that. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { errorText } from "../../../base/errors.ts";
import { groupBy } from "../../../base/group-by.ts";
import { ownProgram } from "../../../base/own-program.ts";
import type { IncidentPicture } from "../../../model/picture.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { AgentReply, AgentRequest, EvidenceReply } from "../../wire/messages.ts";
import { isPicture } from "../store/bounded-picture.ts";
import { disposable } from "../store/data-folder.ts";
import type { CollectDecision, Collected, ConnectedAgents, Diagnosis } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";

export type AskAgent = (
  agent: string,
  request: AgentRequest,
  timeoutMs: number,
) => Promise<AgentReply>;

export interface DiagnosisEnv {
  readonly ask: AskAgent;
  readonly connected: ConnectedAgents;
  /** Whether the agent is connected and knows the request. */
  canAsk(this: void, agent: string, word: string): boolean;
  /** Bytes of answers so far. */
  fetchedBytes(this: void): number;
  /** Machine → incidents it had of late. */
  incidents(this: void, job: string): Promise<ReadonlyMap<string, number>>;
  /** What the site knows of logs, as a file; null for nothing. */
  logStore(this: void, job: string): Promise<string | null>;
  /** Room for evidence, where the oldest goes first. */
  makeRoom(this: void, bytes: number): Promise<boolean>;
  log(this: void, line: string): void;
  trouble(this: void, line: string): void;
}

const MOST_TROUBLES = 8;

/** In a folder of its own, named by the time, so that the oldest come first. */
export async function diagnoseStandstill(
  { run, kind }: CollectDecision,
  parent: string,
  nowMs: number,
  env: DiagnosisEnv,
): Promise<Collected> {
  const time = new Date(nowMs).toISOString().replace(/[:.]/g, "-");
  const agents = [...new Set([...run.ranks.values()].map(({ agent }) => agent))].filter((agent) =>
    env.connected.has(agent),
  );
  const incidents = await env.incidents(run.job);
  const { records, logBytes } = wantedOf(run);
  const isKept = await env.makeRoom(
    run.ranks.size * (RINGS_EACH * RECORD_BYTES * records + logBytes),
  );
  // A full disk must not keep the service from an answer.
  const folder = isKept
    ? join(parent, `${time}-${run.job}-${kind}`)
    : await mkdtemp(join(tmpdir(), "faultline-evidence-"));
  try {
    const evidence = await collectFromAgents(run, folder, agents, env.ask, incidents);
    const diagnosis = await diagnoseEvidence(run, evidence, isKept, env);
    return { diagnosis, answered: evidence.answered };
  } finally {
    if (isKept) await removeOldFolders(parent);
    else await rm(folder, { recursive: true, force: true });
  }
}

/** null where agents had nothing: a folder that holds only job.json cannot be diagnosed. */
async function diagnoseEvidence(
  run: JobRun,
  evidence: Evidence,
  isKept: boolean,
  env: DiagnosisEnv,
): Promise<Diagnosis | null> {
  for (const line of evidence.troubles.slice(0, MOST_TROUBLES))
    env.trouble(`job ${run.job}: ${line}`);
  env.log(`job ${run.job}: ${evidence.files} files of evidence in ${evidence.folder}`);
  if (evidence.files === 0) return null;
  const { verdict, picture } = await diagnoseFolder(evidence.folder, await env.logStore(run.job));
  return { verdict, picture, ...(isKept ? { folder: evidence.folder } : {}) };
}

/** How much is asked of each rank: less of each where there are many. */
function wantedOf(run: JobRun): { readonly records: number; readonly logBytes: number } {
  const ranks = Math.max(1, run.ranks.size);
  const most = RECORDS_BYTES / RECORD_BYTES / ranks / RINGS_EACH;
  return {
    records: Math.max(LEAST_RECORDS, Math.min(MOST_RECORDS, 2 ** Math.floor(Math.log2(most)))),
    logBytes: Math.min(LOG_BYTES, Math.floor(ALL_LOG_BYTES / ranks)),
  };
}

/** Stacks take two seconds, disks of a sick machine longer. */
const PATIENCE_MS = 15_000;
/** Bytes of all rings' last records together, and of one log's end. */
const RECORDS_BYTES = 64 << 20;
const RECORD_BYTES = 64;
const RINGS_EACH = 2;
const MOST_RECORDS = 8192;
const LEAST_RECORDS = 128;
const LOG_BYTES = 1 << 20;
const ALL_LOG_BYTES = 512 << 20;
const DIAGNOSE_MS = 120_000;
const VERDICT_BYTES = 64 << 20;
/** Folders of incidents that are kept; the oldest go first. */
const MOST_FOLDERS = 200;

interface Evidence {
  readonly folder: string;
  readonly files: number;
  /** Agents that answered. */
  readonly answered: ReadonlySet<string>;
  readonly troubles: readonly string[];
}

/**
 * A job that stands still, or died: its agents hand over what is left (rings cut to their last records, stacks, ends of
 * logs), it is kept in a folder of the incident, and `faultline diagnose` reads that folder in a process of its own: what
 * broken machines write must not take the service down, nor keep it from listening.
 */
async function collectFromAgents(
  run: JobRun,
  folder: string,
  agents: readonly string[],
  ask: AskAgent,
  incidents: ReadonlyMap<string, number>,
): Promise<Evidence> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { records, logBytes } = wantedOf(run);
  const troubles: string[] = [];
  const answered = new Set<string>();
  let files = 0;
  await Promise.all(
    agents.map(async (agent) => {
      const [first] = run.ranksOf(agent).values();
      const agentRun = first?.agentRun;
      if (agentRun === undefined) return;
      try {
        const reply = await ask(
          agent,
          {
            ask: "evidence",
            job: run.job,
            run: agentRun,
            ranks: null,
            records,
            stacks: true,
            logBytes,
          },
          PATIENCE_MS,
        );
        answered.add(agent);
        if (reply.kind === "evidence") {
          const written = await write(join(folder, agent), reply);
          files += written;
          troubles.push(...reply.troubles.slice(0, 16).map((line) => `${agent}: ${line}`));
        } else if (reply.kind === "refused") troubles.push(`${agent}: ${reply.why}`);
      } catch (error) {
        troubles.push(`${agent}: ${errorText(error)}`);
      }
    }),
  );
  await writeFile(join(folder, "job.json"), JSON.stringify(jobFileOf(run, incidents)));
  return { folder, files, answered, troubles };
}

/** Names come from agents: only the last part of each, of plain letters, in the agent's own folder. */
async function write(folder: string, { files }: EvidenceReply): Promise<number> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const written = new Set<string>();
  for (const { name, bytes } of files) {
    // Two logs of the same name (torchrun's 0/stdout.log, 1/stdout.log): the second with its folders.
    const plain = [basename(name), name]
      .map((one) => one.replace(/[^A-Za-z0-9._-]/g, "_").slice(-200))
      .find((one) => !/^\.*$/.test(one) && !written.has(one));
    if (plain === undefined) continue;
    await writeFile(join(folder, plain), bytes, { mode: 0o600 });
    written.add(plain);
  }
  return written.size;
}

function jobFileOf(run: JobRun, incidents: ReadonlyMap<string, number>): object {
  const places = run.known().job.ranks;
  const leaves = groupBy(
    [...places.values()].flatMap(({ nic, leaf }) =>
      nic === null || leaf === null ? [] : [{ nic, leaf }],
    ),
    ({ leaf }) => leaf,
  );
  return {
    name: run.job,
    ...(run.worldSize > 0 ? { worldSize: run.worldSize } : {}),
    ...(incidents.size > 0 ? { incidents: Object.fromEntries(incidents) } : {}),
    ranks: [...run.ranks.values()].map(({ report: { rank, gpu, nic }, machine }) => ({
      rank,
      machine,
      ...(gpu === null ? {} : { gpu }),
      ...((places.get(rank)?.nic ?? nic) ? { nic: places.get(rank)?.nic ?? nic } : {}),
    })),
    ...(leaves.size > 0
      ? {
          network: {
            leaves: Object.fromEntries(
              [...leaves].map(([leaf, list]) => [leaf, list.map(({ nic }) => nic)]),
            ),
          },
        }
      : {}),
  };
}

/** What `diagnose --out` leaves beside the evidence. */
const REPORT = "report";
const PICTURE_BYTES = 8 << 20;

async function diagnoseFolder(
  folder: string,
  logStore: string | null,
): Promise<{ readonly verdict: Verdict; readonly picture: IncidentPicture | null }> {
  const report = join(folder, REPORT);
  const known = logStore === null ? [] : ["--store", logStore];
  const args = ["diagnose", folder, "--json", "--quiet", "--out", report, ...known];
  const options = {
    timeout: DIAGNOSE_MS,
    maxBuffer: VERDICT_BYTES,
    killSignal: "SIGKILL",
    env: diagnoseEnvironment(process.env),
  } as const;
  const text = await new Promise<string>((resolve, reject) => {
    const [program, ...words] = ownProgram();
    execFile(program, [...words, ...args], options, (error, stdout, stderr) => {
      if (error)
        reject(new Error(`diagnose: ${stderr.trim().split("\n").at(-1) || error.message}`));
      else resolve(stdout);
    });
  });
  return { verdict: JSON.parse(text) as Verdict, picture: await pictureOf(report) };
}

/** What a user set for his own calls is not meant for the service's. */
export function diagnoseEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = Object.entries(all).filter(([name]) => !name.startsWith("FAULTLINE_DIAGNOSE_"));
  return { ...Object.fromEntries(own), FAULTLINE_CONFIG: "" };
}

/** null where there is none: the verdict stands without it. */
async function pictureOf(report: string): Promise<IncidentPicture | null> {
  try {
    const path = join(report, "picture.json");
    if ((await stat(path)).size > PICTURE_BYTES) return null;
    const picture: unknown = JSON.parse(await readFile(path, "utf8"));
    return isPicture(picture) ? picture : null;
  } catch {
    return null;
  }
}

async function removeOldFolders(parent: string): Promise<void> {
  const names = await disposable(parent);
  for (const name of names.slice(0, Math.max(0, names.length - MOST_FOLDERS)))
    await rm(join(parent, name), { recursive: true, force: true });
}
