/**
 * What probe/cuda-gdb/inspect-hang.sh writes: a process that hangs, as cuda-gdb sees it. The answer to "what does its GPU
 * do" becomes a stack: inside an NCCL kernel (it communicates), inside another kernel, or with an empty GPU (then its
 * host's main thread counts). Tables are those of cuda-gdb's "info cuda kernels" and "info cuda blocks" (CUDA-GDB manual,
 * "Info CUDA Commands"). Step counters of NCCL's connections live in registers that nobody can name without symbols: which
 * peer a block waits for, this does not tell.
 */
import type { Frame } from "../model/operators.ts";
import type { Defect, Reading } from "../model/reading.ts";
import type { StackDump, ThreadStack } from "../model/stacks.ts";
import { LineSink } from "./line-sink.ts";
import type { Head, Reader } from "./reader.ts";

const FORMAT = "cuda-gdb";
const TITLE = "faultline cuda-gdb ";
const MOST_THREADS = 4096;
const MOST_FRAMES = 64;
const LONGEST_LINE = 2000;

/** Kernel, parent, device, ...; the grid, the block (and on some a cluster between them), the name with its arguments. */
const KERNEL =
  /^\*?\s*(\d{1,6})\s+\S+\s+\d+\s.*?\((\d{1,9}),\d+,\d+\)(?:\s+\(\d+,\d+,\d+\)){1,2}\s+(\S.*)$/;
/** First and last block of a stretch, how many they are, and their state. */
const BLOCKS = /^\*?\s*\(\d+,\d+,\d+\)\s+\(\d+,\d+,\d+\)\s+(\d{1,9})\s+\w+\s*$/;
/** "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)": the operator, and the rest. */
const NCCL = /\bnccl(?:Dev)?Kernel_([A-Za-z]+)(\w*)/;
const HOST_THREAD = /^Thread \d+ \(.*\(LWP (\d{1,10})\).*\):$/;
const HOST_FRAME =
  /^#\d+\s+(?:0x[0-9a-fA-F]+ in )?(.+?) \(.*?\)(?: (?:at|from) (.+?)(?::(\d{1,9}))?)?$/;

export const cudaGdb: Reader = {
  format: FORMAT,
  sniff: (head: Head) => head.text.startsWith(TITLE),
  open: (file: string) => new InspectionSink(file),
};

interface Kernel {
  readonly name: string;
  /** Blocks of the grid; of an NCCL kernel, its channels. */
  readonly grid: number;
  readonly line: number;
  /** Those that are not done; NaN where nobody looked. */
  left: number;
}

class InspectionSink extends LineSink {
  readonly #kernels = new Map<number, Kernel>();
  readonly #threads: ThreadStack[] = [];
  #pid: number | null = null;
  #rank: number | null = null;
  #section = "";
  #kernel = -1;
  #frames: Frame[] | null = null;
  /** Whether the debugger had a view of the GPU at all. */
  #sawGpu = false;
  #late = false;

  finish(): Reading {
    const defects: Defect[] = [];
    const say = (what: string): void => void defects.push({ file: this.file, what });
    if (!this.#sawGpu)
      say("the debugger did not see the GPU: it could not attach, or is not cuda-gdb");
    if (this.#late) say("the debugger was stopped before it had seen everything");
    const stack = this.#sawGpu ? this.#stack() : null;
    return {
      file: this.file,
      format: FORMAT,
      rank: this.#rank,
      records: this.#kernels.size,
      defects,
      ...(stack === null ? {} : { stacks: [stack] }),
    };
  }

  #stack(): StackDump | null {
    const kernels = [...this.#kernels.values()];
    const busy = kernels.find(({ name }) => NCCL.test(name)) ?? kernels[0];
    const onGpu: ThreadStack[] =
      busy === undefined
        ? []
        : [
            {
              name: "GPU",
              isMain: true,
              status: "active",
              frames: [frameOf(busy)],
              line: busy.line,
            },
          ];
    const host = this.#threads.map((thread) => ({
      ...thread,
      isMain: busy === undefined && thread.isMain,
    }));
    const threads = [...onGpu, ...host].filter(({ frames }) => frames.length > 0);
    return threads.length > 0 ? { file: this.file, pid: this.#pid, threads } : null;
  }

