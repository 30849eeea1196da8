/** Every way into the service: path, who may take it, what it answers. Router and OpenAPI are both made of this table. */
import type { IncomingMessage } from "node:http";
import { UserError } from "../../../base/errors.ts";
import { NAME } from "../../wire/messages.ts";
import {
  type DemoControl,
  type DemoState,
  type RankColumns,
  Refusal,
  type ServiceView,
} from "../view.ts";
import type { Caller } from "../access/grants.ts";
import { SLACK_PATH } from "../slack/slack-app.ts";
import { AUDIT_QUERY, answerAudit } from "./audit-answer.ts";
import type { Need } from "./authorize.ts";
import { JsonBytes } from "./json-bytes.ts";
import { column, jsonText } from "./json.ts";
import { flag, moment, name, oneOf, type Parameters, readQuery, text, whole } from "./queries.ts";
import { actionBody, demoFault, linkBody, type SchemaName } from "./schemas.ts";
import { SITE_ROUTES } from "./site-routes.ts";
import { WORKFLOW_ROUTES } from "./workflow-routes.ts";

export interface AskAgent {
  readonly view: ServiceView;
  readonly request: IncomingMessage;
  readonly caller: Caller;
  readonly nowMs: number;
  param(this: void, name: string): string;
  /** The body, parsed; throws Refusal. */
  body(this: void): Promise<unknown>;
}

export interface Route {
  readonly method: "get" | "post" | "delete";
  /** With the router's names: "/api/v1/jobs/:job". */
  readonly path: string;
  readonly needs: Need;
  readonly summary: string;
  readonly query: Parameters;
  readonly body?: SchemaName;
  /** Where it may be larger than others. */
  readonly bodyBytes?: number;
  /** What 200 holds: a schema, or a type of its own. */
  readonly answers:
    | { readonly schema: SchemaName; readonly or?: SchemaName }
    | { readonly type: string };
  /** Statuses of errors besides those that every route has. */
  readonly errors: readonly number[];
  /** A value, bytes that are JSON already, or a whole answer. null for routes that the server answers itself, for they are no JSON of the view. */
  readonly answer: ((ask: AskAgent) => unknown) | null;
}

const MOST_ROWS = 10_000;
const MOST_ITERATIONS = 20_000;
const DAY_MS = 86_400_000;

const most = whole("at most so many, the newest", MOST_ROWS);
const ITERATIONS_QUERY = {
  from: moment("ended at or after"),
  to: moment("ended at or before"),
  most: whole("thinned out to at most so many; 2000 by default", MOST_ITERATIONS),
  run: text("of this run; of the present one by default"),
};
const INCIDENTS_QUERY = {
  job: name("of this job"),
  open: flag("only those not resolved"),
  since: moment("opened at or after"),
  machine: text("with this machine among the suspects"),
  most,
};
const RANKS_QUERY = {
  only: oneOf("without what changes only with `layout`: RankValues instead", ["values"]),
};
const OFFENDERS_QUERY = { days: whole("over so many days; 30 by default", 3650), most };
const PLAN_QUERY = {
  iteration: text("for this iteration"),
  run: text("of this start of the job"),
  replicas: text("replicas of the model"),
  total: text("micro-batches of the global batch"),
  multipleOf: text("each replica takes a multiple of this; 1 by default"),
  bubble: text("how long a pipeline fills and drains, in micro-batch times; 0 by default"),
};

/** Nobody has to know why: a name that cannot be is not there either. */
function jobOf({ param }: AskAgent): string {
  const job = param("job");
  if (!NAME.test(job)) throw new Refusal(404, "there is no such job");
  return job;
}

function found<T>(value: T | null, what: string): T {
  if (value === null) throw new Refusal(404, `there is no such ${what}`);
  return value;
}

const get = (
  path: string,
  schema: SchemaName,
  summary: string,
  query: Parameters,
  answer: (ask: AskAgent) => unknown,
): Route => ({
  method: "get",
  path: `/api/v1${path}`,
  needs: "read",
  summary,
  query,
  answers: { schema },
  errors: path.includes(":") ? [404] : [],
  answer,
});

const own = (
  path: string,
  needs: Need,
  answers: Route["answers"],
  summary: string,
  errors: readonly number[] = [],
): Route => ({ method: "get", path, needs, summary, query: {}, answers, errors, answer: null });

/** What jobs ask and report; all that `plan serve` has. */
export const SHARE_ROUTES: readonly Route[] = [
  {
    method: "get",
    path: "/v1/jobs/:job/plan",
    needs: "agent",
    summary: "Micro-batches of each replica for an iteration; the same for all who ask",
    query: PLAN_QUERY,
    answers: { schema: "MicroBatchPlan" },
    errors: [409, 429, 503],
    answer: ({ view, param, request }) =>
      view.askShares(param("job"), {
        ask: "plan",
        query: (request.url ?? "").split("?")[1] ?? "",
      }),
  },
  {
    method: "post",
    path: "/v1/jobs/:job/iterations",
    needs: "agent",
    summary:
      "An iteration that has ended: each replica's micro-batches and the seconds it computed",
    query: {},
    body: "MicroBatchReport",
    answers: { schema: "MicroBatchReported" },
    errors: [408, 409, 413, 415, 429],
    answer: async ({ view, param, body }) =>
      view.askShares(param("job"), { ask: "report", body: await body() }),
  },
  {
    ...get("", "MicroBatches", "Shares of a job that asks for them, with all changes", {}, (ask) =>
      ask.view.askShares(jobOf(ask), { ask: "state" }),
    ),
    path: "/v1/jobs/:job",
    errors: [404],
  },
];

