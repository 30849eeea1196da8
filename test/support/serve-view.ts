/** A service as its HTTP side sees it, made by hand: what it holds is written here, and nothing is worked out. */
import type { Digest } from "../../src/model/digest.ts";
import type { FaultRecord } from "../../src/model/fault-record.ts";
import type { CommentedHandling, Handling, Mute } from "../../src/model/handling.ts";
import type { Incident } from "../../src/model/incident.ts";
import type { IncidentPicture } from "../../src/model/picture.ts";
import type { SiteReport } from "../../src/model/site.ts";
import type { Verdict } from "../../src/model/verdict.ts";
import { makeJobs } from "../../src/live/service/microbatches/jobs.ts";
import { answerJob } from "../../src/live/service/microbatches/requests.ts";
import {
  type JobView,
  type LiveEvent,
  Refusal,
  type ServiceStats,
  type ServiceView,
} from "../../src/live/service/view.ts";

export const NOW_MS = Date.UTC(2026, 10, 16, 12);

export const JOB: JobView = {
  job: "llama",
  run: "a1",
  startedMs: NOW_MS - 3_600_000,
  seenMs: NOW_MS,
  worldSize: 16,
  ranks: 16,
  machines: 2,
  health: "slow",
  lastIteration: 812,
  levelMs: 1530.5,
  baselineMs: null,
  incident: "llama.a1.fail-slow.i800",
  wastedGpuMs: 7_200_000,
  lacks: ["no operators from node1"],
};

const verdict: Verdict = {
  schema: "faultline.verdict/1",
  kind: "fail-slow",
  summary: "rank 3 is slow",
  confidence: 0.93,
  when: { iteration: 800, from: "2026-11-16T11:00:00Z", to: null },
  suspects: [
    {
      type: "gpu",
      ranks: [3],
      machine: "node0",
      link: null,
      name: null,
      cause: "gpu-slow",
      score: 0.9,
      why: "its own time doubled",
      evidence: ["f1"],
    },
  ],
  victims: [0, 1],
  owner: "operations",
  actions: [{ do: "cordon-node", target: "node0", why: "its GPU throttles" }],
  mitigation: {
    nowMs: 1530,
    healthyMs: 1000,
    bound: 2,
    steps: [
      {
        strategy: "S2",
        do: "rebalance-microbatches",
        iterationMs: 1100,
        overheadMs: 0,
        afterIterations: 0,
        why: "fewer for replica 0",
        microBatches: [3, 5],
        gradientWeights: [0.75, 1.25],
      },
    ],
    assumes: ["the fault lasts"],
  },
  findings: [
    {
      id: "f1",
      method: "slow/judge",
      says: "rank 3 takes twice as long",
      weight: 0.9,
      at: [{ file: "ring", line: 3 }, { file: "log" }],
      data: { fact: "remark" },
      lacks: ["kernels"],
    },
  ],
  inputs: [{ path: "live", format: "agents", rank: null, records: 12 }],
  missing: [],
  wouldHelp: ["a profile"],
};

export const INCIDENT: Incident = {
  id: "llama.a1.fail-slow.i800",
  job: "llama",
  run: "a1",
  revision: 2,
  state: "confirmed",
  kind: "fail-slow",
  // Bytes that a page or a terminal would act on.
  summary: "rank 3 </script><img src=x onerror=alert(1)> \u009b31m \u202e slow",
  onsetMs: NOW_MS - 60_000,
  openedMs: NOW_MS - 58_000,
  changedMs: NOW_MS - 52_000,
  resolvedMs: null,
  fromIteration: 800,
  relapses: 0,
  verdict,
  machines: ["node0"],
  ranks: [3],
  wastedGpuMs: 1e6,
  actions: [
    {
      id: "cordon-node0",
      do: "cordon-node",
      target: "node0",
      why: "its GPU throttles",
      state: "proposed",
      canRun: true,
      changedMs: NOW_MS - 52_000,
      outcome: "",
      data: { ranks: [3] },
    },
  ],
};

export const PICTURE: IncidentPicture = {
  schema: "faultline.picture/1",
  story: {
    hops: [
      {
        kind: "collective",
        title: "all_reduce #241 of DATA_PARALLEL_1",
        says: "rank 0 waited 500 ms for rank 3",
        from: 0,
        to: 3,
        bars: [
          { rank: 0, machine: "node0", ms: 510, beforeMs: null, role: "waits" },
          { rank: 3, machine: null, ms: null, beforeMs: 10, role: "absent" },
        ],
        leftOut: 0,
      },
    ],
    ends: "rank 3 computes twice as long",
  },
  metrics: [
    {
      machine: "node0",
      metric: "gpu-temperature",
      title: "GPU temperature",
      unit: "°C",
      device: "gpu3",
      timeS: [1, 2],
      value: [60, null],
      low: [50, 50],
      middle: [55, null],
      high: [58, 58],
      fromS: 1,
      toS: 2,
    },
  ],
  logs: [
    {
      file: "rank3.log",
      rank: 3,
      node: null,
      lines: [{ line: 7, text: "Xid 79 </script>", isKey: true, timeMs: null, count: 2 }],
    },
  ],
  timeline: null,
  lacks: ["no traces"],
};

