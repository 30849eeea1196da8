import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PLUG_IN, python, pythonOfTorch, start } from "./microbatch-job/processes.ts";
import { freePort } from "../support/free-port.ts";
import { unlessThere } from "../support/lacking.ts";
import { longTest } from "../support/cases.ts";

const FAULTLINE = fileURLToPath(new URL("../../faultline", import.meta.url));
const script = (name: string): string =>
  fileURLToPath(new URL(`probe-validation/${name}`, import.meta.url));

type Pass = readonly (readonly [number, number])[];

const whyNoPython = unlessThere(python !== null, "Python", "python3");

interface Played {
  readonly tested: readonly number[];
  readonly answered: number | null;
  readonly report: {
    readonly tookMs: number;
    readonly transfers: readonly { readonly iteration?: number }[];
  } | null;
}

describe.skipIf(python === null)(`tests after several iterations${whyNoPython}`, () => {
  const play = (request: object, first: number, remarked = 0): Played => {
    const words = [JSON.stringify(request), String(first), "12", String(remarked)];
    const ran = spawnSync(python!, [script("rounds.py"), ...words], {
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: PLUG_IN, PYTHONDONTWRITEBYTECODE: "1" },
    });
    expect(ran.stderr).toBe("");
    return JSON.parse(ran.stdout) as Played;
  };
  const request = { atIteration: 5, rounds: 3 };

  it("are one report, which says after which iteration each transfer was", () => {
    const { tested, answered, report } = play(request, 3);
    expect({ tested, answered }).toEqual({ tested: [5, 6, 7], answered: 7 });
    expect(report!.tookMs).toBe(7.5);
    expect(report!.transfers.map(({ iteration }) => iteration)).toEqual([5, 6, 7]);
  });

  it("end where a member did not come, and do not begin late", () => {
    expect(play(request, 3, 6)).toMatchObject({ tested: [5, 6], answered: 6 });
    expect(play(request, 6)).toEqual({ tested: [], answered: 6, report: null });
  });

  it("are one where the request does not say how many", () => {
    const { tested, report } = play({ atIteration: 5 }, 3);
    expect(tested).toEqual([5]);
    expect(report!.transfers).toEqual([{ from: 1, to: 0, ms: [1] }]);
  });
});

describe.skipIf(python === null)(`passes over the links of a group${whyNoPython}`, () => {
  const sizes = [...Array.from({ length: 70 }, (_, i) => i + 1), 1023, 1024, 1025, 4096];
  let planned: { size: number; ring: Pass[]; tree: Pass[] }[] = [];
  let rails: { size: number; stride: number; passes: Pass[] }[] = [];
  beforeAll(() => {
    const ran = spawnSync(python!, [script("passes.py"), ...sizes.map(String)], {
      encoding: "utf8",
      maxBuffer: 1 << 28,
      env: { ...process.env, PYTHONPATH: PLUG_IN, PYTHONDONTWRITEBYTECODE: "1" },
    });
    expect(ran.stderr).toBe("");
    const all = JSON.parse(ran.stdout) as { groups: typeof planned; rails: typeof rails };
    ({ groups: planned, rails } = all);
  });

  const links = (passes: readonly Pass[]): string[] =>
    passes
      .flat()
      .map(([from, to]) => `${from}>${to}`)
      .sort();

  it("use every link of a ring once, in two passes or three", () => {
    expect(planned).toHaveLength(sizes.length);
    for (const { size, ring } of planned) {
      const wanted =
        size < 2 ? [] : Array.from({ length: size }, (_, i) => `${i}>${(i + 1) % size}`);
      expect(links(ring)).toEqual(wanted.sort());
      expect(ring).toHaveLength(size < 2 ? 0 : size % 2 === 0 ? 2 : 3);
    }
  });

  it("use every edge of a binary tree once, in four passes", () => {
    for (const { size, tree } of planned) {
      const wanted = Array.from({ length: size - 1 }, (_, i) => `${i + 1}>${i >> 1}`);
      expect(links(tree)).toEqual(wanted.sort());
      expect(tree).toHaveLength(4);
    }
  });

  it("lead from each member to that of the same place in the next machine", () => {
    expect(rails.length).toBeGreaterThan(50);
    for (const { size, stride, passes } of rails) {
      const wanted = Array.from({ length: size }, (_, i) => `${i}>${(i + stride) % size}`);
      expect(links(passes)).toEqual(wanted.sort());
      expect(passes).toHaveLength((size / stride) % 2 === 0 ? 2 : 3);
    }
  });

  it("use no member twice in a pass", () => {
    const rings = planned.flatMap(({ ring, tree }) => [...ring, ...tree]);
    for (const pass of [...rings, ...rails.flatMap(({ passes }) => passes)]) {
      const members = pass.flat();
      expect(new Set(members).size).toBe(members.length);
    }
  });
});

