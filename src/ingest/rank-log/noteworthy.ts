import { Needles } from "../needles.ts";
import { couldTell } from "./classify.ts";
import { TIMING_NEEDLES } from "./iteration-line.ts";
import { FINISHED_NEEDLES, ITERATION_NEEDLES } from "./iterations.ts";
import { PAUSE_NEEDLES } from "./pauses.ts";
import { EXIT_NEEDLES } from "./torchrun.ts";

const DIGITS = /\d+/g;

/** What the parts beside this need to see, besides what tells of failures by itself. */
const NOTEWORTHY = new Needles(
  [
    ...FINISHED_NEEDLES,
    ...ITERATION_NEEDLES,
    ...TIMING_NEEDLES,
    ...PAUSE_NEEDLES,
    // tracebacks
    "Traceback (most recent call last)",
    'File "',
    "Error:",
    "Exception:",
    "Exception ignored in",
    "terminate called",
    "Fatal Python error",
    // watchdog
    "PG GUID ",
    "[PG 0 ",
    "WorkNCCL(",
    "NCCL work: ",
    "debug info",
    // NCCL's own lines
    " NCCL WARN ",
    "NCCL_HOSTID",
    "- Init START",
    "- Init COMPLETE",
    // launchers
    "(first observed failure)",
    "Failures:",
    ...EXIT_NEEDLES,
    // the size of the job
    "orld size",
    "orld_size",
    "WORLD_SIZE",
  ].map((needle) => needle.replace(DIGITS, "0")),
);

/** Asked of a line's form: the answer holds for all lines that differ in their numbers only. */
export function isNoteworthy(text: string): boolean {
  const form = text.replace(DIGITS, "0");
  return NOTEWORTHY.in(form) || couldTell(form);
}

/** "world size 8", not "data parallel world size 2". */
export const WORLD_SIZE =
  /(?:^|[^\w ]|(?<!parallel|group) |using |torch_)world[ _]size[ =:]{1,3}(\d{1,7})\b/i;

/** That the process was asked to write a flight-recorder dump, or writes one. */
export const DUMP = /dump signal|dump debug info|[Ff]light [Rr]ecorder debug info|debug info to/;
