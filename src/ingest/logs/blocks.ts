/**
 * Puts one writer's tracebacks, C++ frames and kernel blocks together. Several writers in one stream without prefixes mix
 * their frames; then every exception's line still ends a block of its own, and nothing waits for a line that never comes.
 */
import type { BlockRow, FrameOwner, LogBlock } from "../../model/log-digest.ts";
import * as kinds from "./line-kind.ts";

/** Lines that belong to nothing after which an open block is over. */
const MOST_FOREIGN = 12;
/** How far before "Call Trace:" or C++ frames the line stands that says what happened. */
const CAUSE_WITHIN = 8;
const FRAME = /File "([^"]{1,1000})", line (\d{1,9})(?:,? in ([^\n]{1,200}))?/;
/** Not the user's code: installed packages, the standard library, PyTorch's own tree, frozen modules. */
const LIBRARY =
  /[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python|[/\\]torch[/\\]|^<|^torch[/\\]/;
/** Training frameworks and what is installed with them, wherever they lie. */
const FRAMEWORK =
  /[/\\](?:torch|torchvision|torchtitan|deepspeed|megatron|transformers|accelerate|lightning\w*|pytorch_lightning|nemo\w*|jax|jaxlib|flax|ray|tensorflow|keras|colossalai|apex|transformer_engine|datasets|peft|trl|fairscale|fairseq|vllm)[/\\]/;
/** Packages that are built for a device, a driver and each other's versions. */
const DRIVER =
  /[/\\](?:triton|cuda|cupy|pynvml|nvidia|bitsandbytes|flash_attn|xformers|numba|nccl|torch_npu)[/\\]/;
const INSTALLED = /[/\\](?:site|dist)-packages[/\\]/;
const MOST_TEXT = 1000;
/** Of a traceback's own lines; deeper ones keep the outermost and the innermost. */
const MOST_ROWS = 64;
const MOST_ROW_TEXT = 300;
/** "    ~~~~^^^^" */
const MARKS = /^[\s~^]*$/;

interface Open {
  kind: LogBlock["kind"];
  firstLine: number;
  lastLine: number;
  timeMs: number;
  text: string;
  line: number;
  at: string | null;
  inner: FrameOwner | null;
  frames: number;
  /** Whether the exception's line, or its like, has come. */
  isSaid: boolean;
  isChained: boolean;
  /** faulthandler's frames begin with the innermost. */
  isInnermostFirst: boolean;
  foreign: number;
  readonly rows: BlockRow[];
}

export class StreamBlocks {
  readonly #emit: (block: Omit<LogBlock, "stream">) => void;
  #open: Open | null = null;
  /** The last line that may tell of a failure. */
  #cause = "";
  #causeLine = Number.NEGATIVE_INFINITY;
  #causeMs = NaN;

  constructor(emit: (block: Omit<LogBlock, "stream">) => void) {
    this.#emit = emit;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  /** A line outside of blocks that may tell: what a stack behind it is about. */
  telling(text: string, line: number, ms: number): void {
    this.#cause = text;
    this.#causeLine = line;
    this.#causeMs = ms;
  }

  /** Whether the line is a part that says nothing by itself. */
  line(kind: number, text: string, isIndented: boolean, line: number, ms: number): boolean {
    const isPart = this.#take(kind, text, isIndented, line, ms);
    const open = this.#open;
    // The block may have ended with this line, or begun with it.
    if (open?.kind === "traceback" && open.lastLine === line && !MARKS.test(text))
      addRow(open.rows, line, `${indentOf(kind)}${text.trimStart()}`);
    return isPart;
  }

  #take(kind: number, text: string, isIndented: boolean, line: number, ms: number): boolean {
    switch (kind) {
      case kinds.PLAIN:
      case kinds.SEQUEL:
        return this.#plain(isIndented, kind, line);
      case kinds.HEADER:
        this.#header(text, line, ms);
        return true;
      case kinds.FRAME:
        this.#frame(text, line, ms);
        return true;
      case kinds.EXCEPTION:
        this.#exception(text, isIndented, line);
        return false;
      case kinds.CHAIN:
        if (this.#open?.kind === "traceback") {
          this.#open.isChained = true;
          this.#grow(line);
        }
        return true;
      case kinds.FATAL_PYTHON:
        this.finish();
        this.#begin("traceback", text, line, ms);
        this.#open!.isSaid = this.#open!.isInnermostFirst = true;
        return false;
      case kinds.THREAD:
        this.#thread(text, line, ms);
        return true;
      case kinds.KERNEL_HEAD:
        this.finish();
        this.#begin("kernel", text, line, ms);
        return false;
      case kinds.KERNEL_TRACE:
      case kinds.KERNEL_PART:
        this.#part("kernel", kind === kinds.KERNEL_TRACE, text, line, ms);
        return true;
      case kinds.NATIVE_HEAD:
        this.#native(text, line, ms);
        return false;
      case kinds.NATIVE_WHAT:
        this.#what(text, line, ms);
        return false;
      default:
        this.#part("native", kind === kinds.NATIVE_TRACE, text, line, ms);
        return true;
    }
  }

  finish(): void {
    const open = this.#open;
    this.#open = null;
    if (!open || (open.frames === 0 && !open.isSaid)) return;
    const { kind, firstLine, lastLine, timeMs, text: whole, line, at, inner, rows } = open;
    const text = whole.slice(0, MOST_TEXT);
    const block = { kind, firstLine, lastLine, timeMs, text, line, at, inner };
    this.#emit(rows.length > 0 ? { ...block, rows } : block);
  }

  /** Code under a frame is a part; anything else that is not ends the block after a while. */
  #plain(isIndented: boolean, kind: number, line: number): boolean {
    const open = this.#open;
    if (!open) return false;
    if (isIndented && open.kind === "traceback" && open.frames > 0 && !open.isSaid) {
      this.#grow(line);
      return true;
    }
    if (kind === kinds.PLAIN && ++open.foreign > MOST_FOREIGN) this.finish();
    return false;
  }

  #header(text: string, line: number, ms: number): void {
    const open = this.#open;
    const goesOn =
      open?.kind === "traceback" && (open.isChained || !open.isSaid || /Original Trace/.test(text));
    if (!open || !goesOn) {
      this.finish();
      this.#begin("traceback", text, line, ms);
      return;
    }
    this.#grow(line);
  }

  #frame(text: string, line: number, ms: number): void {
    // Frames after the exception are another writer's, or their header was cut off.
    if (this.#open?.kind !== "traceback" || this.#isOver(this.#open)) {
      this.finish();
      this.#begin("traceback", text, line, ms);
    }
    const open = this.#open!;
    this.#grow(line);
    open.frames++;
    if (!(open.isInnermostFirst || open.isSaid) || open.inner === null)
      open.inner = ownerOf(text) ?? open.inner;
    if ((open.isSaid || open.isInnermostFirst) && open.at !== null) return;
    open.at = userFrame(text) ?? open.at;
  }

  #isOver(open: Open): boolean {
    return open.isSaid && !open.isChained && !open.isInnermostFirst;
  }

  #exception(text: string, isIndented: boolean, line: number): void {
    const open = this.#open;
    if (open?.kind !== "traceback" || open.isInnermostFirst || open.frames === 0) return;
    if (open.isSaid && !open.isChained) {
      // Two writers without prefixes: the other one's exception.
      if (isIndented) return;
      const { firstLine, timeMs, at, inner } = open;
      this.finish();
      this.#begin("traceback", text, firstLine, timeMs);
      this.#open!.at = at;
      this.#open!.inner = inner;
      this.#open!.frames = 1;
    }
    this.#grow(line);
    const now = this.#open!;
    // The start of a chain is what went wrong, unless it says nothing.
    if (!now.isSaid || !now.text.includes(": ")) {
      now.text = text;
      now.line = line;
    }
    now.isSaid = true;
    now.isChained = false;
  }

  #thread(text: string, line: number, ms: number): void {
    if (this.#open?.kind === "traceback" && this.#open.isInnermostFirst) {
      this.#grow(line);
      return;
    }
    this.finish();
    this.#begin("traceback", text, line, ms);
    this.#open!.isInnermostFirst = true;
  }

  #native(text: string, line: number, ms: number): void {
    this.finish();
    this.#begin("native", text, line, ms);
    this.#open!.isSaid = true;
  }

  #what(text: string, line: number, ms: number): void {
    if (this.#open?.kind !== "native") this.#native(text, line, ms);
    const open = this.#open!;
    open.text = text;
    open.line = line;
    this.#grow(line);
  }

  /** Frames and headers that belong to what was said right before them. */
  #part(
    kind: "native" | "kernel",
    isHeader: boolean,
    text: string,
    line: number,
    ms: number,
  ): void {
    const isNext = this.#open?.kind === kind && isHeader && this.#open.frames > 0;
    if (this.#open?.kind !== kind || (isNext && kind === "kernel" && this.#open.foreign > 0)) {
      // A register dump goes with a C++ frame as little as with a traceback.
      this.finish();
      this.#begin(kind, text, line, ms);
      const open = this.#open!;
      if (line - this.#causeLine <= CAUSE_WITHIN) {
        open.text = this.#cause;
        open.line = open.firstLine = this.#causeLine;
        open.timeMs = this.#causeMs;
      }
    }
    this.#open!.frames++;
    this.#grow(line);
  }

  #grow(line: number): void {
    const open = this.#open;
    if (!open) return;
    open.lastLine = line;
    open.foreign = 0;
  }

  #begin(kind: LogBlock["kind"], text: string, line: number, timeMs: number): void {
    this.#open = {
      kind,
      firstLine: line,
      lastLine: line,
      timeMs,
      text,
      line,
      at: null,
      inner: null,
      frames: 0,
      isSaid: false,
      isChained: false,
      isInnermostFirst: false,
      foreign: 0,
      rows: [],
    };
  }
}

