import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { median } from "../../maths/robust.ts";
import { othersMedian } from "./account.ts";

const share = fc.double({ min: 0, max: 2, noNaN: true });

describe("the median of the others", () => {
  it("is, block by block, the median of all but the rank itself", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(share, share), { minLength: 2, maxLength: 9 }), (rows) => {
        const column = Float64Array.from(rows.flat());
        const places = [...rows.keys()];
        const slow = places.flatMap((own) =>
          [0, 1].map((k) => median(rows.filter((_, other) => other !== own).map((r) => r[k]!))),
        );
        expect([...othersMedian(column, places, 2)]).toEqual(slow);
      }),
    );
  });
});
