/**
 * Traces of a job that does not exist, for tests: (interleaved) 1F1B with data parallelism. Times come out of a
 * recursion over what each operation waits for, written independently of the replay, slow and plain.
 */
import { seeded } from "../../src/base/random.ts";
import type { StageOperations } from "../../src/model/stage-operations.ts";
import {
  isCompute,
  isPass,
  KINDS,
  spansReplicas,
  type Kind,
} from "../../src/methods/localize/what-if/kinds.ts";
import { passesOf, type Pass, type TestJob } from "./schedule.ts";

const BASE_MS: Readonly<Record<Kind, number>> = {
  "forward-compute": 70,
  "backward-compute": 140,
  "forward-send": 0.4,
  "forward-recv": 0.45,
  "backward-send": 0.4,
  "backward-recv": 0.5,
  "params-all-gather": 20,
  "grads-reduce-scatter": 40,
  "separate-grads-all-reduce": 5,
  "layernorm-grads-all-reduce": 0.05,
  "embedding-grads-all-reduce": 8,
  "optimizer-clip-main-grad": 4,
  optimizer: 40,
  gc: 0.01,
};

interface Recorded {
  readonly kind: Kind;
  readonly replica: number;
  readonly stage: number;
  readonly seq: number;
  readonly chunk: number;
  readonly microBatch: number;
  readonly startMs: number;
  readonly readyMs: number;
  readonly endMs: number;
}

export function testTrace(job: TestJob): StageOperations {
  const rows: (Recorded & { step: number })[] = [];
  for (let step = 0; step < job.steps; step++) {
    for (const row of oneStep(job, step)) rows.push({ ...row, step });
  }
  const { replicas, fromLastArrival = false } = job;
  // Each step begins somewhere else.
  const origin = (step: number): number => 1000 + 100_000 * step;
  const start = (row: Recorded): number => (fromLastArrival ? row.readyMs : row.startMs);
  const ints = (of: (row: Recorded & { step: number }) => number) => Int32Array.from(rows, of);
  return {
    file: "trace.json",
    format: "test",
    writer: null,
    rank: ints((row) => row.stage * replicas + row.replica),
    replica: ints((row) => row.replica),
    stage: ints((row) => row.stage),
    step: ints((row) => 10 + row.step),
    kind: Uint8Array.from(rows, (row) => KINDS.indexOf(row.kind)),
    kinds: KINDS,
    microBatch: ints((row) => row.microBatch),
    chunk: ints((row) => row.chunk),
    seq: ints((row) => row.seq),
    startMs: Float64Array.from(rows, (row) => origin(row.step) + start(row)),
    durationMs: Float64Array.from(rows, (row) => row.endMs - start(row)),
  };
}

