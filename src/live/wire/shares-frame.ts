/** Reports of shares: dense columns of 16 bits; ranks, wires and the first slot are in the head. */
import { SLOT_MS } from "../../model/rank-shares.ts";
import { type Fields, integerIn, isTime, listIn, nameIn, ranksIn, textIn } from "./fields.ts";
import { checkLengths, columnsOf, FrameError, lengthsOf, readColumns } from "./frame.ts";
import { LIMITS, type SharesReport } from "./messages.ts";

const SHARES = {
  wireMs: { kind: "f32", table: 1 },
  wireCount: { kind: "u16", table: 1 },
  inside: { kind: "u16", table: 0 },
  late: { kind: "u16", table: 0 },
  gpu: { kind: "u16", table: 0 },
  onWire: { kind: "u16", table: 0 },
  issued: { kind: "u16", table: 0 },
  ended: { kind: "u16", table: 0 },
} as const;
const KEY_LENGTH = 512;
const LAST_SLOT = 8.64e15 / SLOT_MS;

export function sharesHead(report: SharesReport): Fields {
  const { kind, job, run, ranks, firstSlot, wires } = report;
  return { kind, job, run, ranks, firstSlot, wires, lengths: lengthsOf(SHARES, report) };
}

export function sharesColumns(report: SharesReport): ArrayBufferView[] {
  return columnsOf(SHARES, report);
}

/** Throws FrameError where no service would take it, before anything is encoded. */
export function checkShares(report: SharesReport): void {
  checkLengths(SHARES, lengthsOf(SHARES, report), LIMITS.sharesPerFrame);
  checkSlots({ ...headOf({ ...report }), ...report });
}

export function readShares(head: Fields, payload: Uint8Array): SharesReport {
  const columns = readColumns(SHARES, head["lengths"], payload, LIMITS.sharesPerFrame);
  const report = { ...headOf(head), ...columns };
  checkSlots(report);
  return report;
}

function headOf(
  head: Fields,
): Pick<SharesReport, "kind" | "job" | "run" | "ranks" | "firstSlot" | "wires"> {
  const keyOf = (value: unknown): string => textIn({ key: value }, "key", KEY_LENGTH);
  return {
    kind: "shares",
    job: nameIn(head, "job"),
    run: nameIn(head, "run"),
    ranks: ranksIn(head, "ranks", LIMITS.ranksPerAgent),
    firstSlot: integerIn(head, "firstSlot", 0, LAST_SLOT),
    wires: listIn(head, "wires", LIMITS.wiresPerFrame, keyOf),
  };
}

/** Columns hold whole slots, and wires take no absurd time. What is beyond a share is a share that is not known. */
function checkSlots({ ranks, wires, firstSlot, inside, wireMs }: SharesReport): void {
  const slots = ranks.length === 0 ? 0 : inside.length / ranks.length;
  if (!Number.isInteger(slots) || (ranks.length === 0 && inside.length > 0))
    throw new FrameError("shares that are not whole slots");
  if (wireMs.length !== slots * wires.length)
    throw new FrameError("times of wires that are not whole slots");
  if (!isTime((firstSlot + slots) * SLOT_MS)) throw new FrameError("slots beyond all time");
  for (const ms of wireMs)
    if (ms < 0 || ms === Infinity) throw new FrameError("an operator that is no duration");
}
