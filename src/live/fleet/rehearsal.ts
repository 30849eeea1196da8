/** A rehearsed job: played in real time, steered by words, started anew when asked. */
import { errorText, UserError } from "../../base/errors.ts";
import { cutText, harmless } from "../../base/text.ts";
import type { BoardFault } from "./fault-board.ts";
import { LiveRun, type LiveRunOptions } from "./live-run.ts";

export interface RehearsalOptions extends Omit<LiveRunOptions, "runNumber"> {
  /** How often rings are brought up to date. */
  readonly tickMs: number;
  /** Below 2^31; the next start's is one more. */
  readonly runNumber: number;
  /** One line for people. */
  readonly say: (line: string) => void;
}

/** The truth, for whoever measures. */
export interface RehearsalState {
  readonly job: string;
  readonly run: string;
  readonly gpus: number;
  readonly machines: readonly { readonly machine: string; readonly folder: string }[];
  readonly startedMs: number;
  /** What a healthy iteration takes. */
  readonly everyMs: number;
  /** The one that runs. */
  readonly iteration: number;
  readonly isHung: boolean;
  /** Milliseconds by which the job was put off because this machine was too busy to play it. */
  readonly lateMs: number;
  readonly faults: readonly BoardFault[];
}

const WORDS =
  "CAUSE:KEY=VALUE:… breaks something from the next iteration on; clear, clear N; state; restart; quit";

export class Rehearsal {
  readonly #options: RehearsalOptions;
  #run: LiveRun;
  #runNumber: number;
  #timer: NodeJS.Timeout | null = null;
  /** Starts and ends of runs, one after the other. */
  #changing: Promise<void> = Promise.resolve();
  #saidHung = false;
  #saidLateMs = 0;
  /** Called when somebody says quit. */
  onQuit: () => void = () => undefined;

  private constructor(options: RehearsalOptions, run: LiveRun) {
    this.#options = options;
    this.#run = run;
    this.#runNumber = options.runNumber;
    this.#tick();
  }

  static async start(options: RehearsalOptions): Promise<Rehearsal> {
    return new Rehearsal(options, await LiveRun.start(options));
  }

  get run(): LiveRun {
    return this.#run;
  }

  state(): RehearsalState {
    const { played, machines, run } = this.#run;
    return {
      job: this.#options.job,
      run,
      gpus: played.simulation.spec.gpus,
      machines,
      startedMs: played.startedMs,
      everyMs: played.everyMs,
      iteration: played.last?.iteration ?? 0,
      isHung: played.isHung,
      lateMs: played.lateMs,
      faults: played.board.faults,
    };
  }

  add(text: string): BoardFault {
    if (this.#run.played.isOver)
      throw new UserError("the job stands still: nothing begins any more", "restart it first", 2);
    return this.#run.played.board.add(text);
  }

  remove(id: number): boolean {
    return this.#run.played.board.remove(id);
  }

  clear(): number {
    return this.#run.played.board.clear();
  }

  /** Ends the job and starts it anew, without faults: other processes, other rings, iteration 1. */
  restart(): Promise<void> {
    const started = this.#changing.then(async () => {
      this.#stop();
      await this.#run.close();
      this.#runNumber = (this.#runNumber + 1) % 2 ** 31;
      const spec = { ...this.#options.spec, faults: [] };
      this.#run = await LiveRun.start({ ...this.#options, spec, runNumber: this.#runNumber });
      this.#saidHung = false;
      this.#saidLateMs = 0;
      this.#tick();
    });
    // What went wrong with a start is said to whoever asked for it.
    this.#changing = started.catch(() => undefined);
    return started;
  }

  /** What a line of words brings about; the answer is a line, too. */
  async command(line: string): Promise<string> {
    const words = line.trim();
    try {
      if (words === "") return "";
      if (words === "state") return JSON.stringify(this.state());
      if (words === "clear") return `${this.clear()} taken away, from the next iteration on`;
      if (words === "quit") {
        this.onQuit();
        return "";
      }
      if (words === "restart") {
        await this.restart();
        return `started anew as ${this.#run.run}`;
      }
      const one = /^clear (\d{1,9})$/.exec(words);
      if (one)
        return this.remove(Number(one[1])) ? `${one[1]} taken away` : `there is no ${one[1]}`;
      if (!words.includes(":") && !/^[a-z-]+$/.test(words)) return `unknown; ${WORDS}`;
      const { id, fault } = this.add(words.replace(/^fault\s+/, ""));
      return `${id}: ${harmless(fault)}, from the next iteration on`;
    } catch (error) {
      if (error instanceof UserError)
        return cutText(harmless(`${error.message}; ${error.hint}`), 600);
      return harmless(errorText(error));
    }
  }

  /** The job ends as one that is done, so that agents can tell; `close` must follow. */
  async finish(): Promise<void> {
    await this.#changing;
    this.#stop();
    if (!this.#run.played.isHung) this.#run.finish();
  }

  /** Processes end, files are removed. */
  async close(): Promise<void> {
    await this.#changing;
    this.#stop();
    await this.#run.close();
  }

  #tick(): void {
    this.#timer = setInterval(() => this.#step(), this.#options.tickMs);
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #step(): void {
    const { played } = this.#run;
    try {
      this.#run.step();
    } catch (error) {
      // A full disk, or somebody removed the folders.
      this.#stop();
      const why = errorText(error);
      this.#options.say(`rings can no longer be written, the job stands still: ${harmless(why)}`);
      return;
    }
    if (played.isHung && !this.#saidHung) {
      this.#saidHung = true;
      this.#options.say(`iteration ${played.last!.iteration} will never end; restart starts anew`);
    }
    if (played.lateMs > this.#saidLateMs) {
      this.#saidLateMs = played.lateMs * 2;
      this.#options.say(
        `this machine is too busy: the job was put off by ${Math.round(played.lateMs)} ms so far`,
      );
    }
  }
}
