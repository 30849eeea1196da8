/**
 * A made-up hang of any size, for the report's tests: one rank of a tensor-, data- and
 * pipeline-parallel job stops, its tensor group waits for it, and everybody else for them.
 */
import type { Rank } from "../../../src/model/ids.ts";
import type { DumpGroup, OperatorTable } from "../../../src/model/operators.ts";
import type { Group, Job, RankDump, RankInfo } from "../../../src/model/job.ts";
import type { Verdict } from "../../../src/model/verdict.ts";
import type { StuckOperator } from "../../../src/model/facts.ts";

export interface Shape {
  readonly tp: number;
  readonly dp: number;
  readonly pp: number;
  readonly culprit: Rank;
  /** Roles besides tensor, data and pipeline, all over the whole job. */
  readonly moreRoles?: number;
  /** Ranks that left no dump. */
  readonly silent?: readonly Rank[];
  /** Every text that a stranger could have written passes through here. */
  readonly text?: (plain: string) => string;
}

export function syntheticHang(shape: Shape): { job: Job; verdict: Verdict } {
  const text = shape.text ?? ((plain) => plain);
  const worldSize = shape.tp * shape.dp * shape.pp;
  const all = Array.from({ length: worldSize }, (_, rank) => rank);
  const groups = makeGroups(shape, all, text);
  const dumps = new Map<Rank, RankDump>();
  for (const rank of all) {
    if (shape.silent?.includes(rank)) continue;
    dumps.set(rank, makeDump(shape, groups, rank, text));
  }
  const ranks = new Map<Rank, RankInfo>(
    all.map((rank) => [
      rank,
      {
        rank,
        machine: text(`node${String(Math.floor(rank / 8)).padStart(3, "0")}`),
        gpu: rank % 8,
        pid: 4_000 + rank,
        nic: null,
        leaf: null,
      },
    ]),
  );
  const inputs = all.flatMap((rank) => [
    { path: text(`/run/42/fr_${rank}`), format: text("flight-recorder"), rank, records: 2_000 },
    { path: text(`/run/42/rank${rank}.log`), format: text("rank-log"), rank, records: 812 },
  ]);
  const job: Job = {
    name: text("llama-70b"),
    worldSize,
    ranks,
    groups,
    dumps,
    stacks: new Map(),
    strayStacks: [],
    ras: [],
    failures: [],
    watchdog: [],
    torchrun: [],
    logs: new Map(),
    strayLogs: [],
    processes: new Map(),
    inputs,
    mixesRuns: false,
    missing: [text("rank 6 left no flight-recorder dump")],
    series: [],
    operators: [],
    iterations: [],
    rankOperators: { ranks: [], fetch: () => null },
    places: new Map(),
  };
  return { job, verdict: makeVerdict(shape, job, text) };
}

/** Tensor index, replica and stage of a rank. */
function coordinates({ tp, dp }: Shape, rank: Rank): { t: number; d: number; p: number } {
  return { t: rank % tp, d: Math.floor(rank / tp) % dp, p: Math.floor(rank / (tp * dp)) };
}

function makeGroups(shape: Shape, all: readonly Rank[], text: (plain: string) => string): Group[] {
  const byKey = new Map<string, Rank[]>();
  const add = (role: string, key: string, rank: Rank): void => {
    const list = byKey.get(`${role}|${key}`) ?? [];
    list.push(rank);
    byKey.set(`${role}|${key}`, list);
  };
  for (const rank of all) {
    const { t, d, p } = coordinates(shape, rank);
    add("TENSOR_PARALLEL", `${d}/${p}`, rank);
    add("DATA_PARALLEL", `${t}/${p}`, rank);
    add("PIPELINE_PARALLEL", `${t}/${d}`, rank);
    for (let i = 0; i < (shape.moreRoles ?? 0); i++) {
      add(`EXPERT_TENSOR_AND_MODEL_PARALLEL_${"ABCDEFGHIJKLMN"[i]}`, "", rank);
    }
  }
  return [...byKey].map(([key, ranks], id) => {
    const role = text(key.slice(0, key.indexOf("|")));
    return {
      id,
      name: text(String(id)),
      desc: `${role}_${id}`,
      ranks,
      role,
      carriesP2p: role === "PIPELINE_PARALLEL",
    };
  });
}

function makeDump(
  shape: Shape,
  groups: readonly Group[],
  rank: Rank,
  text: (plain: string) => string,
): RankDump {
  const own = groups.filter((group) => group.ranks.includes(rank));
  const behind = rank === shape.culprit ? 1 : 0;
  const dumpGroups = own.map(({ name, desc, ranks }): DumpGroup => ({
    name,
    desc,
    ranks,
    enqueued: 42_806 - behind,
    started: -1,
    completed: 42_805,
  }));
  return {
    rank,
    groupIds: Int32Array.from(own, ({ id }) => id),
    dump: {
      file: text(`/run/42/fr_${rank}`),
      version: "2.10",
      groups: dumpGroups,
      ops: NO_OPERATORS,
      epochNs: 0n,
      timing: false,
      timeoutMs: 600_000,
      isCut: false,
      frames: new Map(),
    },
  };
}

