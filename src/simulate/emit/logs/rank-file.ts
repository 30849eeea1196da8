/**
 * The log of one rank. Lines are kept until there are many, and only then is the file opened: a thousand
 * ranks print a few lines each, and a thousand open files are more than most systems allow.
 */
import { machineNs } from "../../cluster/clocks.ts";
import type { Simulation } from "../../cluster/times.ts";
import { hash, STREAM } from "../../cluster/noise.ts";
import type { Output, Writer } from "../emitter.ts";
import { glogStamp, isoStamp } from "./stamps.ts";

const FLUSH_CHARS = 1 << 16;

/** Where the job's Python lives; the stacks in the dumps say so too (flight/call-stacks.ts). */
export const SITE = "/opt/venv/lib/python3.12/site-packages";

export class RankFile {
  readonly rank: number;
  readonly machine: number;
  readonly host: string;
  readonly gpu: number;
  readonly pid: number;
  readonly #simulation: Simulation;
  readonly #output: Output;
  #writer: Writer | null = null;
  #text = "";

  constructor(simulation: Simulation, output: Output, rank: number) {
    this.#simulation = simulation;
    this.#output = output;
    this.rank = rank;
    const { spec, topology } = simulation;
    this.machine = topology.machineOf(rank);
    this.host = topology.machineName(this.machine);
    this.gpu = topology.gpuOf(rank);
    this.pid = 2000 + (hash(spec.seed ^ STREAM.logs, this.machine, 0, 0) % 60_000) + this.gpu;
  }

  /** A line as it is. */
  plain(text: string): void {
    this.#text += `${text}\n`;
    if (this.#text.length > FLUSH_CHARS) this.#flush();
  }

  /** Megatron's line on the rank that prints: " [2026-11-15 10:11:12.123456] iteration …". */
  megatron(jobNs: number, text: string): void {
    this.plain(` [${isoStamp(this.#ns(jobNs), 6)}]${text}`);
  }

  /** The job's own logger. */
  info(jobNs: number, text: string, level = "INFO"): void {
    this.plain(`${isoStamp(this.#ns(jobNs), 3)} [${level}] [rank${this.rank}] ${text}`);
  }

  /** c10d: "[rank4]:[E1115 00:42:01.629186287 ProcessGroupNCCL.cpp:689] …". */
  c10d(jobNs: number, level: string, source: string, text: string): void {
    this.plain(`[rank${this.rank}]:[${glogStamp(this.#ns(jobNs), level)} ${source}] ${text}`);
  }

  /** PyTorch's excepthook puts the rank before every line of a traceback, with a space (torch/distributed). */
  traceback(lines: readonly string[]): void {
    for (const line of lines) this.plain(`[rank${this.rank}]: ${line}`);
  }

  nccl(text: string): void {
    this.plain(`${this.host}:${this.pid}:${this.pid} [${this.gpu}] NCCL INFO ${text}`);
  }

  /** Warnings carry the time by default (NCCL_DEBUG_TIMESTAMP_LEVELS) and follow an empty line. */
  ncclWarn(jobNs: number, source: string, text: string): void {
    const head = `${this.host}:${this.pid}:${this.pid + 400} [${this.gpu}]`;
    this.plain(`\n[${isoStamp(this.#ns(jobNs), 0)}] ${head} ${source} NCCL WARN ${text}`);
  }

  /** "2026-11-15 10:11:12" on the machine's clock. */
  stamp(jobNs: number): string {
    return isoStamp(this.#ns(jobNs), 0);
  }

  end(): void {
    this.#flush();
    this.#writer?.end();
  }

  /** Nanoseconds since 1970 on the machine's own clock. */
  #ns(jobNs: number): bigint {
    const { spec } = this.#simulation;
    return spec.epochNs + BigInt(Math.round(machineNs(spec, this.machine, jobNs)));
  }

  #flush(): void {
    this.#writer ??= this.#output.open(`logs/rank${this.rank}.log`);
    this.#writer.write(this.#text);
    this.#text = "";
  }
}
