/**
 * What a line is to the block that it may be part of: tracebacks of CPython (Lib/traceback.py, faulthandler.c), C++ frames
 * as c10 prints them (c10/util/Backtrace.cpp, Exception.cpp), blocks of the Linux kernel. Asked once for every form.
 */
export const PLAIN = 0;
export const HEADER = 1;
export const FRAME = 2;
export const EXCEPTION = 3;
export const CHAIN = 4;
/** faulthandler: "Fatal Python error: …", and the header of a thread whose frames are the other way round. */
export const FATAL_PYTHON = 5;
export const THREAD = 6;
export const NATIVE_HEAD = 7;
const NATIVE_FRAME = 8;
/** "  what():  …": what a C++ exception says. */
export const NATIVE_WHAT = 9;
export const KERNEL_HEAD = 10;
export const KERNEL_TRACE = 11;
export const KERNEL_PART = 12;
/** Sentences that go on with what the line before said. */
export const SEQUEL = 13;
/** "Exception raised from …": the header of C++ frames. */
export const NATIVE_TRACE = 14;

const EXCEPTION_LINE =
  /^(?:[A-Za-z_]\w{0,80}\.){0,12}(?:[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout|Iteration|Empty|Full|Killed)|[A-Z]\w{0,80}Error\w{0,20}|(?:[A-Za-z_]\w{0,80}\.){1,12}(?:[A-Z]\w{1,80}|error|timeout|gaierror|herror))(?::(?: |$)|$)/;
const HEADER_LINE = /Traceback \(most recent call last\)/;
const FRAME_LINE = /^File "[^"]{1,1000}", line \d{1,9}(?:,? in |$)/;
const CHAIN_LINE =
  /^(?:During handling of the above exception|The above exception was the direct cause)/;
const THREAD_LINE =
  /^(?:Current thread|Thread) (?:0x)?\w{1,18}.{0,80}\(most recent call first\):|^Stack \(most recent call first\):/;
const NATIVE_FRAME_LINE =
  /^frame #\d{1,4}: |^#\d{1,4}:? +(?:0x[0-9a-f]+ in )?[\w:~<>]{2,}.* (?:from |at |in )\S|^\[[\w.-]{1,80}:\d{1,8}\] \[ ?\d{1,3}\] /;
const NATIVE_TRACE_LINE =
  /^Exception raised from .* \(most recent call first\):|^C\+\+ CapturedTraceback:|^Stack trace(?: from| \(most)/;
const NATIVE_HEAD_LINE =
  /^terminate called (?:after|without)|^\*\*\* (?:Process received signal|Aborted at|SIG[A-Z]+)/;
const KERNEL_HEAD_LINE =
  /^(?:BUG: |Oops|kernel BUG at |general protection fault|Kernel panic|watchdog: BUG: |INFO: task .{1,80} blocked for|INFO: rcu_|rcu: INFO|NMI watchdog: |WARNING: CPU: \d|[\w.-]{1,40} invoked oom-killer|Unable to handle kernel)/;
const KERNEL_PART_LINE =
  /^(?:\? )?[\w.]{1,400}\+0x[0-9a-f]+\/0x[0-9a-f]+(?: \[\w{1,60}\])?(?: \w{1,40})?$|^\[<[0-9a-f?]+>\] ?|^(?:RIP|RSP|RAX|RDX|RBP|RSI|R\d\d|CS|FS|GS|CR2|DR\d|EIP|EAX|PKRU|pc|lr|sp|x\d{1,2}) ?:|^Code: |^Modules linked in:|^Hardware name:|^CPU: \d{1,4} PID: |^(?:Not t|T)ainted[: ]|^ORIG_RAX: |^<\/?(?:TASK|IRQ|NMI)>$|^---\[ end trace|^task:\S+ +state:|^Workqueue: |^"echo 0 > \/proc\/sys\/kernel\/hung_task/;
const SEQUEL_LINE =
  /^(?:CUDA kernel errors might be asynchronously|For debugging consider passing|Compile with `TORCH_USE_CUDA_DSA|Device-side assertion|(?:HIP|XPU) kernel errors might)/;
const NOT_AN_EXCEPTION = /^(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL|TRACE|NOTE)\b/;

/** What all lines of blocks have one of; text in words has none. */
const HINT =
  /[:#"+<[]|^[A-Z]\w*(?:\.\w+)*$|\.\w+$|^(?:During|The|CUDA|HIP|XPU|For|Compile|Device|terminate|Oops|general|Kernel|kernel|\w+ invoked|Unable)/;

/** `text`: the message, without blanks at its ends. */
export function lineKind(text: string): number {
  if (!HINT.test(text)) return PLAIN;
  const first = text.charCodeAt(0);
  if (HEADER_LINE.test(text)) return HEADER;
  if (first === 70 && FRAME_LINE.test(text)) return FRAME;
  if (CHAIN_LINE.test(text)) return CHAIN;
  if (text.startsWith("Fatal Python error: ")) return FATAL_PYTHON;
  if (THREAD_LINE.test(text)) return THREAD;
  if (NATIVE_FRAME_LINE.test(text)) return NATIVE_FRAME;
  if (NATIVE_TRACE_LINE.test(text)) return NATIVE_TRACE;
  if (NATIVE_HEAD_LINE.test(text)) return NATIVE_HEAD;
  if (text.startsWith("what(): ")) return NATIVE_WHAT;
  if (KERNEL_HEAD_LINE.test(text)) return KERNEL_HEAD;
  if (text.startsWith("Call Trace:")) return KERNEL_TRACE;
  if (KERNEL_PART_LINE.test(text)) return KERNEL_PART;
  if (SEQUEL_LINE.test(text)) return SEQUEL;
  if (text.length < 4000 && EXCEPTION_LINE.test(text) && !NOT_AN_EXCEPTION.test(text))
    return EXCEPTION;
  return PLAIN;
}

/** Whether lines of this kind say nothing by themselves. */
export function isPartKind(kind: number): boolean {
  return (
    kind === HEADER ||
    kind === FRAME ||
    kind === CHAIN ||
    kind === THREAD ||
    kind === NATIVE_FRAME ||
    kind === NATIVE_TRACE ||
    kind === KERNEL_TRACE ||
    kind === KERNEL_PART
  );
}
