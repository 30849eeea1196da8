/**
 * What healthy jobs log, from jobs that ended well: ends of logs of a few machines, read by `faultline logs learn` in a
 * process of its own, one job at a time.
 */
import { execFile } from "node:child_process";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../../base/errors.ts";
import { ownProgram } from "../../../base/own-program.ts";
import { readLogStore, writeLogStore } from "../../../history/log-store-file.ts";
import { EMPTY_STORE } from "../../../model/log-store.ts";
import { type DiagnosisEnv, diagnoseEnvironment } from "../slowdown/diagnose-incident.ts";
import type { JobRun } from "../job/job-run.ts";
import type { SiteStore } from "./site-store.ts";

const MOST_AGENTS = 4;
const RANKS_EACH = 2;
const LOG_BYTES = 512 << 10;
const MOST_BYTES = 8 << 20;
const PATIENCE_MS = 15_000;
const READ_MS = 60_000;
/** A run that ended sooner says little of what is normal. */
const LEAST_ITERATIONS = 20;
const MOST_REMEMBERED = 1000;

export type LearnEnv = Pick<DiagnosisEnv, "ask" | "connected" | "log" | "trouble">;

export class LogLearning {
  readonly #store: SiteStore;
  readonly #env: LearnEnv;
  /** Runs that were looked at. */
  readonly #seen = new Set<string>();
  readonly #learnFolder: typeof learnFolder;
  #isBusy = false;

  constructor(store: SiteStore, env: LearnEnv, learn: typeof learnFolder = learnFolder) {
    this.#store = store;
    this.#env = env;
    this.#learnFolder = learn;
  }

  /** A run has ended in order and without an incident; what is under way goes first, and this one is asked about again. */
  async ended(run: JobRun): Promise<void> {
    const name = `${run.job}/${run.run}`;
    if (this.#isBusy || this.#seen.has(name) || run.iterations.count < LEAST_ITERATIONS) return;
    this.#isBusy = true;
    if (this.#seen.size >= MOST_REMEMBERED) this.#seen.clear();
    this.#seen.add(name);
    try {
      if (!(await this.#store.hasLearnt(name))) await this.#learn(name, run);
    } catch (error) {
      this.#env.trouble(`job ${run.job}: its logs were not learnt from: ${errorText(error)}`);
    } finally {
      this.#isBusy = false;
    }
  }

  async #learn(name: string, run: JobRun): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), "faultline-learn-"));
    try {
      const logs = join(folder, "logs");
      if ((await this.#collect(run, logs)) === 0) return;
      const file = join(folder, "store.json");
      // What the site knows of failures is not normal; what is normal already is not needed to find more.
      const { records, votes } = await this.#store.store();
      await writeLogStore(file, { ...EMPTY_STORE, records, votes });
      await this.#learnFolder(logs, file);
      const events = Object.keys((await readLogStore(file, true)).normal);
      await this.#store.learn(name, events);
      this.#env.log(
        `job ${run.job}: ended well, ${events.length} normal events of its logs learnt`,
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Returns how many logs there are. */
  async #collect(run: JobRun, folder: string): Promise<number> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const agents = run.agents.filter((agent) => this.#env.connected.has(agent));
    let [files, bytes] = [0, 0];
    for (const agent of agents.slice(0, MOST_AGENTS)) {
      const own = [...run.ranksOf(agent)].slice(0, RANKS_EACH);
      const agentRun = own[0]?.[1].agentRun;
      if (agentRun === undefined) continue;
      const ranks = own.map(([rank]) => rank);
      const request = { ask: "evidence", job: run.job, run: agentRun, ranks } as const;
      const reply = await this.#env
        .ask(agent, { ...request, records: 0, stacks: false, logBytes: LOG_BYTES }, PATIENCE_MS)
        .catch(() => null);
      if (reply?.kind !== "evidence") continue;
      for (const { name, bytes: content } of reply.files) {
        bytes += content.length;
        if (!name.startsWith("logs/") || bytes > MOST_BYTES) continue;
        // Names come from agents: a number is enough to tell files apart.
        await writeFile(join(folder, `${files++}.log`), content, { mode: 0o600 });
      }
    }
    return files;
  }
}

/** What machines write must not take the service down, nor keep it from listening. */
async function learnFolder(logs: string, store: string): Promise<void> {
  const [program, ...words] = ownProgram();
  const args = [...words, "logs", "learn", logs, "--store", store, "--quiet", "--json"];
  const options = {
    timeout: READ_MS,
    maxBuffer: 1 << 20,
    killSignal: "SIGKILL",
    env: diagnoseEnvironment(process.env),
  } as const;
  await new Promise<void>((resolve, reject) => {
    execFile(program, args, options, (error, _, stderr) => {
      if (error) reject(new Error(stderr.trim().split("\n").at(-1) || error.message));
      else resolve();
    });
  });
}
