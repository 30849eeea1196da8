/** What the dumps of several ranks say together, written as PyTorch writes them. */
import { describe, expect, it } from "vitest";
import {
  closing,
  collective,
  completed,
  dumpBytes,
  transfer,
  type Fields,
} from "./support/ingest/flight-entries.ts";
import type { Verdict } from "../src/model/verdict.ts";
import { diagnoseFiles, jobOf } from "./support/in-memory.ts";

const MS = 1_000_000;
const EPOCH_NS = 1_790_000_000_000 * MS;
const at = (ms: number): number => EPOCH_NS + ms * MS;
const ALL = { pp: "[0, 1, 2]", dp: "[0, 1, 2]" };

const file = (rank: number, entries: readonly Fields[], name = `fr_${rank}`) => ({
  name,
  bytes: dumpBytes(entries, {}, ALL),
});
const blamed = ({ suspects }: Verdict): number[] => suspects.flatMap(({ ranks }) => ranks);
const issued = (ms: number): Fields => ({ time_created_ns: at(ms) });

/** All-reduces every 10 ms that ended, and one that has not when the dump is taken. */
function reduces(ended: number, takenMs: number): Fields[] {
  const past = Array.from({ length: ended }, (_, i) =>
    collective("all_reduce", i + 1, { ...issued(10 * i), ...completed(at(10 * i + 8), 2) }),
  );
  const running = { state: "started", time_discovered_started_ns: at(takenMs) };
  return [...past, collective("all_reduce", ended + 1, { ...issued(10 * ended), ...running })];
}

describe("dumps taken", () => {
  it("while the job runs on, at different moments, are no hang", async () => {
    const files = [60, 61, 63].map((ended, rank) => file(rank, reduces(ended, 10 * ended + 7)));
    const verdict = await diagnoseFiles(files);
    expect(verdict.kind).not.toBe("hang");
    expect(verdict.suspects).toEqual([]);
  });

  it("a minute after the last operator ended are one", async () => {
    const files = [60, 60, 60].map((ended, rank) => file(rank, reduces(ended, 60_000)));
    files[1] = file(1, reduces(60, 60_000).slice(0, -1));
    const verdict = await diagnoseFiles(files);
    expect([verdict.kind, blamed(verdict)]).toEqual(["hang", [1]]);
  });
});

/** The same without operator timing: `seenMs` is what the dump saw to have ended, which nobody had retired. */
function untimed(ended: number, seenMs: number | null): Fields[] {
  const past = Array.from({ length: ended }, (_, i) => {
    const isSeen = seenMs !== null && i === ended - 1;
    return collective("all_reduce", i + 1, {
      ...issued(10 * i),
      state: "completed",
      retired: !isSeen,
      time_discovered_completed_ns: at(isSeen ? seenMs : 10 * i + 8),
    });
  });
  return [...past, collective("all_reduce", ended + 1, issued(10 * ended))];
}

describe("dumps of a job that runs, in which nothing ended for a while", () => {
  const next = (ended: number, ms: number, takenMs: number): Fields => {
    const running = { state: "started", time_discovered_started_ns: at(takenMs) };
    return collective("all_reduce", ended + 1, { ...issued(ms), ...running });
  };
  const past = reduces(60, 0).slice(0, -1);

  it("are no hang where CPUs go on behind a long checkpoint", async () => {
    const resumed = [...past, next(60, 9_000, 9_007)];
    const verdict = await diagnoseFiles([file(0, resumed), file(1, resumed), file(2, past)]);
    expect([verdict.kind, blamed(verdict)]).toEqual(["healthy", []]);
  });

  it("are no hang where nothing has been pending for two seconds", async () => {
    const waits = [...past, next(60, 600, 2_100)];
    const verdict = await diagnoseFiles([file(0, past), file(1, waits), file(2, waits)]);
    expect([verdict.kind, blamed(verdict)]).toEqual(["healthy", []]);
    expect(verdict.summary).toContain("pending for longer than two seconds");
  });

  it("are no hang where a single one tells when it was taken", async () => {
    const files = [
      file(0, untimed(60, null)),
      file(1, untimed(61, 612)),
      file(2, untimed(60, null)),
    ];
    expect(blamed(await diagnoseFiles(files))).toEqual([]);
  });
});