export const HANDLING: Handling = {
  incident: INCIDENT.id,
  acknowledged: { who: "ada", atMs: NOW_MS, relapses: 9 },
  assignee: "grace",
  mergedInto: null,
  reopened: null,
  commentCount: 1,
  judgement: {
    who: "ada",
    atMs: NOW_MS,
    isRight: false,
    machine: "node1",
    cause: "gpu-error",
    jobs: null,
    said: {
      job: INCIDENT.job,
      openedMs: INCIDENT.openedMs,
      kind: "fail-slow",
      cause: "gpu-slow",
      confidence: 0.9,
      stated: 0.9,
      machines: ["node0"],
      records: [],
    },
  },
};

export const COMMENTED: CommentedHandling = {
  ...HANDLING,
  comments: [{ who: "ada", atMs: NOW_MS, text: "swapped **twice** this month" }],
};

export const DIGEST: Digest = {
  fromMs: NOW_MS - 604_800_000,
  toMs: NOW_MS,
  incidents: 3,
  wastedGpuMs: 7_200_000,
  byCause: [{ name: "gpu-slow", incidents: 3, wastedGpuMs: 7_200_000 }],
  byMachine: [{ name: "node0", incidents: 3, wastedGpuMs: 7_200_000 }],
  repeated: [{ name: "node0", incidents: 3, wastedGpuMs: 7_200_000 }],
  judged: { right: 1, wrong: 1 },
  isCut: false,
};

export const MUTE: Mute = {
  id: "m1",
  kind: "maintenance",
  job: null,
  machine: "node0*",
  cause: null,
  fromMs: NOW_MS,
  untilMs: NOW_MS + 3_600_000,
  who: "ada",
  why: "new firmware",
};

const SCORE = {
  judged: 2,
  right: 1,
  low: 0.09,
  high: 0.91,
  calibration: [{ from: 0.9, to: 1, judged: 2, right: 1, said: 0.93 }],
  calibrationError: 0.43,
};
const SITE: SiteReport = {
  schema: "faultline.site/1",
  all: SCORE,
  kinds: [{ kind: "fail-slow", ...SCORE }],
  confusions: [{ said: "gpu-slow", truth: "gpu-error", incidents: 1 }],
  logs: {
    healthyJobs: 1,
    normalEvents: 20,
    jobs: ["llama/r1"],
    imports: [
      { id: "i1", from: "site b", who: "ada", atMs: 1, jobs: 1, normalEvents: 2, records: 1 },
    ],
    records: [
      { id: "site.x", title: "vault", isOwn: true, confirmed: 1, disputed: 0, certainty: 0.84 },
    ],
  },
};
const SITE_STORE = {
  schema: "faultline.logs-store/1",
  jobs: [],
  normal: { "step <NUM>": 1 },
  records: [],
  votes: {},
};

export const REPORT = "<!doctype html><title>report</title>";

export interface TestView {
  readonly view: ServiceView;
  /** What was asked of it, newest last. */
  readonly asked: { readonly what: string; readonly of: readonly unknown[] }[];
  tell(this: void, event: LiveEvent): void;
  readonly listeners: () => number;
}

const stats: ServiceStats = {
  startedMs: NOW_MS - 7_200_000,
  agents: 2,
  jobs: 1,
  ranks: 16,
  openIncidents: 1,
  incidentsTotal: 4,
  points: 12_992,
  reports: 812,
  reportBytes: 500_000,
  refusedReports: 1,
  fetchedBytes: 9000,
  localizations: 3,
  verdictSeconds: [4, 2, 8],
  droppedPoints: 0,
  historyPending: 0,
  historyFailures: 0,
  alertsSent: 5,
  alertFailures: 0,
};

