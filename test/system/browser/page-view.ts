/** A service made by hand for the page: as many ranks as wanted, values that move, names as wanted, incidents to order. */
import { UserError } from "../../../src/base/errors.ts";
import type { Rank } from "../../../src/model/ids.ts";
import type { Incident } from "../../../src/model/incident.ts";
import type { IncidentPicture } from "../../../src/model/picture.ts";
import type { SignIn } from "../../../src/live/service/access/sign-in.ts";
import {
  type AuthorizerOptions,
  makeAuthorizer,
} from "../../../src/live/service/http/authorize.ts";
import { type HttpSide, serveHttp } from "../../../src/live/service/http/serve-http.ts";
import type {
  JobView,
  LiveEvent,
  RankColumns,
  ServiceView,
} from "../../../src/live/service/view.ts";
import { testView } from "../../support/serve-view.ts";

export interface PageJob {
  readonly job: string;
  /** tensor × pipeline × data. */
  readonly shape: readonly [tensor: number, pipeline: number, data: number];
  readonly gpusPerMachine?: number;
  /** Name of a machine by its number. */
  readonly machine?: (number: number) => string;
  readonly slow?: Rank;
}

export interface PageServiceOptions {
  readonly jobs: readonly PageJob[];
  readonly incidents: readonly Incident[];
  readonly pictures?: ReadonlyMap<string, IncidentPicture>;
  readonly changed?: Partial<ServiceView>;
  readonly port?: number;
  /** Who may look; everybody on this machine where it is absent. */
  readonly auth?: Partial<AuthorizerOptions>;
  readonly signIn?: SignIn;
}

export interface PageService {
  readonly url: string;
  /** Another iteration of every job. */
  tick(): void;
  tell(event: LiveEvent): void;
  close(): Promise<void>;
}

const HEALTHY_MS = 500;
const HISTORY = 600;

export async function servePage(options: PageServiceOptions): Promise<PageService> {
  const { jobs, incidents, pictures, changed = {}, port = 0, auth, signIn } = options;
  let iteration = HISTORY;
  const openOf = (job: string): Incident | undefined =>
    incidents.find((one) => one.job === job && one.state !== "resolved");
  const durationOf = (at: number, slow: boolean): number =>
    HEALTHY_MS * (1 + 0.02 * Math.sin(at * 1.7)) * (slow && at > HISTORY - 60 ? 2.4 : 1);
  const jobView = ({ job, shape }: PageJob): JobView => ({
    job,
    run: "a1",
    startedMs: Date.now() - iteration * HEALTHY_MS,
    seenMs: Date.now(),
    worldSize: shape[0] * shape[1] * shape[2],
    ranks: shape[0] * shape[1] * shape[2],
    machines: Math.ceil((shape[0] * shape[1] * shape[2]) / 8),
    health: openOf(job) ? "slow" : "healthy",
    lastIteration: iteration,
    levelMs: openOf(job) ? HEALTHY_MS * 2.4 : HEALTHY_MS,
    baselineMs: HEALTHY_MS,
    incident: openOf(job)?.id ?? null,
    wastedGpuMs: openOf(job) ? 7.4e7 : 0,
    lacks: [],
  });
  const fixed = new Map(jobs.map((one) => [one.job, layoutOf(one)]));
  const { view, tell } = testView({
    jobs: () => jobs.map(jobView),
    job: (name) => {
      const found = jobs.find(({ job }) => job === name);
      return found ? jobView(found) : null;
    },
    ranks: (name) => {
      const found = jobs.find(({ job }) => job === name);
      return found ? { ...fixed.get(name)!, ...valuesOf(found, iteration) } : null;
    },
    iterations: async (name) => {
      const found = jobs.find(({ job }) => job === name);
      if (!found) return null;
      const count = HISTORY;
      const at = Float64Array.from({ length: count }, (_, k) => iteration - count + 1 + k);
      const durationMs = at.map((number) => durationOf(number, openOf(name) !== undefined));
      return {
        iteration: at,
        endMs: at.map((n) => Date.now() - (iteration - n) * 1000),
        durationMs,
      };
    },
    incidents: async ({ job, open }) =>
      incidents.filter(
        (one) =>
          (job === undefined || one.job === job) && (open !== true || one.state !== "resolved"),
      ),
    incident: async (id) => incidents.find((one) => one.id === id) ?? null,
    incidentHistory: async (id) => incidents.filter((one) => one.id === id),
    picture: async (id) => pictures?.get(id) ?? null,
    ...changed,
  });
  const side: HttpSide = await serveHttp({
    view,
    auth: makeAuthorizer({
      host: "127.0.0.1",
      tokens: [],
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: Date.now,
      ...auth,
    }),
    ...(signIn ? { signIn } : {}),
    host: "127.0.0.1",
    port,
    tls: null,
    nowMs: Date.now,
    version: "1.2.3",
    log: () => undefined,
  });
  return {
    url: side.url,
    tick() {
      iteration++;
      for (const one of jobs) {
        const durationMs = durationOf(iteration, openOf(one.job) !== undefined);
        const rows = { iteration: [iteration], endMs: [Date.now()], durationMs: [durationMs] };
        tell({ type: "iterations", job: one.job, run: "a1", rows });
        tell({ type: "job", job: jobView(one) });
      }
    },
    tell,
    close: () => side.close(),
  };
}