export const ROUTES: readonly Route[] = [
  own("/", "nothing", { type: "text/html" }, "The page"),
  own(
    "/assets/:file",
    "nothing",
    { type: "text/javascript" },
    "Scripts and styles of the page",
    [404],
  ),
  own("/healthz", "nothing", { schema: "Health" }, "Whether the service works", [503]),
  own("/metrics", "metrics", { type: "text/plain" }, "Figures of the service for Prometheus"),
  own("/api/v1/openapi.json", "nothing", { type: "application/json" }, "This description"),
  own(
    "/api/v1/events",
    "read",
    { type: "text/event-stream" },
    "Server-sent events: a snapshot, then every change. With Last-Event-ID a reader continues where it stopped",
    [503],
  ),
  own("/api/v1/session", "nothing", { schema: "Session" }, "Who you are, and what you may do"),
  own("/auth/login", "nothing", { type: "text/html" }, "Sends a browser to sign in", [401, 502]),
  own(
    "/auth/callback",
    "nothing",
    { type: "text/html" },
    "Where the provider sends it back to",
    [401, 403, 502],
  ),
  {
    ...own("/auth/logout", "nothing", { schema: "SignedOut" }, "Sign out", [403, 415]),
    method: "post",
  },
  {
    ...own(
      SLACK_PATH,
      "nothing",
      { type: "text/plain" },
      "Where Slack sends clicks on buttons of alerts: a form, with Slack's signature",
      [401, 404, 408, 409, 413, 415],
    ),
    method: "post",
  },
  get(
    "/agents",
    "Agents",
    "Agents that are connected, with their versions and clocks",
    {},
    ({ view }) => ({ agents: view.agents() }),
  ),
  get("/jobs", "Jobs", "All jobs", {}, ({ view }) => ({ jobs: view.jobs() })),
  get("/jobs/:job", "Job", "One job", {}, (ask) => found(ask.view.job(jobOf(ask)), "job")),
  {
    ...get(
      "/jobs/:job/ranks",
      "Ranks",
      "The latest iteration of every rank, as columns",
      RANKS_QUERY,
      (ask) => {
        const { only } = readQuery(ask.request.url ?? "", RANKS_QUERY);
        const columns = found(ask.view.ranks(jobOf(ask)), "job");
        return only === "values" ? rankValues(columns) : rankColumns(columns);
      },
    ),
    answers: { schema: "Ranks", or: "RankValues" },
  },
  get(
    "/jobs/:job/iterations",
    "Iterations",
    "Iteration times of a job, ascending",
    ITERATIONS_QUERY,
    async (ask) => {
      const { from, to, most, run } = readQuery(ask.request.url ?? "", ITERATIONS_QUERY);
      const rows = await ask.view.iterations(jobOf(ask), {
        ...(run === undefined ? {} : { run }),
        ...(from === undefined ? {} : { fromMs: from }),
        ...(to === undefined ? {} : { toMs: to }),
        most: most ?? 2000,
      });
      const { iteration, endMs, durationMs } = found(rows, "job");
      return {
        iteration: column(iteration),
        endMs: column(endMs),
        durationMs: column(durationMs),
      };
    },
  ),
  get("/incidents", "Incidents", "Incidents, the newest first", INCIDENTS_QUERY, async (ask) => {
    const asked = readQuery(ask.request.url ?? "", INCIDENTS_QUERY);
    const { since, ...rest } = asked;
    const incidents = await ask.view.incidents({
      ...rest,
      ...(since === undefined ? {} : { sinceMs: since }),
      most: rest.most ?? 100,
    });
    return { incidents };
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
  {
    method: "post",
    path: "/api/v1/incidents/:id/links",
    needs: "act",
    summary: "A read-only link to this incident, for people without access",
    query: {},
    body: "LinkBody",
    answers: { schema: "Link" },
    errors: [404, 408, 413, 415],
    answer: async ({ view, param, caller, body }) => {
      const parsed = linkBody.safeParse(await body());
      if (!parsed.success)
        throw new Refusal(400, 'the body must be {}, or {"days": a number up to 90}');
      const id = param("id");
      found(await view.incident(id), "incident");
      const { link, expiresMs } = await view.links.create(
        id,
        DAY_MS * parsed.data.days,
        caller.name,
      );
      await view.note(caller.name, "link", id, `until ${new Date(expiresMs).toISOString()}`);
      return { path: `/#/link/${link}`, expiresMs };
    },
  },
  {
    method: "post",
    path: "/api/v1/incidents/:id/links/revoke",
    needs: "act",
    summary: "Revoke all links to this incident",
    query: {},
    answers: { schema: "LinksRevoked" },
    errors: [404, 415],
    answer: async ({ view, param, caller }) => {
      const id = param("id");
      found(await view.incident(id), "incident");
      await view.links.revoke(id);
      await view.note(caller.name, "revoke-links", id, "all links of the incident");
      return { incident: id };
    },
  },
  {
    method: "post",
    path: "/api/v1/incidents/:id/actions/:action",
    needs: "act",
    summary: "Approve, dismiss or undo an action",
    query: {},
    body: "ActionBody",
    answers: { schema: "Incident" },
    errors: [404, 408, 409, 413, 415],
    answer: async ({ view, param, caller, body }) => {
      const parsed = actionBody.safeParse(await body());
      if (!parsed.success)
        throw new Refusal(
          400,
          'the body must be {"verb": "approve", "dismiss" or "undo", "dryRun": true or false}',
        );
      const { verb, dryRun } = parsed.data;
      return await view.act(param("id"), param("action"), verb, caller.name, dryRun);
    },
  },
  ...WORKFLOW_ROUTES,
  ...SITE_ROUTES,
  get("/actions", "ActionsSwitch", "Whether actions are run at all", {}, ({ view }) =>
    view.actionsSwitch(),
  ),
  switchRoute(false),
  switchRoute(true),
  ...SHARE_ROUTES,
];

function switchRoute(isOn: boolean): Route {
  return {
    method: "post",
    path: `/api/v1/actions/${isOn ? "on" : "off"}`,
    needs: "act",
    summary: isOn ? "Allow actions again" : "Switch all actions off: nothing is run any more",
    query: {},
    answers: { schema: "ActionsSwitch" },
    errors: [409],
    answer: ({ view, caller }) => view.switchActions(isOn, caller.name),
  };
}

/** What changes with every iteration. */
function rankValues(columns: RankColumns): Buffer {
  return written(columns).text("}").done();
}

function rankColumns(columns: RankColumns): Buffer {
  const { groups, rank, machine, gpu, stage, pipeline, data, tensor } = columns;
  const places = jsonText({ groups, rank, machine, gpu, stage, pipeline, data, tensor });
  return written(columns)
    .text(`,${places.slice(1)}`)
    .done();
}

function written(columns: RankColumns): JsonBytes {
  const { iteration, durationMs, ownMs, waitMs, lateMs, temperature, state } = columns;
  const bytes = new JsonBytes().text(`{"layout":${jsonText(columns.layout)}`);
  for (const [name, values] of Object.entries({
    iteration,
    durationMs,
    ownMs,
    waitMs,
    lateMs,
    temperature,
  }))
    bytes.text(`,"${name}":`).numbers(values);
  return bytes.text(`,"state":`).words(state);
}

const PATH = "/api/v1/demo";
const WITH_BODY = [408, 409, 413, 415];

/** The ways to a job that can be broken on purpose: there in a demonstration only. */
export function demoRoutes(demo: DemoControl): readonly Route[] {
  const shared = { query: {}, answers: { schema: "DemoState" } } as const;
  return routesOfDemo(demo, shared).map((route) => ({
    ...route,
    answer: (ask) => {
      // The demonstration is a job like others: it is nothing of theirs.
      if (ask.caller.jobs !== null) throw new Refusal(404, "there is nothing at this path");
      return route.answer!(ask);
    },
  }));
}

function routesOfDemo(
  demo: DemoControl,
  shared: Pick<Route, "query" | "answers">,
): readonly Route[] {
  return [
    {
      ...shared,
      method: "get",
      path: PATH,
      needs: "read",
      summary: "The demonstration: what is broken now",
      errors: [],
      answer: () => demo.state(),
    },
    {
      ...shared,
      method: "post",
      path: PATH,
      needs: "act",
      summary: "Break something",
      body: "DemoFault",
      errors: WITH_BODY,
      answer: async ({ body }: AskAgent) => {
        const parsed = demoFault.safeParse(await body());
        if (!parsed.success)
          throw new Refusal(
            400,
            'the body must be {"kind": "gpu", "link", "nic", "data-loader" or "machine"}, with a "rank" or without',
          );
        return await orRefused(() => demo.breakIt(parsed.data));
      },
    },
    {
      ...shared,
      method: "delete",
      path: PATH,
      needs: "act",
      summary: "Mend all that is broken",
      errors: WITH_BODY,
      answer: () => orRefused(() => demo.mend()),
    },
    {
      ...shared,
      method: "post",
      path: `${PATH}/restart`,
      needs: "act",
      summary: "Start the job again, healthy",
      errors: WITH_BODY,
      answer: () => orRefused(() => demo.restart()),
    },
  ];
}

/** What the user can do otherwise is said; anything else is an error of ours. */
async function orRefused(work: () => DemoState | Promise<DemoState>): Promise<DemoState> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) throw new Refusal(409, error.message);
    throw error;
  }
}
