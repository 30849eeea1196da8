/** The table of routes behind a router: authorization, the view's answer, refusals as JSON. */
import { jsonOf } from "../../../base/json.ts";
import { errorText } from "../../../base/errors.ts";
import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import { groupBy } from "../../../base/group-by.ts";
import { harmless } from "../../../base/text.ts";
import { Refusal, type ServiceView } from "../view.ts";
import type { SignIn } from "../access/sign-in.ts";
import { SLACK_BODY_BYTES, SLACK_PATH, type SlackApp } from "../slack/slack-app.ts";
import { admit, type Admitted, noteRefusals, noteSparingly, type SparingNote } from "./admit.ts";
import { type Authorizer, Denial } from "./authorize.ts";
import { squeezed } from "./encoding.ts";
import { EVENT_HEADERS, type EventStreams } from "./events.ts";
import { inTime } from "./in-time.ts";
import { jsonText } from "./json.ts";
import type { HttpLimits } from "./limits.ts";
import { METRICS_TYPE, metricsText, type RequestCounts } from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import { type Page, REPORT_POLICY } from "./page.ts";
import { readQuery } from "./queries.ts";
import type { Route } from "./route.ts";
import { beginSignIn, finishSignIn, signOut, whoAsks } from "./sign-in-answers.ts";

export interface Served {
  readonly view: ServiceView;
  readonly auth: Authorizer;
  readonly signIn: SignIn;
  readonly slackApp: SlackApp | null;
  readonly scheme: "http" | "https";
  readonly limits: HttpLimits;
  readonly version: string;
  readonly routes: readonly Route[];
  readonly page: Page;
  readonly streams: EventStreams;
  readonly requests: RequestCounts;
  nowMs(): number;
  log(line: string): void;
}

type Bindings = { Bindings: HttpBindings };
export type Router = Hono<Bindings>;

const JSON_TYPE = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
};
/** The longest that /healthz waits: who asks for it wants an answer. */
const HEALTH_MS = 5000;
/** Rows of the audit trail a minute for what was read. */
const MOST_READ = 60;

export function makeRouter(served: Served): Router {
  const router = new Hono<Bindings>({ strict: true });
  const own = ownAnswers(served);
  const noteRefusal = noteRefusals(served.view, () => served.nowMs());
  const noteRead = noteSparingly(served.view, MOST_READ, () => served.nowMs());
  for (const [path, routes] of groupBy(served.routes, (route) => route.path)) {
    for (const route of routes)
      router.on(route.method.toUpperCase(), path, async (c) => {
        const response = await answer(c, route, served, own[path], noteRefusal, noteRead).catch(
          (error: unknown) => refuse(error, served, hasBody(c.env.incoming.method)),
        );
        served.requests.add(path, response === RESPONSE_ALREADY_SENT ? 200 : response.status);
        return response;
      });
    const allow = routes.map(({ method }) => ALLOWED[method]).join(", ");
    router.all(path, (c) => {
      served.requests.add(path, 405);
      const why = `this path takes ${allow} only`;
      return errorAnswer(new Denial(405, why, { allow }), hasBody(c.req.method));
    });
  }
  router.notFound((c) => {
    served.requests.add("(unknown)", 404);
    const refusal = new Refusal(404, "there is nothing at this path");
    return errorAnswer(refusal, hasBody(c.req.method));
  });
  router.onError((error, c) => refuse(error, served, hasBody(c.req.method)));
  return router;
}

const ALLOWED = { get: "GET, HEAD", post: "POST", delete: "DELETE" } as const;

function hasBody(method: string | undefined): boolean {
  return method === "POST" || method === "DELETE";
}

type OwnAnswer = (c: Context<Bindings>, by: Admitted) => Promise<Response> | Response;

