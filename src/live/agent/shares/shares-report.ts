/** Slots of some ranks as a report: dense columns of 16 bits. */
import { UNKNOWN_SHARE, WHOLE_SHARE } from "../../../model/rank-shares.ts";
import { LIMITS, type SharesReport } from "../../wire/messages.ts";

/** What one slot of a rank was spent on: shares of the slot; operators. */
export interface SlotRow {
  readonly slot: number;
  readonly inside: number;
  readonly late: number;
  readonly gpu: number;
  readonly onWire: number;
  readonly issued: number;
  readonly ended: number;
  readonly wires: readonly WireRow[];
}

/** What ended over a communicator in a slot: milliseconds of an operator, and how many they were. */
export interface WireRow {
  readonly key: string;
  readonly ms: number;
  readonly count: number;
}

type Head = Pick<SharesReport, "job" | "run" | "ranks" | "firstSlot">;

/** `rows` by rank; those of other slots are left out. */
export function reportOf(
  head: Head,
  rows: readonly (readonly SlotRow[])[],
  slots: number,
): SharesReport {
  const { ranks, firstSlot } = head;
  const own = rows.map((all) =>
    all.filter(({ slot }) => slot >= firstSlot && slot < firstSlot + slots),
  );
  const keys = [...new Set(own.flat().flatMap((row) => row.wires.map(({ key }) => key)))];
  const most = Math.min(LIMITS.wiresPerFrame, Math.floor(LIMITS.sharesPerFrame / slots));
  const report = emptyReport(head, keys.slice(0, most), slots);
  const wireOf = new Map(report.wires.map((key, wire) => [key, wire]));
  for (const [place, mine] of own.entries())
    for (const row of mine) {
      fill(report, (row.slot - firstSlot) * ranks.length + place, row);
      for (const wire of row.wires) time(report, row.slot, wireOf, wire);
    }
  return report;
}

function emptyReport(head: Head, wires: readonly string[], slots: number): SharesReport {
  const column = (): Uint16Array => new Uint16Array(slots * head.ranks.length).fill(UNKNOWN_SHARE);
  return {
    kind: "shares",
    ...head,
    wires,
    inside: column(),
    late: column(),
    gpu: column(),
    onWire: column(),
    issued: column(),
    ended: column(),
    wireMs: new Float32Array(slots * wires.length).fill(NaN),
    wireCount: new Uint16Array(slots * wires.length),
  };
}

function fill(report: SharesReport, at: number, row: SlotRow): void {
  report.inside[at] = within(row.inside * WHOLE_SHARE);
  report.late[at] = within(row.late * WHOLE_SHARE);
  report.gpu[at] = within(row.gpu * WHOLE_SHARE);
  report.onWire[at] = within(row.onWire * WHOLE_SHARE);
  report.issued[at] = within(row.issued);
  report.ended[at] = within(row.ended);
}

function time(
  { firstSlot, wires, wireMs, wireCount }: SharesReport,
  slot: number,
  wireOf: ReadonlyMap<string, number>,
  { key, ms, count }: WireRow,
): void {
  const wire = wireOf.get(key);
  if (wire === undefined) return;
  const at = (slot - firstSlot) * wires.length + wire;
  // The member that waited least shows what the wire takes.
  if (!(wireMs[at]! <= ms)) wireMs[at] = ms;
  wireCount[at] = Math.max(wireCount[at]!, within(count));
}

function within(value: number): number {
  return Math.min(WHOLE_SHARE, Math.round(value));
}