  line(text: string, no: number): void {
    // No line that says something is longer, and patterns stay cheap.
    if (text.length > LONGEST_LINE) return;
    if (text.startsWith("== ")) {
      this.#begin(text.slice(3));
      return;
    }
    switch (this.#section) {
      case "":
        this.#about(text);
        break;
      case "kernels":
        this.#kernelRow(text, no);
        break;
      case "blocks":
        this.#blockRow(text);
        break;
      case "host":
        this.#hostLine(text, no);
        break;
      default:
    }
  }

  #about(text: string): void {
    const [, word, value] = /^(process|rank): (\d{1,10})$/.exec(text) ?? [];
    if (word === "process") this.#pid = Number(value);
    else if (word === "rank") this.#rank = Number(value);
  }

  #begin(title: string): void {
    this.#frames = null;
    const blocks = /^blocks of kernel (\d{1,6})$/.exec(title);
    if (title.startsWith("sample ")) {
      // Of several looks the last counts.
      this.#kernels.clear();
      this.#threads.length = 0;
      this.#section = "other";
    } else if (blocks) {
      this.#section = "blocks";
      this.#kernel = Number(blocks[1]);
    } else if (title === "kernels" || title === "host threads") {
      this.#section = title === "kernels" ? title : "host";
    } else {
      if (title.startsWith("not done within")) this.#late = true;
      this.#section = "other";
    }
  }

  #kernelRow(text: string, no: number): void {
    // "No CUDA kernels." is an answer, too.
    if (/^\s*Kernel\s+Parent\s|^No CUDA kernels/.test(text)) this.#sawGpu = true;
    const match = KERNEL.exec(text);
    if (!match || this.#kernels.size >= MOST_THREADS) return;
    const [, id, grid, name] = match;
    this.#kernels.set(Number(id), { name: name!, grid: Number(grid), line: no, left: NaN });
  }

  #blockRow(text: string): void {
    const kernel = this.#kernels.get(this.#kernel);
    const match = BLOCKS.exec(text);
    if (kernel && match)
      kernel.left = (Number.isNaN(kernel.left) ? 0 : kernel.left) + Number(match[1]);
  }

  #hostLine(text: string, no: number): void {
    const thread = HOST_THREAD.exec(text);
    if (thread) {
      if (this.#threads.length >= MOST_THREADS) return;
      this.#frames = [];
      const isMain = Number(thread[1]) === this.#pid;
      const name = isMain ? "MainThread" : `LWP ${thread[1]}`;
      this.#threads.push({ name, isMain, status: "", frames: this.#frames, line: no });
      return;
    }
    const frame = HOST_FRAME.exec(text);
    if (!frame || !this.#frames || this.#frames.length >= MOST_FRAMES) return;
    this.#frames.push({ func: frame[1]!, file: frame[2] ?? "", line: Number(frame[3] ?? 0) });
  }
}

/** "all_reduce (NCCL kernel Sum_f32_RING_LL, 2 of 8 channels left)". */
function frameOf({ name, grid, left }: Kernel): Frame {
  const nccl = NCCL.exec(name);
  const rest = Number.isNaN(left)
    ? ""
    : `, ${left} of ${grid} ${nccl ? "channels" : "blocks"} left`;
  if (!nccl)
    return { func: `${name.replace(/[(<].*$/s, "")} (GPU kernel${rest})`, file: "GPU", line: 0 };
  const operator = nccl[1]!.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
  const detail = nccl[2]!.replace(/^_/, "");
  return {
    func: `${operator} (NCCL kernel${detail === "" ? "" : ` ${detail}`}${rest})`,
    // The folder by which stacks in communication are recognised (methods/hang/stacks.ts): transfers have names
    // that a function of the user's might have, too.
    file: "nccl/c10d",
    line: 0,
  };
}