/** `changed`: what of it is to be otherwise. */
export function testView(changed: Partial<ServiceView> = {}): TestView {
  const asked: { what: string; of: readonly unknown[] }[] = [];
  const listeners = new Set<(event: LiveEvent) => void>();
  const microBatches = makeJobs({ nowMs: () => NOW_MS, onChange: () => undefined });
  const note = <T>(what: string, of: readonly unknown[], value: T): T => {
    asked.push({ what, of });
    return value;
  };
  const known = (id: string): boolean => id === INCIDENT.id;
  const view: ServiceView = {
    jobs: () => [JOB],
    job: (job) => (job === JOB.job ? JOB : null),
    ranks: (job) =>
      job === JOB.job
        ? {
            layout: "l1",
            groups: [{ name: "tp0", role: "TENSOR_PARALLEL", ranks: [0, 3] }],
            rank: [0, 3],
            machine: ["node0", null],
            gpu: [0, null],
            stage: [null, 1],
            pipeline: [0, 1],
            data: [0, null],
            tensor: [0, 0],
            iteration: Float64Array.of(812, 811),
            durationMs: Float32Array.of(1530.1, NaN),
            ownMs: Float32Array.of(0.1, NaN),
            waitMs: Float32Array.of(NaN, Infinity),
            lateMs: Float32Array.of(0, NaN),
            temperature: Float32Array.of(61, NaN),
            state: ["running", "silent"],
          }
        : null,
    iterations: async (job, query) =>
      note(
        "iterations",
        [job, query],
        job === JOB.job
          ? {
              iteration: Float64Array.of(810, 811),
              endMs: Float64Array.of(NOW_MS - 2000, NOW_MS - 500),
              durationMs: Float64Array.of(1500, NaN),
            }
          : null,
      ),
    actionsSwitch: () => ({ isOn: true, says: "", canRun: false }),
    switchActions: async (isOn, who) =>
      note("switchActions", [isOn, who], { isOn, says: isOn ? "" : `off by ${who}`, canRun: true }),
    incidents: async (query) => note("incidents", [query], [INCIDENT]),
    incident: async (id) => (known(id) ? INCIDENT : null),
    incidentHistory: async (id) =>
      known(id) ? [{ ...INCIDENT, revision: 1, state: "suspected", verdict: null }, INCIDENT] : [],
    picture: async (id) => (known(id) ? PICTURE : null),
    report: async (id) => (known(id) ? REPORT : null),
    offenders: async (sinceMs, most) =>
      note(
        "offenders",
        [sinceMs, most],
        [{ machine: "node0", incidents: 3, jobs: 2, lastMs: NOW_MS, causes: ["gpu-slow"] }],
      ),
    audit: async (query) =>
      note(
        "audit",
        [query],
        [
          {
            id: "1",
            atMs: NOW_MS,
            who: "on-call",
            what: "approve",
            incident: INCIDENT.id,
            action: "cordon-node0",
            detail: "",
          },
        ],
      ),
    note: async (...row) => note("note", row, undefined),
    links: {
      create: async (id, lifeMs) =>
        note("link", [id, lifeMs], { link: "fl1.a.b", expiresMs: NOW_MS }),
      revoke: async (id) => note("revoke", [id], undefined),
      open: async () => null,
    },
    act: async (id, action, verb, who, dryRun) => {
      asked.push({ what: "act", of: [id, action, verb, who, dryRun] });
      if (!known(id)) throw new Refusal(404, "there is no such incident");
      if (verb === "dismiss") throw new Refusal(409, "the action has been done already");
      return INCIDENT;
    },
    askShares: async (job, question) => answerJob(microBatches, job, question, null),
    handling: async (id) => (known(id) ? COMMENTED : null),
    handlings: () => new Map([[INCIDENT.id, HANDLING]]),
    handle: async (id, what, who) => {
      asked.push({ what: "handle", of: [id, what, who] });
      if (!known(id)) throw new Refusal(404, "there is no such incident");
      return HANDLING;
    },
    digest: async (sinceMs) => note("digest", [sinceMs], DIGEST),
    mutes: () => [MUTE],
    mute: async (what, who) => note("mute", [what, who], MUTE),
    unmute: async (id, who) => note("unmute", [id, who], []),
    site: async () => SITE,
    siteLabels: async () => ({ schema: "faultline.machine-labels/1", labels: [] }),
    addRecord: async (asked, who) =>
      note("addRecord", [asked, who], { id: "site.x", title: asked.title } as FaultRecord),
    removeRecord: async (id, who) => note("removeRecord", [id, who], SITE.logs!),
    exportSite: async () => SITE_STORE,
    importSite: async (document, who, from) =>
      note("importSite", [document, who, from], SITE.logs!),
    forgetLogs: async (what, who) => note("forgetLogs", [what, who], SITE.logs!),
    listen: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stats: () => stats,
    agents: () => [{ agent: "node0", machine: "node0", version: "0.1.0", clockOffsetMs: 0 }],
    health: async () => ({ error: null, degraded: null, store: "ok", broker: "none" }),
    ...changed,
  };
  return {
    view,
    asked,
    tell: (event) => {
      for (const listener of listeners) listener(event);
    },
    listeners: () => listeners.size,
  };
}
