import { describe, expect, it } from "vitest";
import { NEVER } from "./slot-sweep.ts";
import { mendStarts } from "./true-starts.ts";

interface Row {
  readonly issued: number;
  readonly stamped: number;
  readonly ended: number;
  readonly transfer?: true;
  readonly communicator?: number;
}

function startsOf(rows: readonly Row[], endOf: (communicator: number) => number = () => 0) {
  const column = (of: (row: Row) => number): Float64Array => Float64Array.from(rows, of);
  const started = new Float64Array(rows.length);
  mendStarts(
    {
      count: rows.length,
      issued: column(({ issued }) => issued),
      stamped: column(({ stamped }) => stamped),
      started,
      ended: column(({ ended }) => ended),
      communicator: Uint16Array.from(rows, ({ communicator = 0 }) => communicator),
      isTransfer: Uint8Array.from(rows, ({ transfer }) => (transfer ? 1 : 0)),
    },
    endOf,
  );
  return [...started];
}

const MS = 1e6;

describe("starts that were stamped with the call's own time", () => {
  it("are those of the kernel where others of the group of transfers tell it", () => {
    const transfer = true;
    expect(
      startsOf([
        { issued: 0, stamped: 0, ended: 20 * MS, transfer },
        { issued: 1000, stamped: 19 * MS, ended: 20 * MS, transfer },
        { issued: 2000, stamped: 2000, ended: 2000, transfer },
        // Another group: called much later.
        { issued: 30 * MS, stamped: 30 * MS, ended: 40 * MS, transfer },
      ]),
      // What is said to have ended when it was called takes no time.
    ).toEqual([19 * MS, 19 * MS, 2000, 30 * MS]);
  });

  it("are not before the communicator's operators before it have ended", () => {
    expect(
      startsOf([
        { issued: 0, stamped: 5 * MS, ended: 20 * MS },
        { issued: 1 * MS, stamped: 1 * MS, ended: 30 * MS },
        { issued: 2 * MS, stamped: 2 * MS, ended: 31 * MS, communicator: 1 },
      ]),
    ).toEqual([5 * MS, 20 * MS, 2 * MS]);
    expect(startsOf([{ issued: 0, stamped: 0, ended: 9 * MS }], () => 4 * MS)).toEqual([4 * MS]);
  });

  it("have not come while the one before goes on", () => {
    expect(
      startsOf([
        { issued: 0, stamped: 5 * MS, ended: NEVER },
        { issued: 1 * MS, stamped: 1 * MS, ended: NEVER },
      ]),
    ).toEqual([5 * MS, NEVER]);
  });

  it("leave sound stamps as they are, and what never started", () => {
    expect(
      startsOf([
        { issued: 0, stamped: 5 * MS, ended: 20 * MS },
        { issued: 1 * MS, stamped: 10 * MS, ended: 30 * MS },
        { issued: 2 * MS, stamped: NEVER, ended: NEVER },
      ]),
    ).toEqual([5 * MS, 10 * MS, NEVER]);
  });
});
