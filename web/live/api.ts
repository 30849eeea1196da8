/** The service's API as the page uses it: paths, what they answer, and one way to ask. */
import type { AuditRow, Offender } from "../../src/history/history.ts";
import type { DemoFault, DemoState, GroupView, JobView } from "../../src/live/service/view.ts";
import type { Incident } from "../../src/model/incident.ts";
import type { IncidentPicture } from "../../src/model/picture.ts";
import { observable } from "./observable.ts";

export type {
  DemoFault,
  DemoState,
  GroupView,
  Incident,
  IncidentPicture,
  JobView,
  Offender,
  AuditRow,
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

/** Counts changes of the token: whoever was refused may try again. */
export const tokens = observable(0);
let token = sessionStorage.getItem("faultline-token") ?? "";
/** Kept until the tab is closed, not longer: it may act. */
export function useToken(given: string): void {
  token = given;
  sessionStorage.setItem("faultline-token", given);
  tokens.set(tokens.value + 1);
}
export const headers = (): Record<string, string> =>
  token === "" ? {} : { authorization: `Bearer ${token}` };

export const hasToken = (): boolean => token !== "";

export async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await request(`/api/v1${path}`, init);
  return (await response.json()) as T;
}

/** An answer that is no JSON. `path`: from the root. */
export async function askText(path: string): Promise<string> {
  return await (await request(path, {})).text();
}

async function request(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      cache: "no-store",
      ...init,
      headers: { ...headers(), ...(init.headers as Record<string, string> | undefined) },
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new AskError(0, "the service cannot be reached");
  }
  if (response.ok) return response;
  const answer = (await response.json().catch(() => ({}))) as { error?: string };
  throw new AskError(response.status, answer.error ?? `status ${response.status}`);
}

export function send<T>(
  path: string,
  body: unknown,
  method: "POST" | "DELETE" = "POST",
): Promise<T> {
  return ask<T>(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

const id = encodeURIComponent;
export const paths = {
  jobs: "/jobs",
  ranks: (job: string, onlyValues: boolean) =>
    `/jobs/${id(job)}/ranks${onlyValues ? "?only=values" : ""}`,
  /** Thinned out to so many, from this moment on or over the whole run. */
  iterations: (job: string, most: number, fromMs?: number) =>
    `/jobs/${id(job)}/iterations?most=${most}${fromMs === undefined ? "" : `&from=${Math.round(fromMs)}`}`,
  incidents: (query: string) => `/incidents${query}`,
  incident: (one: string) => `/incidents/${id(one)}`,
  history: (one: string) => `/incidents/${id(one)}/history`,
  picture: (one: string) => `/incidents/${id(one)}/picture`,
  report: (one: string) => `/api/v1/incidents/${id(one)}/report`,
  action: (one: string, action: string) => `/incidents/${id(one)}/actions/${id(action)}`,
  offenders: "/offenders",
  audit: (incident: string) => `/audit?incident=${id(incident)}`,
  /** GET the state; POST a DemoFault; DELETE mends. 404 where this is no demonstration. */
  demo: "/demo",
  demoRestart: "/demo/restart",
};
