/** Incidents, what they are drawn from, what is done about them, and who did it. */
import { Refusal } from "../view.ts";
import { AUDIT_QUERY, answerAudit } from "./audit-answer.ts";
import { cursor, flag, moment, name, readQuery, text, whole } from "./queries.ts";
import { found, get, own, post, type Route } from "./route.ts";
import { actionBody, linkBody } from "./schemas.ts";

const DAY_MS = 86_400_000;

/** An incident has some 6 kB: more would hold up everybody else while they are written. */
const MOST_INCIDENTS = 500;
const MOST_OFFENDERS = 10_000;

const INCIDENTS_QUERY = {
  job: name("of this job"),
  open: flag("only those not resolved"),
  since: moment("opened at or after"),
  machine: text("with this machine among the suspects"),
  before: cursor,
  most: whole("at most so many, the newest; 100 by default", MOST_INCIDENTS),
};
const OFFENDERS_QUERY = {
  days: whole("over so many days; 30 by default", 3650),
  most: whole("at most so many, the most frequent; 100 by default", MOST_OFFENDERS),
};

export const INCIDENT_ROUTES: readonly Route[] = [
  get("/incidents", "Incidents", "Incidents, the newest first", INCIDENTS_QUERY, async (ask) => {
    const asked = readQuery(ask.request.url ?? "", INCIDENTS_QUERY);
    const { since, ...rest } = asked;
    const limit = rest.most ?? 100;
    const incidents = await ask.view.incidents({
      ...rest,
      ...(since === undefined ? {} : { sinceMs: since }),
      most: limit,
    });
    const last = incidents.length === limit ? incidents.at(-1) : undefined;
    return { incidents, next: last ? `${last.openedMs},${last.id}` : null };
  }),
  get("/incidents/:id", "Incident", "One incident", {}, async ({ view, param }) =>
    found(await view.incident(param("id")), "incident"),
  ),
  get(
    "/incidents/:id/history",
    "Revisions",
    "All revisions of an incident, ascending",
    {},
    async ({ view, param }) => {
      const revisions = await view.incidentHistory(param("id"));
      if (revisions.length === 0) throw new Refusal(404, "there is no such incident");
      return { revisions };
    },
  ),
  get(
    "/incidents/:id/picture",
    "Picture",
    "What an incident is drawn from: its story, metrics, log lines, kernels",
    {},
    async ({ view, param }) => {
      const id = param("id");
      const picture = await view.picture(id);
      if (picture) return picture;
      found(await view.incident(id), "incident");
      throw new Refusal(404, "nothing was kept to draw this incident from");
    },
  ),
  own(
    "/api/v1/incidents/:id/report",
    "read",
    { type: "text/html" },
    "The report of the evidence of a job that stood still or died, one HTML file",
    [404],
  ),
  get(
    "/offenders",
    "Offenders",
    "Machines that were suspects of confirmed incidents, the most frequent first",
    OFFENDERS_QUERY,
    async ({ view, request, nowMs }) => {
      const { days, most } = readQuery(request.url ?? "", OFFENDERS_QUERY);
      const offenders = await view.offenders(nowMs - (days ?? 30) * DAY_MS, most ?? 100);
      return { offenders };
    },
  ),
  get("/audit", "Audit", "Who did what, the newest first", AUDIT_QUERY, ({ view, request }) =>
    answerAudit(view, request.url ?? ""),
  ),
  post(
    "/incidents/:id/links",
    "Link",
    "A read-only link to this incident, for people without access",
    { body: "LinkBody", errors: [404, 408, 413, 415] },
    async ({ view, param, caller, body }) => {
      const parsed = linkBody.safeParse(await body());
      if (!parsed.success)
        throw new Refusal(400, 'the body must be {}, or {"days": a number up to 90}');
      const id = param("id");
      found(await view.incident(id), "incident");
      const lifeMs = DAY_MS * parsed.data.days;
      const { link, expiresMs } = await view.links.create(id, lifeMs, caller.name);
      await view.note(caller.name, "link", id, `until ${new Date(expiresMs).toISOString()}`);
      return { path: `/#/link/${link}`, expiresMs };
    },
  ),
  post(
    "/incidents/:id/links/revoke",
    "LinksRevoked",
    "Revoke all links to this incident",
    { errors: [404, 415] },
    async ({ view, param, caller }) => {
      const id = param("id");
      found(await view.incident(id), "incident");
      await view.links.revoke(id);
      await view.note(caller.name, "revoke-links", id, "all links of the incident");
      return { incident: id };
    },
  ),
  post(
    "/incidents/:id/actions/:action",
    "Incident",
    "Approve, dismiss or undo an action",
    { body: "ActionBody", errors: [404, 408, 409, 413, 415] },
    async ({ view, param, caller, body }) => {
      const parsed = actionBody.safeParse(await body());
      if (!parsed.success)
        throw new Refusal(
          400,
          'the body must be {"verb": "approve", "dismiss" or "undo", "dryRun": true or false}',
        );
      const { verb, dryRun } = parsed.data;
      return await view.act(param("id"), param("action"), verb, caller.name, dryRun);
    },
  ),
];
