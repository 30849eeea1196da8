/** Who asks, and the service as they see it: before any route answers, in one place for all of them. */
import type { IncomingMessage } from "node:http";
import type { Caller } from "../access/grants.ts";
import { viewFor } from "../access/limited-view.ts";
import { LINK_PREFIX } from "../access/links.ts";
import { type AuditWord, type OpenLink, Refusal, type ServiceView } from "../view.ts";
import { type Authorizer, Denial } from "./authorize.ts";
import type { Route } from "./route.ts";
import { EXPORT_PATH } from "./site-routes.ts";

export interface Admitted {
  readonly caller: Caller;
  readonly view: ServiceView;
}

/** All that a link opens, for its own incident. */
export const LINKED_PATHS: readonly string[] = [
  "/api/v1/incidents/:id",
  "/api/v1/incidents/:id/history",
  "/api/v1/incidents/:id/picture",
  "/api/v1/incidents/:id/report",
];

/** Throws Refusal. `note`: who read what is not for everybody. */
export async function admit(
  view: ServiceView,
  auth: Authorizer,
  route: Pick<Route, "method" | "path" | "needs">,
  request: IncomingMessage,
  id: string,
  note: SparingNote,
): Promise<Admitted> {
  const text = linkOf(request);
  if (text === null || route.needs === "nothing") {
    const caller = auth.authorize(request, route.needs);
    if (route.path === EXPORT_PATH && caller.jobs === null)
      void note(caller.name, "export-logs", "", "what was learnt of logs");
    return { caller, view: viewFor(view, caller) };
  }
  const link = await openLink(view, text);
  if (!link)
    throw new Denial(401, "the link has expired, was revoked, or its maker may not share any more");
  if (route.method !== "get" || !LINKED_PATHS.includes(route.path))
    throw new Denial(403, "the link opens one incident, and nothing else");
  if (id !== link.incident) throw new Refusal(404, "there is no such incident");
  const { remoteAddress = "" } = request.socket;
  void note("link", "open-link", id, `made by ${link.who}, opened from ${remoteAddress}`);
  return { caller: { name: "link", agent: null, jobs: null }, view };
}

/** null where the request has none. */
export function linkOf({ headers }: Pick<IncomingMessage, "headers">): string | null {
  const [, link] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? "") ?? [];
  return link?.startsWith(LINK_PREFIX) ? link : null;
}

export async function openLink(view: ServiceView, text: string): Promise<OpenLink | null> {
  return await view.links.open(text).catch(() => {
    throw new Refusal(503, "links cannot be checked at the moment: the history is away");
  });
}

/** Resolves when the row is written, or could not be. Never rejects. */
export type SparingNote = (
  who: string,
  what: AuditWord,
  incident: string,
  detail: string,
) => Promise<void>;

/**
 * Rows that can be caused as often as one likes: each one once a minute, and not more than so many in all, so that
 * nobody fills the trail. A row says how many were left out before it.
 */
export function noteSparingly(
  view: Pick<ServiceView, "note">,
  mostInAll: number,
  nowMs: () => number,
): SparingNote {
  const noted = new Set<string>();
  let sinceMs = -Infinity;
  let leftOut = 0;
  return async (...row) => {
    if (Math.abs(nowMs() - sinceMs) >= NOTED_MS) {
      sinceMs = nowMs();
      noted.clear();
    }
    const key = JSON.stringify(row);
    if (noted.has(key) || noted.size >= mostInAll) {
      leftOut++;
      return;
    }
    noted.add(key);
    const [who, what, incident, detail] = row;
    const more = leftOut === 0 ? "" : `; ${leftOut} such requests before it have no row`;
    leftOut = 0;
    await view.note(who, what, incident, `${detail}${more}`).catch(() => undefined);
  };
}

const NOTED_MS = 60_000;
/** Of one caller: ids are theirs to choose, and a trail must not be filled by asking for many. */
const MOST_REFUSALS = 10;
const MOST_CALLERS = 1000;

/** Rows of the audit trail for actions that were refused. What a caller tried first does not hide what they try next. */
export function noteRefusals(
  view: Pick<ServiceView, "note">,
  nowMs: () => number,
): (
  route: Pick<Route, "method" | "path" | "needs">,
  id: string,
  who: string,
  why: string,
) => Promise<void> {
  const callers = new Map<string, SparingNote>();
  return async ({ method, path }, id, who, why) => {
    if (!callers.has(who) && callers.size >= MOST_CALLERS) callers.clear();
    const note = callers.get(who) ?? noteSparingly(view, MOST_REFUSALS, nowMs);
    callers.set(who, note);
    await note(who, "refuse", id, `${method.toUpperCase()} ${path}: ${why}`);
  };
}
