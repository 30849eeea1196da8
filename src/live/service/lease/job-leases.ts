/** The jobs that this service holds the lease of: takes them up when agents announce them, lets go of those long over. */
import { errorText } from "../../../base/errors.ts";
import { NO_ONE_JOB } from "../../../model/incident.ts";
import type { Coordinator, Lease } from "../../wire/transport.ts";
import { documentOf } from "../job/job-state.ts";
import type { JobHistoryWriter } from "../job/job-history-writer.ts";
import type { LeasedJob } from "./leased-job.ts";

export interface JobLeasesOptions {
  readonly coordinator: Coordinator;
  nowMs(this: void): number;
  /** From now on reports of the job come here; or no longer. */
  follow(this: void, job: string): Promise<void>;
  unfollow(this: void, job: string): Promise<void>;
  open(this: void, lease: Lease, document: unknown, lost: () => void): LeasedJob;
  readonly history: JobHistoryWriter;
  trouble(this: void, line: string): void;
}

/** A job that no agent reports for so long is no longer watched; its document stays. */
const FORGOTTEN_MS = 24 * 3600_000;
const MOST_JOBS = 4096;

export class JobLeases {
  readonly jobs = new Map<string, LeasedJob>();
  readonly #options: JobLeasesOptions;
  readonly #claims = new Map<string, Promise<LeasedJob | null>>();
  #isSaving = false;

  constructor(options: JobLeasesOptions) {
    this.#options = options;
  }

  /** The jobs that were watched before the service was ended; those long over are left where they are. */
  async resume(): Promise<void> {
    const { coordinator, nowMs } = this.#options;
    for (const job of await coordinator.list()) {
      const document = job === NO_ONE_JOB ? null : documentOf(await coordinator.read(job));
      if (!document) continue;
      const { slow, still, unsaved, seenMs } = document;
      const isAlive = slow || still || unsaved.length > 0 || nowMs() - seenMs < FORGOTTEN_MS;
      if (isAlive) await this.claim(job);
    }
  }

  /** null where another service holds it. Whoever asks meanwhile waits for the same answer. */
  async claim(job: string): Promise<LeasedJob | null> {
    const known = this.jobs.get(job);
    if (known) return known;
    let claim = this.#claims.get(job);
    if (!claim && this.jobs.size + this.#claims.size >= MOST_JOBS) {
      this.#options.trouble(`more than ${MOST_JOBS} jobs: ${job} is not watched`);
      return null;
    }
    if (!claim) {
      claim = this.#claim(job).finally(() => this.#claims.delete(job));
      this.#claims.set(job, claim);
    }
    return await claim;
  }

  async #claim(job: string): Promise<LeasedJob | null> {
    const { coordinator, follow, open, trouble } = this.#options;
    try {
      const lease = await coordinator.claim(job);
      if (!lease) return null;
      const document = await coordinator.read(job);
      const leased: LeasedJob = open(lease, document, () => this.#lose(leased));
      this.jobs.set(job, leased);
      await follow(job);
      await leased.recover();
      return leased;
    } catch (error) {
      trouble(`job ${job} cannot be taken up: ${errorText(error)}`);
      return null;
    }
  }

  #lose(leased: LeasedJob): void {
    const { job } = leased;
    this.jobs.delete(job);
    void this.#options.unfollow(job).catch(() => undefined);
    void leased.writer.drop();
    this.#options.trouble(
      `the lease of job ${job} is lost: another service has it, or the brokers were away`,
    );
  }

  /** Writes down how quiet jobs stand, and lets go of those that no agent has reported for a day. */
  async save(): Promise<void> {
    // A slow store must not be asked twice at a time.
    if (this.#isSaving) return;
    this.#isSaving = true;
    const { nowMs, history, trouble } = this.#options;
    for (const [job, leased] of this.jobs) {
      if (nowMs() - leased.seenMs > FORGOTTEN_MS && leased.open.length === 0) {
        this.jobs.delete(job);
        await leased.forget().catch(() => undefined);
      } else if (leased.run) {
        await leased.writer
          .write()
          .catch((error: unknown) => trouble(`job ${job}: ${errorText(error)}`));
        await history.writeJob(leased);
      }
      // Else no agent has reported it since the service started: what is written down is still true.
    }
    this.#isSaving = false;
  }
}