async function answer(
  c: Context<Bindings>,
  route: Route,
  served: Served,
  own: OwnAnswer | undefined,
  noteRefusal: ReturnType<typeof noteRefusals>,
  noteRead: SparingNote,
): Promise<Response> {
  const { incoming } = c.env;
  const id = c.req.param("id") ?? "";
  let by: Admitted | null = null;
  try {
    by = await admit(served.view, served.auth, route, incoming, id, noteRead);
    return await answerTo(by, c, route, served, own);
  } catch (error) {
    // Who tried to do what they may not: one row of the audit trail.
    const who = by?.caller.name ?? (error instanceof Denial ? error.who : null);
    const isHidden = (by?.caller.jobs ?? null) !== null;
    const isForeign =
      error instanceof Refusal && (error.status === 403 || (error.status === 404 && isHidden));
    if (route.needs === "act" && who !== null && isForeign)
      await noteRefusal(route, id, who, error.message);
    throw error;
  }
}

async function answerTo(
  by: Admitted,
  c: Context<Bindings>,
  route: Route,
  served: Served,
  own: OwnAnswer | undefined,
): Promise<Response> {
  const { incoming } = c.env;
  if (route.answer === null) return await own!(c, by);
  readQuery(incoming.url ?? "", route.query);
  const value = await inTime(
    Promise.resolve(
      route.answer({
        ...by,
        request: incoming,
        nowMs: served.nowMs(),
        param: (name) => c.req.param(name) ?? "",
        body: async () => parsed(await readBody(incoming, served.limits, route.bodyBytes)),
      }),
    ),
    // The body has its own limit.
    served.limits.answerMs + (route.method === "post" ? served.limits.bodyMs : 0),
  );
  if (value instanceof Response) return value;
  const json = value instanceof Uint8Array ? value : jsonText(value);
  return await jsonAnswer(json, incoming.headers["accept-encoding"]);
}

async function jsonAnswer(
  json: string | Uint8Array,
  accepts: string | string[] | undefined,
): Promise<Response> {
  const headers = { ...JSON_TYPE, vary: "accept-encoding" };
  const small = await squeezed(json, accepts);
  if (!small) return new Response(plainBody(json), { headers });
  return new Response(new Uint8Array(small.body), {
    headers: { ...headers, "content-encoding": small.encoding },
  });
}

function plainBody(json: string | Uint8Array): string | Uint8Array<ArrayBuffer> {
  return typeof json === "string" ? json : new Uint8Array(json);
}