function oneStep(job: TestJob, step: number): Recorded[] {
  const { replicas, stages, chunks = 1, noise = 0.01, overlaps = false, factor = () => 1 } = job;
  const random = seeded(((job.seed ?? 1) * 7919 + step) >>> 0);
  const parts = stages * chunks;
  const recorded = new Map<string, Recorded>();
  const order = Array.from({ length: replicas }, (_, r) =>
    Array.from({ length: stages }, (__, s) => passesOf(job, step, r, s)),
  );
  /** Starts are asked for twice, by the operation and by its partners; so every duration is drawn once. */
  const ownMs = new Map<string, number>();
  const draw = (key: string, kind: Kind, pass: Pass | null): number => {
    const gauss = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const scale = pass && isCompute(kind) ? factor(pass) : 1;
    const ms = BASE_MS[kind] * scale * Math.max(0.1, 1 + noise * gauss);
    ownMs.set(key, ms);
    return ms;
  };

  /** The seq-th operation of a kind on a worker: its times, from those of everything before it. */
  const at = (kind: Kind, r: number, s: number, seq: number): Recorded => {
    const key = `${kind} ${r} ${s} ${seq}`;
    const known = recorded.get(key);
    if (known) return known;
    const pass = P2P_OR_PASS.test(kind) ? passBy(kind, r, s, seq) : null;
    const startMs = startOf(kind, r, s, seq);
    const partners = partnersOf(kind, r, s, seq, pass);
    const readyMs = Math.max(startMs, ...partners.map((partner) => startOf(...partner)));
    const endMs = readyMs + (ownMs.get(key) ?? draw(key, kind, pass));
    const row = {
      kind,
      replica: r,
      stage: s,
      seq,
      startMs,
      readyMs,
      endMs,
      chunk: isPass(kind) ? pass!.chunk : chunkOf(kind, seq),
      microBatch: isPass(kind) ? pass!.microBatch : -1,
    };
    recorded.set(key, row);
    return row;
  };
  const end = (kind: Kind, r: number, s: number, seq: number): number =>
    seq < 0 ? 0 : at(kind, r, s, seq).endMs;

  /** Parameters are gathered from the first part on, gradients reduced from the last. */
  const chunkOf = (kind: Kind, seq: number): number =>
    kind === "params-all-gather" ? seq : kind === "grads-reduce-scatter" ? chunks - 1 - seq : -1;
  const byDirection = order.map((stagesOf) =>
    stagesOf.map((passes) => ({
      forward: passes.filter(({ isForward }) => isForward),
      backward: passes.filter(({ isForward }) => !isForward),
    })),
  );
  const direction = (r: number, s: number, isForward: boolean): Pass[] =>
    byDirection[r]![s]![isForward ? "forward" : "backward"];
  const passBy = (kind: Kind, r: number, s: number, seq: number): Pass => {
    const passes = direction(r, s, kind.startsWith("forward"));
    if (isCompute(kind)) return passes[seq]!;
    return passes.filter((pass) => isNoted(pass, kind.endsWith("send")))[seq]!;
  };
  const computeOf = (pass: Pass): [Kind, number] => [
    pass.isForward ? "forward-compute" : "backward-compute",
    direction(pass.replica, pass.stage, pass.isForward).indexOf(pass),
  ];
  const partOf = ({ chunk, stage }: Pass): number => chunk * stages + stage;
  const partnerPart = (pass: Pass, isSend: boolean): number =>
    partOf(pass) + (pass.isForward === isSend ? 1 : -1);
  const isDropped = (pass: Pass, isSend: boolean): boolean =>
    !isSend && pass.isForward && partOf(pass) === 0 && pass.microBatch === 0;
  const isNoted = (pass: Pass, isSend: boolean): boolean =>
    (chunks > 1 && !(job.dropsFirst && isDropped(pass, isSend))) ||
    (partnerPart(pass, isSend) >= 0 && partnerPart(pass, isSend) < parts);

  const partnersOf = (kind: Kind, r: number, s: number, seq: number, pass: Pass | null) => {
    const partners: [Kind, number, number, number][] = [];
    if (pass && !isCompute(kind)) {
      const isSend = kind.endsWith("send");
      const part = partnerPart(pass, isSend);
      if (part >= 0 && part < parts) {
        const other = part % stages;
        const theirs = direction(r, other, pass.isForward);
        const matching = theirs.find(
          (p) => partOf(p) === part && p.microBatch === pass.microBatch,
        )!;
        const theirKind: Kind = `${pass.isForward ? "forward" : "backward"}-${isSend ? "recv" : "send"}`;
        partners.push([theirKind, r, other, commSeq(theirs, matching, !isSend)]);
      }
    }
    if (kind === "embedding-grads-all-reduce") {
      partners.push([kind, r, 0, 0], [kind, r, stages - 1, 0]);
    }
    if (kind === "optimizer-clip-main-grad") {
      for (let other = 0; other < stages; other++) {
        for (let q = 0; q < replicas; q++) partners.push([kind, q, other, 0]);
      }
    } else if (spansReplicas(kind)) {
      for (let q = 0; q < replicas; q++) partners.push([kind, q, s, seq]);
    }
    return partners;
  };
  /** Sends and receives are numbered among those that were noted. */
  const commSeq = (passes: readonly Pass[], pass: Pass, isSend: boolean): number =>
    passes.slice(0, passes.indexOf(pass)).filter((p) => isNoted(p, isSend)).length;

  const startOf = (kind: Kind, r: number, s: number, seq: number): number => {
    const passes = order[r]![s]!;
    const first = passes.findIndex((pass) => !pass.isForward);
    if (kind === "forward-compute" || kind === "backward-compute") {
      const pass = direction(r, s, kind === "forward-compute")[seq]!;
      const before = passes[passes.indexOf(pass) - 1];
      const receive: Kind = pass.isForward ? "forward-recv" : "backward-recv";
      const theirs = direction(r, s, pass.isForward);
      return Math.max(
        before ? end(computeOf(before)[0], r, s, computeOf(before)[1]) : 0,
        pass.isForward && theirs.find(({ chunk }) => chunk === pass.chunk) === pass
          ? end("params-all-gather", r, s, pass.chunk)
          : 0,
        isNoted(pass, false) ? end(receive, r, s, commSeq(theirs, pass, false)) : 0,
      );
    }
    if (/-(?:send|recv)$/.test(kind)) {
      const isForward = kind.startsWith("forward");
      const isSend = kind.endsWith("send");
      const theirs = direction(r, s, isForward);
      const pass = passBy(kind, r, s, seq);
      const compute: Kind = isForward ? "forward-compute" : "backward-compute";
      const n = theirs.indexOf(pass);
      const launch = !isForward && seq === 0 && first >= 2 ? passes[first - 2]! : null;
      return Math.max(
        end(kind, r, s, seq - 1),
        end(compute, r, s, isSend ? n : n - 1),
        launch ? end(computeOf(launch)[0], r, s, computeOf(launch)[1]) : 0,
      );
    }
    if (kind === "params-all-gather") return end(kind, r, s, seq - 1);
    if (kind === "grads-reduce-scatter" && (overlaps || seq > 0)) {
      const ready = direction(r, s, false).findLast(({ chunk }) => chunk === chunkOf(kind, seq))!;
      return Math.max(
        seq > 0 ? end(kind, r, s, seq - 1) : end("params-all-gather", r, s, chunks - 1),
        overlaps ? end("backward-compute", r, s, computeOf(ready)[1]) : 0,
      );
    }
    const tail = tailOf(s, stages, overlaps);
    const before = tail[tail.indexOf(kind) - 1];
    if (before === undefined) {
      const [lastKind, lastSeq] = computeOf(passes.at(-1)!);
      return end(lastKind, r, s, lastSeq);
    }
    const waits = overlaps && before === "gc" ? end("grads-reduce-scatter", r, s, chunks - 1) : 0;
    return Math.max(waits, end(before, r, s, before === "grads-reduce-scatter" ? chunks - 1 : 0));
  };

  for (let r = 0; r < replicas; r++) {
    for (let s = 0; s < stages; s++) {
      for (let seq = 0; seq < chunks; seq++) {
        at("params-all-gather", r, s, seq);
        at("grads-reduce-scatter", r, s, seq);
      }
      for (const isForward of [true, false]) {
        const name = isForward ? "forward" : "backward";
        const passes = direction(r, s, isForward);
        passes.forEach((_, seq) => at(`${name}-compute`, r, s, seq));
        for (const isSend of [true, false]) {
          passes
            .filter((pass) => isNoted(pass, isSend))
            .forEach((_, seq) => at(`${name}-${isSend ? "send" : "recv"}`, r, s, seq));
        }
      }
      for (const kind of tailOf(s, stages, overlaps)) at(kind, r, s, 0);
    }
  }
  return [...recorded.values()];
}

const P2P_OR_PASS = /^(?:forward|backward)-/;

function tailOf(stage: number, stages: number, overlaps: boolean): Kind[] {
  const hasEmbedding = stage === 0 || stage === stages - 1;
  return [
    "gc",
    "layernorm-grads-all-reduce",
    ...(hasEmbedding ? (["embedding-grads-all-reduce"] as const) : []),
    overlaps ? "separate-grads-all-reduce" : "grads-reduce-scatter",
    "optimizer-clip-main-grad",
    "optimizer",
  ];
}