interface Report {
  readonly rank: number;
  readonly iteration: number | null;
  readonly remark?: string;
  readonly group: readonly number[];
  readonly gemm: readonly { dtype: string; m: number; ms: readonly number[] }[];
  readonly transfers: readonly {
    topology: string;
    pass: number;
    from: number;
    to: number;
    bytes: number;
    ms: readonly number[];
  }[];
}

interface Told {
  readonly case: string;
  readonly seconds: number;
  readonly unchanged: boolean;
  readonly sum: number;
}

interface Tested {
  readonly folder: string;
  readonly told: readonly (readonly Told[])[];
  reports(testCase: string): Report[];
}

/** Runs the cases one after the other in a job of so many ranks. */
async function tested(ranks: number, ...cases: string[]): Promise<Tested> {
  const folder = mkdtempSync(join(tmpdir(), "faultline-validation-"));
  const jobs = Array.from({ length: ranks }, (_, rank) =>
    start(pythonOfTorch!, [script("job.py"), String(rank), String(ranks), folder, ...cases]),
  );
  await Promise.all(jobs.map(({ ended }) => ended));
  const reports = (testCase: string): Report[] =>
    readdirSync(join(folder, testCase))
      .sort()
      .map((name) => JSON.parse(readFileSync(join(folder, testCase, name), "utf8")) as Report);
  return { folder, told: jobs.map(({ lines }) => lines as unknown as Told[]), reports };
}

const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1]!;

const allTransfers = (reports: readonly Report[]): Report["transfers"][number][] =>
  reports.flatMap(({ rank, transfers }) => {
    for (const { to } of transfers) expect(to).toBe(rank);
    return transfers;
  });

interface Suspect {
  readonly type: string;
  readonly ranks: readonly number[];
  readonly cause: string;
  readonly score: number;
}

/** Whom the command suspects first, given the reports of a case. */
function diagnosed({ folder }: Tested, testCase: string): Suspect | undefined {
  const ran = spawnSync(FAULTLINE, ["diagnose", join(folder, testCase), "--json"], {
    encoding: "utf8",
  });
  const { suspects } = JSON.parse(ran.stdout) as { suspects: Suspect[] };
  return suspects.toSorted((x, y) => y.score - x.score)[0];
}

const whyNoTorch = unlessThere(pythonOfTorch !== null, "PyTorch", "python3-torch");

// Starting PyTorch alone takes a busy machine long.
const patient = { timeout: 300_000 };

