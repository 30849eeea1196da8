/** The service's API as the page uses it: paths, what they answer, and one way to ask. */
import type { AuditRow, Offender } from "../../src/history/history.ts";
import type {
  DemoFault,
  DemoState,
  GroupView,
  JobView,
  SwitchState,
} from "../../src/live/service/view.ts";
import type { Handling, Mute } from "../../src/model/handling.ts";
import type { Incident } from "../../src/model/incident.ts";
import type { IncidentPicture } from "../../src/model/picture.ts";
import { headers } from "./token.ts";

export type {
  DemoFault,
  DemoState,
  GroupView,
  Handling,
  Incident,
  IncidentPicture,
  JobView,
  Mute,
  Offender,
  AuditRow,
  SwitchState,
};

type Numbers = readonly (number | null)[];

/** What changes with every iteration (`?only=values`). */
export interface RankValues {
  readonly layout: string;
  readonly iteration: Numbers;
  readonly durationMs: Numbers;
  readonly ownMs: Numbers;
  readonly waitMs: Numbers;
  readonly lateMs: Numbers;
  readonly temperature: Numbers;
  readonly state: readonly string[];
}

/** RankColumns (service/view.ts) as JSON. */
export interface Ranks extends RankValues {
  readonly groups: readonly GroupView[];
  readonly rank: readonly number[];
  readonly machine: readonly (string | null)[];
  readonly gpu: Numbers;
  readonly stage: Numbers;
  readonly pipeline: Numbers;
  readonly data: Numbers;
  readonly tensor: Numbers;
}

export interface Iterations {
  readonly iteration: readonly number[];
  readonly endMs: readonly number[];
  readonly durationMs: readonly number[];
}

/** Why a request failed: the service's own sentence, or that it could not be reached (status 0). */
export class AskError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = "AskError";
    this.status = status;
  }
}

/** Connections are few: one that hangs must not hold up those behind it for ever. */
const PATIENCE_MS = 15_000;
/** A whole report is drawn when it is asked for. */
const REPORT_PATIENCE_MS = 120_000;

export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const read = async (response: Response): Promise<T> => (await response.json()) as T;
  return await request(`/api/v1${path}`, init, PATIENCE_MS, read);
}

/** `path`: from the root. */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const read = async (response: Response): Promise<T> => (await response.json()) as T;
  return await request(path, { method: "POST", ...jsonBody(body) }, PATIENCE_MS, read);
}

function jsonBody(body: unknown): RequestInit {
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** An answer that is no JSON. `path`: from the root. */
export async function askText(path: string): Promise<string> {
  return await request(path, {}, REPORT_PATIENCE_MS, (response) => response.text());
}

/** The time limit holds for the whole answer, not only for its head. */
async function request<T>(
  path: string,
  init: RequestInit,
  patienceMs: number,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const late = AbortSignal.timeout(patienceMs);
  const mayAct = init.method !== undefined && init.method !== "GET";
  try {
    const response = await fetch(path, {
      cache: "no-store",
      ...init,
      headers: {
        ...headers(mayAct ? "act" : "read"),
        ...(init.headers as Record<string, string> | undefined),
      },
      signal: init.signal ? AbortSignal.any([init.signal, late]) : late,
    });
    if (response.ok) return await read(response);
    const answer = (await response.json().catch(() => ({}))) as { error?: string };
    throw new AskError(response.status, answer.error ?? `status ${response.status}`);
  } catch (error) {
    if (init.signal?.aborted || error instanceof AskError) throw error;
    if (late.aborted) throw new AskError(0, "the service did not answer in time");
    // An answer that is no JSON.
    if (error instanceof SyntaxError) throw error;
    throw new AskError(0, "the service cannot be reached");
  }
}

export function send<T>(
  path: string,
  body: unknown,
  method: "POST" | "DELETE" = "POST",
): Promise<T> {
  return ask<T>(path, { method, ...jsonBody(body) });
}

const id = encodeURIComponent;
export const paths = {
  ranks: (job: string, onlyValues: boolean) =>
    `/jobs/${id(job)}/ranks${onlyValues ? "?only=values" : ""}`,
  /** Thinned out to so many: of the present run or of another, all of it or a part. */
  iterations: (
    job: string,
    most: number,
    part: { readonly fromMs?: number; readonly toMs?: number; readonly run?: string } = {},
  ) => {
    const { fromMs, toMs, run } = part;
    const from = fromMs === undefined ? "" : `&from=${Math.floor(fromMs)}`;
    const to = toMs === undefined ? "" : `&to=${Math.ceil(toMs)}`;
    return `/jobs/${id(job)}/iterations?most=${most}${from}${to}${run === undefined ? "" : `&run=${id(run)}`}`;
  },
  incidents: (query: string) => `/incidents${query}`,
  incident: (one: string) => `/incidents/${id(one)}`,
  history: (one: string) => `/incidents/${id(one)}/history`,
  picture: (one: string) => `/incidents/${id(one)}/picture`,
  report: (one: string) => `/api/v1/incidents/${id(one)}/report`,
  action: (one: string, action: string) => `/incidents/${id(one)}/actions/${id(action)}`,
  links: (one: string) => `/incidents/${id(one)}/links`,
  revokeLinks: (one: string) => `/incidents/${id(one)}/links/revoke`,
  handling: (one: string) => `/incidents/${id(one)}/handling`,
  handlings: "/handling",
  digest: (days: number) => `/digest?days=${days}`,
  site: "/site",
  siteRecords: "/site/records",
  removeRecord: (one: string) => `/site/records/${id(one)}/remove`,
  forgetLogs: "/site/forget",
  mutes: "/mutes",
  endMute: (one: string) => `/mutes/${id(one)}/end`,
  actionsSwitch: (isOn: boolean) => `/actions/${isOn ? "on" : "off"}`,
  audit: (incident: string) => `/audit?incident=${id(incident)}`,
  /** GET the state; POST a DemoFault; DELETE mends. 404 where this is no demonstration. */
  demo: "/demo",
};