/** Answers that are no JSON of the view. */
function ownAnswers(served: Served): Readonly<Record<string, OwnAnswer>> {
  const { view, streams, page, auth, signIn, scheme } = served;
  const door = { signIn, auth, view, scheme, log: (line: string) => served.log(line) };
  const description = jsonText(describeApi(served.version, served.routes));
  return {
    "/": async (c) => found(await page.answer("/", c.env.incoming.headers)),
    "/assets/:file": async (c) =>
      found(await page.answer(c.req.param("file") ?? "", c.env.incoming.headers)),
    "/api/v1/session": async (c) =>
      jsonAnswer(jsonText(await whoAsks(door, c.env.incoming)), undefined),
    "/auth/login": (c) => beginSignIn(door, c.env.incoming),
    "/auth/callback": (c) => finishSignIn(door, c.env.incoming),
    "/auth/logout": (c) => signOut(door, c.env.incoming),
    [SLACK_PATH]: async (c) => {
      const { incoming } = c.env;
      const body = () => readBody(incoming, served.limits, SLACK_BODY_BYTES);
      if (!served.slackApp) throw new Refusal(404, "there is nothing at this path");
      await served.slackApp.take(incoming.headers, body);
      return new Response(null, { headers: { "cache-control": "no-store" } });
    },
    "/api/v1/incidents/:id/report": async (c, by) => {
      const report = await inTime(by.view.report(c.req.param("id") ?? ""), served.limits.answerMs);
      if (report === null) throw new Refusal(404, "there is no report of this incident");
      return new Response(report, {
        headers: {
          "content-type": "text/html; charset=utf-8",
          "cache-control": "no-store",
          "content-security-policy": REPORT_POLICY,
        },
      });
    },
    "/healthz": async () => {
      const found = await inTime(view.health(), HEALTH_MS).catch((error: unknown) => {
        if (error instanceof Refusal) throw error;
        throw new Refusal(503, "the service cannot determine its health");
      });
      const { error, degraded, store, broker } = found;
      const about = { store, broker, version: served.version, nowMs: served.nowMs() };
      const health =
        error === null
          ? { status: "ok", ...(degraded === null ? {} : { degraded }), ...about }
          : { error, ...about };
      const status = error === null ? 200 : 503;
      return new Response(jsonText(health), { status, headers: JSON_TYPE });
    },
    "/metrics": (_, by) => {
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed } = process.memoryUsage();
      const text = metricsText(by.view.stats(), by.view.jobs(), {
        version: served.version,
        cpuSeconds: (user + system) / 1e6,
        residentBytes: rss,
        heapBytes: heapUsed,
        eventStreams: streams.count,
        droppedStreams: streams.dropped,
        requests: served.requests,
      });
      return new Response(text, {
        headers: { "content-type": METRICS_TYPE, "cache-control": "no-store" },
      });
    },
    "/api/v1/openapi.json": (c) =>
      jsonAnswer(description, c.env.incoming.headers["accept-encoding"]),
    "/api/v1/events": async (c, by) => {
      const { incoming, outgoing } = c.env;
      if (incoming.method === "HEAD") return new Response(null, { headers: EVENT_HEADERS });
      const mayStay = (): boolean => auth.holds(incoming, "read", by.caller);
      await inTime(streams.open(incoming, outgoing, { ...by, mayStay }), served.limits.answerMs);
      return RESPONSE_ALREADY_SENT;
    },
  };
}

function found(response: Response | null): Response {
  if (!response) throw new Refusal(404, "there is nothing at this path");
  return response;
}

function parsed(body: string): unknown {
  const json = jsonOf(body);
  if (json === undefined) throw new Refusal(400, "the body is not JSON");
  return json;
}

function refuse(error: unknown, served: Served, hasBody: boolean): Response {
  if (error instanceof Refusal) return errorAnswer(error, hasBody);
  const why = errorText(error);
  served.log(`a request failed: ${harmless(why).slice(0, 500)}`);
  return errorAnswer(new Refusal(500, "internal error"), hasBody);
}

function errorAnswer(refusal: Refusal, hasBody: boolean): Response {
  const { status, message } = refusal;
  return new Response(jsonText({ error: message }), {
    status: status >= 400 && status <= 599 ? status : 500,
    headers: {
      ...JSON_TYPE,
      ...(refusal instanceof Denial ? refusal.headers : {}),
      // The client may still be sending: the connection ends with the answer.
      ...(hasBody ? { connection: "close" } : {}),
    },
  });
}

/** Not an async iteration: leaving one destroys the socket, and the refusal would never be read. */
function readBody(
  request: IncomingMessage,
  limits: HttpLimits,
  most: number = limits.bodyBytes,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const stop = (): void => {
      clearTimeout(late);
      request.off("data", take).off("end", whole).off("error", cut).off("close", cut);
    };
    const refuse = (status: number, why: string): void => {
      stop();
      request.on("error", () => undefined);
      reject(new Refusal(status, why));
    };
    const take = (part: Buffer): void => {
      bytes += part.length;
      if (bytes > most) tooLarge();
      else parts.push(part);
    };
    const whole = (): void => {
      stop();
      resolve(Buffer.concat(parts).toString("utf8"));
    };
    const cut = (): void => refuse(400, "the body was cut off");
    const tooLarge = (): void => refuse(413, `the body is larger than ${most} bytes`);
    const late = setTimeout(() => refuse(408, "the body took too long"), limits.bodyMs);
    request.on("data", take).once("end", whole).once("error", cut).once("close", cut);
    if (Number(request.headers["content-length"] ?? 0) > most) tooLarge();
  });
}