describe("dumps that look like a hang", () => {
  it("are one although an old dump of a running job lies among them", async () => {
    const old = file(0, untimed(20, 193));
    const late = [1, 2].map((rank) => file(rank, untimed(600, null)));
    expect((await diagnoseFiles([old, ...late])).kind).toBe("hang");
  });

  it("are surely one only where something tells for how long it has stood still", async () => {
    const short = untimed(60, null).slice(0, -1);
    const files = [file(0, untimed(60, null)), file(1, short), file(2, untimed(60, null))];
    const untold = await diagnoseFiles(files);
    expect([untold.kind, blamed(untold)]).toEqual(["hang", [1]]);
    expect(untold.confidence).toBeLessThan(0.8);
    const timed = [0, 1, 2].map((rank) =>
      file(rank, rank === 1 ? reduces(60, 90_000).slice(0, -1) : reduces(60, 90_000)),
    );
    expect((await diagnoseFiles(timed)).confidence).toBeGreaterThan(0.8);
  });
});

describe("a pipeline that exchanges in batches", () => {
  const running = { state: "started", time_discovered_started_ns: at(60_000) };
  const batch = (seq: number, names: string[], state: Fields): Fields[] => [
    ...names.map((name) => transfer(name, seq, issued(10 * seq))),
    closing(seq, { ...issued(10 * seq), ...state }),
  ];
  const ended = (seq: number, names: string[]): Fields[] =>
    batch(seq, names, completed(at(10 * seq + 5), 1));
  const often = (names: string[]): Fields[] =>
    Array.from({ length: 9 }, (_, i) => ended(i + 1, names)).flat();

  it("waits for the peer that has not come, where another part of its batch has arrived", async () => {
    const verdict = await diagnoseFiles([
      file(0, often(["send 0->1"])),
      file(1, [
        ...often(["recv 1<-0", "send 1->2"]),
        ...batch(10, ["recv 1<-0", "send 1->2"], running),
      ]),
      file(2, [
        ...often(["recv 2<-1"]),
        ...ended(10, ["recv 2<-1"]),
        ...batch(11, ["recv 2<-1"], running),
      ]),
    ]);
    expect([verdict.kind, blamed(verdict)]).toEqual(["hang", [0]]);
    expect(verdict.suspects[0]!.cause).toBe("cpu-stall");
  });

  it("is not a hang when only the parts are pending", async () => {
    const parts = (names: string[]): Fields[] =>
      often(names)
        .map((entry, id): Fields => ({ ...entry, record_id: 100 + id }))
        .filter((entry) => entry["is_p2p"]);
    const verdict = await diagnoseFiles([
      file(0, parts(["send 0->1"])),
      file(1, parts(["recv 1<-0", "send 1->2"])),
      file(2, parts(["recv 2<-1", "send 2->1"])),
    ]);
    expect(verdict.kind).not.toBe("hang");
  });

  it("has stages, by the mesh's name of its group", () => {
    const job = jobOf([0, 1, 2].map((rank) => file(rank, often(["send 0->1"]))));
    expect([...job.ranks.values()].map(({ stage }) => stage)).toEqual([0, 1, 2]);
    expect(job.groups.find(({ desc }) => desc === "mesh_pp")!.carriesP2p).toBe(true);
  });
});

describe("two dumps of one rank", () => {
  const whole = reduces(60, 60_000);

  it("that end in the same operator: the one that holds more is used, and said so", () => {
    const active = file(0, whole.slice(-1), "at-exit/fr_0");
    for (const files of [
      [active, file(0, whole)],
      [file(0, whole), active],
    ]) {
      const job = jobOf(files);
      expect(job.dumps.get(0)!.dump.ops.count).toBe(61);
      expect(job.missing.join()).toContain(
        "rank 0 has more than one dump; the most complete set was used",
      );
    }
  });

  it("of different moments: the newer one is used", () => {
    const job = jobOf([file(0, whole), file(0, reduces(80, 61_000).slice(-20), "later/fr_0")]);
    expect(job.dumps.get(0)!.dump.file).toBe("later/fr_0");
    expect(job.missing.join()).toContain("the newest set was used");
  });
});