type Fixed = Pick<
  RankColumns,
  "layout" | "groups" | "rank" | "machine" | "gpu" | "stage" | "pipeline" | "data" | "tensor"
>;

/** Tensor-parallel peers beside each other, then replicas, then stages, as Megatron numbers them. */
function layoutOf({ shape, gpusPerMachine = 8, machine = node }: PageJob): Fixed {
  const [tensor, pipeline, data] = shape;
  const count = tensor * pipeline * data;
  if (count > 1 << 18) throw new UserError(`${count} ranks`, "fewer", 2);
  const rank = Array.from({ length: count }, (_, k) => k);
  const stage = rank.map((k) => Math.floor(k / (tensor * data)));
  const by = (key: (k: number) => number): Rank[][] => {
    const found = new Map<number, Rank[]>();
    for (const k of rank) found.set(key(k), [...(found.get(key(k)) ?? []), k]);
    return [...found.values()];
  };
  const groups = [
    ...by((k) => Math.floor(k / tensor)).map((ranks, k) => ({
      name: `TENSOR_${k}`,
      role: "TENSOR_PARALLEL",
      ranks,
    })),
    ...by((k) => k % (tensor * data)).map((ranks, k) => ({
      name: `PIPELINE_${k}`,
      role: "PIPELINE_PARALLEL",
      ranks,
    })),
  ];
  return {
    layout: "l1",
    groups,
    rank,
    machine: rank.map((k) => machine(Math.floor(k / gpusPerMachine))),
    gpu: rank.map((k) => k % gpusPerMachine),
    stage,
    pipeline: stage,
    data: rank.map((k) => Math.floor(k / tensor) % data),
    tensor: rank.map((k) => k % tensor),
  };
}

const node = (number: number): string => `node${String(number).padStart(3, "0")}`;

function valuesOf({ shape, slow }: PageJob, iteration: number): Omit<RankColumns, keyof Fixed> {
  const count = shape[0] * shape[1] * shape[2];
  const isSlow = (k: number): boolean => k === slow;
  const own = (k: number): number =>
    220 + 12 * Math.sin(k * 12.9898 + iteration * 0.7) + (isSlow(k) ? 700 : 0);
  const duration = slow === undefined ? HEALTHY_MS : HEALTHY_MS * 2.4;
  const column = (value: (k: number) => number): Float32Array =>
    Float32Array.from({ length: count }, (_, k) => value(k));
  return {
    iteration: Float64Array.from({ length: count }, () => iteration),
    durationMs: column((k) => duration + Math.sin(k)),
    ownMs: column(own),
    waitMs: column((k) => duration - own(k)),
    lateMs: column((k) => Math.max(0, own(k) - 220)),
    temperature: column((k) => 58 + 4 * Math.sin(k * 3.1 + iteration * 0.1) + (isSlow(k) ? 19 : 0)),
    state: Array.from({ length: count }, () => "running"),
  };
}