const NO_OPERATORS: OperatorTable = {
  count: 0,
  group: new Int32Array(),
  name: new Int32Array(),
  seq: new Int32Array(),
  p2pSeq: new Int32Array(),
  recordId: new Float64Array(),
  state: new Uint8Array(),
  isP2p: new Uint8Array(),
  peer: new Int32Array(),
  isSend: new Uint8Array(),
  createdNs: new Float64Array(),
  startedNs: new Float64Array(),
  completedNs: new Float64Array(),
  durationMs: new Float32Array(),
  inputNumel: new Float64Array(),
  outputNumel: new Float64Array(),
  dtype: new Int32Array(),
  names: [],
  dtypes: [],
};

/** The culprit's tensor group waits for it; its stage for that group; the other stages for transfers. */
export function syntheticWaits(shape: Shape): StuckOperator[] {
  const { tp, dp, pp, culprit, silent } = shape;
  const at = coordinates(shape, culprit);
  const rankAt = (t: number, d: number, p: number): Rank => t + tp * (d + dp * p);
  const why = silent?.includes(culprit) ? "silent" : "not-enqueued";
  const ops: StuckOperator[] = [];
  const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
  const fellows = range(tp).filter((t) => t !== at.t);
  ops.push({
    what: `all_reduce #489 of TENSOR_PARALLEL_${at.d}`,
    role: "TENSOR_PARALLEL",
    group: "",
    seq: 0,
    p2p: false,
    arrived: fellows.map((t) => rankAt(t, at.d, at.p)),
    absent: [{ rank: culprit, why }],
  });
  for (const p of range(pp)) {
    for (const t of range(tp)) {
      const away = rankAt(t, at.d, p);
      ops.push({
        what: `reduce_scatter #241 of DATA_PARALLEL_${t + tp * p}`,
        role: "DATA_PARALLEL",
        group: "",
        seq: 0,
        p2p: false,
        arrived: range(dp).flatMap((d) => (d === at.d ? [] : rankAt(t, d, p))),
        absent: [{ rank: away, why: away === culprit ? why : "behind" }],
      });
      if (p === at.p) continue;
      const from = rankAt(t, at.d, p > at.p ? p - 1 : p + 1);
      ops.push({
        what: `the transfer from rank ${from} to rank ${away} (PIPELINE_PARALLEL_${t})`,
        role: "PIPELINE_PARALLEL",
        group: "",
        seq: 0,
        p2p: true,
        arrived: [away],
        absent: [{ rank: from, why: from === culprit ? why : "behind" }],
      });
    }
  }
  return ops.filter(({ arrived }) => arrived.length > 0);
}

function makeVerdict(shape: Shape, job: Job, text: (plain: string) => string): Verdict {
  const { culprit } = shape;
  const machine = job.ranks.get(culprit)!.machine;
  const listed = syntheticWaits(shape).map(({ what, role, p2p, arrived, absent }) => ({
    what: text(what),
    role: text(role),
    group: text("7"),
    seq: 241,
    p2p,
    arrived,
    absent,
  }));
  const why = `the other ranks wait for rank ${culprit}: its CPU issued nothing more`;
  return {
    schema: "faultline.verdict/1",
    kind: "hang",
    summary: text(
      `Rank ${culprit} on ${machine} stopped issuing work: its CPU is stuck, and that hangs the job; the other ${job.worldSize - 1} ranks only wait.`,
    ),
    confidence: 0.93,
    when: { iteration: 812, from: text("2026-11-15T00:41:49.457Z"), to: text("later") },
    suspects: [
      {
        type: "rank",
        ranks: [culprit],
        machine,
        name: null,
        link: [text("node003"), text("leaf2")],
        cause: "cpu-stall",
        score: 0.93,
        why: text(why),
        evidence: ["f2", text("f3")],
      },
    ],
    victims: [...job.ranks.keys()].filter((rank) => rank !== culprit),
    owner: "operations",
    actions: [
      {
        do: text("dump-stacks"),
        target: text(`rank ${culprit}`),
        why: text("py-spy dump --pid <pid> shows the line it is stuck in"),
      },
    ],
    findings: [
      {
        id: "f1",
        method: "hang/wait-graph",
        says: text("everybody waits"),
        weight: 0.9,
        at: [],
        data: {
          fact: "waiting-ranks",
          ops: listed,
          stuckOps: listed.length,
          since: text("2026-11-15T00:41:49.457Z"),
        },
      },
      {
        id: "f2",
        method: "hang/stacks",
        says: text(why),
        weight: 0.92,
        at: [{ file: text(`/run/42/stacks.rank${culprit}.txt`), line: 4 }],
        data: { fact: "stopped-rank", side: "cpu", last: text("send 0->1") },
      },
      {
        id: text("f3"),
        method: "hang/ras",
        says: text("fewer collectives"),
        weight: 0.4,
        at: [],
        data: { fact: "remark" },
      },
    ],
    inputs: job.inputs,
    missing: job.missing,
    wouldHelp: [text("Python stacks (py-spy dump --pid <pid>)")],
  };
}