/** As Python writes them: what stands before a line's content was taken off with its header. */
function indentOf(kind: number): string {
  return kind === kinds.FRAME ? "  " : kind === kinds.PLAIN ? "    " : "";
}

function addRow(rows: BlockRow[], line: number, text: string): void {
  if (rows.length === MOST_ROWS) rows.splice(MOST_ROWS >> 1, 1);
  rows.push({ line, text: text.slice(0, MOST_ROW_TEXT) });
}

/** "train.py:177 train_step", null for frames of libraries. */
function userFrame(text: string): string | null {
  const m = FRAME.exec(text);
  if (!m || LIBRARY.test(m[1]!)) return null;
  const file = m[1]!.slice(Math.max(m[1]!.lastIndexOf("/"), m[1]!.lastIndexOf("\\")) + 1);
  return m[3] === undefined ? `${file}:${m[2]}` : `${file}:${m[2]} ${m[3].trim()}`;
}

/** Null for the standard library and other packages, which raise what they were called with. */
function ownerOf(text: string): FrameOwner | null {
  const path = FRAME.exec(text)?.[1];
  if (path === undefined || path.startsWith("<")) return null;
  if (DRIVER.test(path) && INSTALLED.test(path)) return "driver";
  if (FRAMEWORK.test(path)) return "framework";
  return LIBRARY.test(path) ? null : "user";
}
