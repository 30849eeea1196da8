import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gridGeometry, nextRow, rowAt, rowsIn } from "./grid-geometry.ts";
import { gridLayout } from "./grid-layout.ts";

type Places = Parameters<typeof gridLayout>[0];

function job(pipeline: number, data: number, tensor: number, hasPlaces = true): Places {
  const count = pipeline * data * tensor;
  const column = (of: (row: number) => number) =>
    Int32Array.from({ length: count }, (_, row) => of(row));
  const place = (of: (row: number) => number) => column(hasPlaces ? of : () => -1);
  return {
    count,
    rank: column((row) => row),
    machine: Array.from({ length: count }, (_, row) => `node${Math.floor(row / 8)}`),
    gpu: column((row) => row % 8),
    pipeline: place((row) => Math.floor(row / (data * tensor))),
    data: place((row) => Math.floor(row / tensor) % data),
    tensor: place((row) => row % tensor),
  };
}

const room = { width: 1000, height: 560, pixelRatio: 1 };

describe("the layout of ranks", () => {
  test("stages are bands, replicas blocks, tensor ranks slots", () => {
    const layout = gridLayout(job(2, 4, 8));
    expect(layout.kind).toBe("coordinates");
    expect(layout.bands.map(({ label }) => label)).toEqual(["stage 0", "stage 1"]);
    expect(layout.bands[0]!.blocks).toEqual(["replica 0", "replica 1", "replica 2", "replica 3"]);
    expect([layout.band[45], layout.block[45], layout.slot[45]]).toEqual([1, 1, 5]);
  });

  test("without coordinates machines are the blocks, in the order of their numbers", () => {
    const layout = gridLayout(job(2, 6, 8, false));
    expect(layout.kind).toBe("machines");
    expect(layout.bands[0]!.blocks[10]).toBe("node10");
    expect([layout.block[83], layout.slot[83]]).toEqual([10, 3]);
  });

  test("without machines either ranks stand in their order", () => {
    const layout = gridLayout({
      ...job(1, 20, 1, false),
      machine: Array.from({ length: 20 }, () => ""),
    });
    expect(layout.kind).toBe("order");
    expect([layout.block[19], layout.slot[19]]).toEqual([2, 3]);
  });

  test("a few ranks without coordinates have a band of their own", () => {
    const places = job(2, 4, 8);
    places.data[3] = -1;
    const layout = gridLayout(places);
    expect(layout.bands.at(-1)!.label).toBe("no place");
    expect(layout.band[3]).toBe(2);
  });

  test("coordinates that would make a grid of holes are not believed", () => {
    const places = job(1, 64, 1);
    places.tensor.forEach((_, row) => (places.tensor[row] = row * 1_000_000));
    expect(gridLayout(places).kind).toBe("machines");
  });

  const anyJob = fc
    .record({
      count: fc.integer({ min: 1, max: 300 }),
      sizes: fc.tuple(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 9 }),
      ),
      holes: fc.double({ min: 0, max: 1, noNaN: true }),
      seed: fc.array(fc.nat(1000), { minLength: 1, maxLength: 20 }),
      perMachine: fc.integer({ min: 1, max: 100 }),
    })
    .map(({ count, sizes, holes, seed, perMachine }): Places => {
      const any = (row: number, of: number, salt: number): number =>
        (row * 7919 + seed[(row + salt) % seed.length]! * 31 + salt) % of;
      const column = (of: number, salt: number): Int32Array =>
        Int32Array.from({ length: count }, (_, row) =>
          any(row, 1000, salt + 50) / 1000 < holes ? -1 : any(row, of, salt),
        );
      return {
        count,
        rank: Int32Array.from({ length: count }, (_, row) => row * 3),
        machine: Array.from({ length: count }, (_, row) =>
          holes > 0.9 ? "" : `m${Math.floor(row / perMachine)}`,
        ),
        gpu: column(8, 4),
        pipeline: column(sizes[0], 1),
        data: column(sizes[1], 2),
        tensor: column(sizes[2], 3),
      };
    });

  test("every rank has a cell, no two the same, whatever the coordinates and the width", () => {
    fc.assert(
      fc.property(
        anyJob,
        fc.integer({ min: 60, max: 2000 }),
        fc.constantFrom(1, 1.25, 2),
        (places, width, pixelRatio) => {
          const layout = gridLayout(places);
          const cells = new Set<string>();
          for (let row = 0; row < places.count; row++) {
            const band = layout.bands[layout.band[row]!]!;
            expect(layout.block[row]).toBeLessThan(band.blocks.length);
            expect(layout.slot[row]).toBeLessThan(layout.slots);
            cells.add(`${layout.band[row]} ${layout.block[row]} ${layout.slot[row]}`);
          }
          expect(cells.size).toBe(places.count);
          const grid = gridGeometry(layout, { width, height: 500, pixelRatio });
          for (let row = 0; row < places.count; row++) {
            expect(grid.x[row]! + grid.cell).toBeLessThanOrEqual(grid.width + grid.gap);
            expect(grid.y[row]! + grid.cell).toBeLessThanOrEqual(grid.height);
            // The middle of its cell is its own: squares do not overlap.
            expect(rowAt(grid, grid.x[row]! + grid.cell / 2, grid.y[row]! + grid.cell / 2)).toBe(
              row,
            );
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("the grid in pixels", () => {
  test.each([
    [1, 1, 8],
    [2, 4, 8],
    [8, 16, 8],
    [8, 156, 8],
  ])("%i × %i × %i ranks fit a laptop's width and height, a stage a line", (p, d, t) => {
    const grid = gridGeometry(gridLayout(job(p, d, t)), room);
    expect(grid.height).toBeLessThanOrEqual(room.height);
    expect(grid.blocksPerLine).toBeGreaterThanOrEqual(d);
    expect(grid.cell).toBeGreaterThanOrEqual(5);
  });

  test("10,000 replicas without stages wrap into lines", () => {
    const grid = gridGeometry(gridLayout(job(1, 10_000, 1)), room);
    expect(grid.height).toBeLessThanOrEqual(room.height);
    expect(grid.cell).toBeGreaterThanOrEqual(6);
  });

  test("a few machines have a line each", () => {
    const grid = gridGeometry(gridLayout(job(1, 64, 1, false)), room);
    expect(grid.blocksPerLine).toBe(1);
  });
});

describe("brushing", () => {
  const places = job(2, 4, 8);
  const layout = gridLayout(places);
  const grid = gridGeometry(layout, room);
  const middle = (row: number) => ({
    x: grid.x[row]! + grid.cell / 2,
    y: grid.y[row]! + grid.cell / 2,
  });

  test("a box from one rank's cell to another's holds all between them, whichever corner came first", () => {
    const [a, b] = [middle(0), middle(places.count - 1)];
    const all = rowsIn(grid, { x0: a.x, y0: a.y, x1: b.x, y1: b.y });
    expect(all).toHaveLength(64);
    expect(rowsIn(grid, { x0: b.x, y0: b.y, x1: a.x, y1: a.y })).toEqual(all);
  });

  test("a box within one cell holds that rank, a box in the gap none", () => {
    const { x, y } = middle(13);
    expect(rowsIn(grid, { x0: x, y0: y, x1: x + 1, y1: y + 1 })).toEqual([13]);
    expect(rowsIn(grid, { x0: 2, y0: 2, x1: 5, y1: 5 })).toEqual([]);
  });

  test("a box holds exactly the cells whose squares it touches", () => {
    const side = grid.cell - grid.gap;
    const at = fc.integer({ min: 0, max: 1000 });
    fc.assert(
      fc.property(at, at, at, at, (x0, y0, x1, y1) => {
        const inside = new Set(rowsIn(grid, { x0, y0, x1, y1 }));
        for (let row = 0; row < places.count; row++) {
          let touches = false;
          for (let dx = 0; dx < side && !touches; dx++)
            for (let dy = 0; dy < side && !touches; dy++) {
              const [x, y] = [grid.x[row]! + dx, grid.y[row]! + dy];
              touches =
                x >= Math.min(x0, x1) &&
                x <= Math.max(x0, x1) &&
                y >= Math.min(y0, y1) &&
                y <= Math.max(y0, y1);
            }
          expect(inside.has(row)).toBe(touches);
        }
      }),
      { numRuns: 20 },
    );
  });

  test("arrows go to the neighbour, and stay at the edge", () => {
    const right = nextRow(grid, 0, "right");
    expect(grid.x[right]! - grid.x[0]!).toBe(grid.cell);
    expect(nextRow(grid, right, "left")).toBe(0);
    expect(nextRow(grid, 0, "left")).toBe(0);
    expect(nextRow(grid, 0, "up")).toBe(0);
    let row = 0;
    for (let step = 0; step < 64; step++) row = nextRow(grid, row, "down");
    expect(layout.band[row]).toBe(1);
  });
});