describe.skipIf(pythonOfTorch === null)(
  `tests inside a job of PyTorch${whyNoTorch}`,
  patient,
  () => {
    const folders: string[] = [];
    afterAll(() => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
    const run = async (ranks: number, ...cases: string[]): Promise<Tested> => {
      const result = await tested(ranks, ...cases);
      folders.push(result.folder);
      return result;
    };

    // An odd number has a third pass; other tests have four ranks.
    const ranks = 5;
    longTest("name the slow one of five ranks, and change nothing in the job", async () => {
      const job = await run(ranks, "healthy", "slow-gpu", "slow-link", "healthy");
      for (const told of job.told) {
        expect(told).toHaveLength(4);
        for (const { unchanged, sum } of told) {
          expect(unchanged).toBe(true);
          expect(sum).toBe((ranks * (ranks - 1)) / 2);
        }
      }

      const healthy = job.reports("healthy");
      const everyone = Array.from({ length: ranks }, (_, i) => i);
      expect(healthy.map(({ rank }) => rank)).toEqual(everyone);
      for (const { group, gemm, iteration, remark } of healthy) {
        expect([group, iteration, remark]).toEqual([everyone, 3, undefined]);
        expect(gemm.map(({ dtype, m, ms }) => [dtype, m, ms.length])).toEqual([
          ["float32", healthy[0]!.gemm[0]!.m, 9],
        ]);
      }
      const transfers = allTransfers(healthy);
      const of = (topology: string): string[] =>
        transfers
          .filter((each) => each.topology === topology)
          .map(({ from, to, bytes, ms }) => `${from}>${to} ${bytes} ${ms.length}`)
          .sort();
      expect(of("ring")).toEqual(everyone.map((i) => `${i}>${(i + 1) % ranks} 4194304 9`).sort());
      expect(of("tree")).toEqual(
        everyone
          .slice(1)
          .map((i) => `${i}>${(i - 1) >> 1} 4194304 9`)
          .sort(),
      );

      const times = job.reports("slow-gpu").map(({ gemm }) => middle(gemm[0]!.ms));
      expect(times.indexOf(Math.max(...times))).toBe(2);
      expect(diagnosed(job, "slow-gpu")).toMatchObject({ ranks: [2], cause: "gpu-slow" });

      const slowest = allTransfers(job.reports("slow-link")).toSorted(
        (a, b) => middle(b.ms) - middle(a.ms),
      )[0]!;
      expect([slowest.topology, slowest.from, slowest.to]).toEqual(["ring", 1, 2]);
      expect(diagnosed(job, "slow-link")).toMatchObject({ type: "link", ranks: [1, 2] });
    });

    // Once more where it fails: Gloo may end a process by terminate() when a peer leaves while it does.
    longTest(
      "give up in time where a member does not come, or a transfer does not end",
      { retry: 1 },
      async () => {
        const job = await run(4, "missing", "late-link", "healthy");
        for (const told of job.told)
          for (const { sum, unchanged } of told) expect([sum, unchanged]).toEqual([6, true]);

        const missing = job.reports("missing");
        expect(missing).toHaveLength(3);
        for (const report of missing) {
          expect(report.remark).toContain("did not come in time");
          expect([report.gemm, report.transfers]).toEqual([[], []]);
        }

        const late = job.reports("late-link");
        for (const rank of [1, 2]) expect(late[rank]!.remark).toContain("1 -> 2");
        // The pass before it was over.
        expect(allTransfers(late).map(({ from, to }) => [from, to])).toEqual(
          expect.arrayContaining([
            [0, 1],
            [2, 3],
          ]),
        );

        for (const { remark } of job.reports("healthy")) expect(remark).toBeUndefined();
      },
    );

    it("test some ranks alone, with a process group of theirs or without", async () => {
      const job = await run(4, "pair", "no-group");
      for (const [testCase, members] of [
        ["pair", [0, 2]],
        ["no-group", [0, 1, 3]],
      ] as const) {
        const reports = job.reports(testCase);
        expect(reports).toHaveLength(4);
        for (const { rank, group, gemm, transfers, remark } of reports) {
          expect([group, remark]).toEqual([members, undefined]);
          const takesPart = (members as readonly number[]).includes(rank);
          expect(gemm).toHaveLength(takesPart ? 1 : 0);
          if (!takesPart) expect(transfers).toEqual([]);
        }
        const ring = allTransfers(reports).filter(({ topology }) => topology === "ring");
        expect(ring.map(({ from, to }) => [from, to])).toEqual(
          expect.arrayContaining(members.map((m, i) => [m, members[(i + 1) % members.length]])),
        );
      }
    });

    it("run alone, without a job", async () => {
      const folder = mkdtempSync(join(tmpdir(), "faultline-validation-"));
      folders.push(folder);
      const port = await freePort();
      const ranks = [0, 1].map((rank) => {
        const where = [
          "MASTER_ADDR=127.0.0.1",
          `MASTER_PORT=${port}`,
          `RANK=${rank}`,
          "WORLD_SIZE=2",
        ];
        const module = ["-m", "faultline_probe.validate_main", "--out", join(folder, "out")];
        return start("env", [
          ...where,
          pythonOfTorch!,
          ...module,
          "--mb",
          "0.5,1",
          "--tests",
          "ring",
        ]);
      });
      await Promise.all(ranks.map(({ ended }) => ended));
      for (const rank of [0, 1]) {
        const path = join(folder, "out", `rank${rank}.validation.json`);
        const report = JSON.parse(readFileSync(path, "utf8")) as Report;
        expect(report).toMatchObject({ rank, group: [0, 1], gemm: [], iteration: null });
        expect(report.transfers.map(({ from, to, bytes }) => [from, to, bytes])).toEqual([
          [1 - rank, rank, 524_288],
          [1 - rank, rank, 1_048_576],
        ]);
      }
    });
  },
);
