/** The service's HTTP side: every route, every answer, live events, figures. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { makeAuthorizer } from "../../src/live/service/http/authorize.ts";
import type { HttpLimits } from "../../src/live/service/http/limits.ts";
import { ROUTES } from "../../src/live/service/http/routes.ts";
import { type HttpSide, serveHttp } from "../../src/live/service/http/serve-http.ts";
import type { ServiceView } from "../../src/live/service/view.ts";
import { openRaw, sendRaw } from "../support/raw-http.ts";
import {
  HANDLING,
  INCIDENT,
  JOB,
  MUTE,
  NOW_MS,
  testView,
  type TestView,
} from "../support/serve-view.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { whyNoPrometheus } from "../support/prometheus-server.ts";

const stops: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Started extends HttpSide, TestView {
  readonly logged: string[];
}

async function start(
  changed: Partial<ServiceView> = {},
  limits: Partial<HttpLimits> = {},
): Promise<Started> {
  const made = testView(changed);
  const logged: string[] = [];
  const side = await serveHttp({
    view: made.view,
    auth: makeAuthorizer({
      host: "127.0.0.1",
      tokens: [],
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: () => NOW_MS,
    }),
    host: "127.0.0.1",
    port: 0,
    tls: null,
    nowMs: () => NOW_MS,
    version: "1.2.3",
    log: (line) => logged.push(line),
    limits,
  });
  stops.push(() => side.close());
  return { ...side, ...made, logged };
}

async function json(url: string, init?: RequestInit): Promise<[status: number, body: unknown]> {
  const response = await fetch(url, init);
  return [response.status, await response.json()];
}

const post = (body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: typeof body === "string" ? body : JSON.stringify(body),
});

const ACTION = `/api/v1/incidents/${INCIDENT.id}/actions/cordon-node0`;

describe("the API", () => {
  it("answers jobs, ranks and iterations, with null where nothing is known", async () => {
    const { url, asked } = await start();
    const api = `${url}/api/v1`;
    expect(await json(`${api}/jobs`)).toEqual([200, { jobs: [JOB] }]);
    expect(await json(`${api}/jobs/llama`)).toEqual([200, JOB]);
    const values = {
      layout: "l1",
      iteration: [812, 811],
      durationMs: [1530.1, null],
      ownMs: [0.1, null],
      waitMs: [null, null],
      lateMs: [0, null],
      temperature: [61, null],
      state: ["running", "silent"],
    };
    expect(await json(`${api}/jobs/llama/ranks`)).toEqual([
      200,
      {
        ...values,
        groups: [{ name: "tp0", role: "TENSOR_PARALLEL", ranks: [0, 3] }],
        rank: [0, 3],
        machine: ["node0", null],
        gpu: [0, null],
        stage: [null, 1],
        pipeline: [0, 1],
        data: [0, null],
        tensor: [0, 0],
      },
    ]);
    expect(await json(`${api}/jobs/llama/ranks?only=values`)).toEqual([200, values]);
    expect(
      await json(`${api}/jobs/llama/iterations?from=5&to=2026-11-16T12:00:00Z&most=9`),
    ).toEqual([
      200,
      {
        iteration: [810, 811],
        endMs: [NOW_MS - 2000, NOW_MS - 500],
        durationMs: [1500, null],
      },
    ]);
    expect(asked.at(-1)!.of).toEqual(["llama", { fromMs: 5, toMs: NOW_MS, most: 9 }]);
    for (const path of ["", "/ranks", "/iterations"])
      expect(await json(`${api}/jobs/other${path}`)).toEqual([
        404,
        { error: "there is no such job" },
      ]);
  });

  it("answers incidents with their filters, history, offenders and the audit trail", async () => {
    const { url, asked } = await start();
    const api = `${url}/api/v1`;
    const filters = "job=llama&open=true&since=1000&machine=node0";
    expect(await json(`${api}/incidents?${filters}&most=7`)).toEqual([
      200,
      { incidents: [INCIDENT], next: null },
    ]);
    expect(asked.at(-1)!.of).toEqual([
      { job: "llama", open: true, sinceMs: 1000, machine: "node0", most: 7 },
    ]);
    const next = `${INCIDENT.openedMs},${INCIDENT.id}`;
    expect(await json(`${api}/incidents?most=1`)).toEqual([200, { incidents: [INCIDENT], next }]);
    expect((await json(`${api}/incidents?most=1&before=5.25,${INCIDENT.id}`))[0]).toBe(200);
    const before = { atMs: 5.25, id: INCIDENT.id };
    expect(asked.at(-1)!.of).toEqual([{ most: 1, before }]);
    expect(await json(`${api}/incidents/${INCIDENT.id}`)).toEqual([200, INCIDENT]);
    const [, history] = await json(`${api}/incidents/${INCIDENT.id}/history`);
    expect(history).toMatchObject({ revisions: [{ revision: 1 }, { revision: 2 }] });
    for (const path of ["/incidents/no", "/incidents/no/history"])
      expect(await json(api + path)).toEqual([404, { error: "there is no such incident" }]);
    expect((await json(`${api}/offenders?days=2&most=3`))[0]).toBe(200);
    expect(asked.at(-1)!.of).toEqual([NOW_MS - 2 * 86_400_000, 3]);
    expect((await json(`${api}/audit?incident=${INCIDENT.id}`))[0]).toBe(200);
    expect(asked.at(-1)!.of).toEqual([{ incident: INCIDENT.id, most: 100 }]);
  });

  it("refuses parameters that are unknown, doubled or malformed", async () => {
    const { url } = await start();
    const bad = [
      ["/jobs?x=1", /no parameter "x" here; none is known/],
      [
        "/incidents?opne=true",
        /no parameter "opne".*job, open, since, machine, before, most are known/,
      ],
      ["/incidents?open=yes", /"open" must be true or false/],
      ["/incidents?open=true&open=false", /given twice/],
      ["/incidents?job=../x", /must be a name/],
      ["/incidents?since=yesterday", /milliseconds/],
      ["/incidents?since=2026-02-01T10:00:00", /milliseconds/],
      ["/incidents?most=0", /from 1 to 500/],
      ["/incidents?most=1e3", /from 1 to 500/],
      ["/incidents?before=yesterday,a", /milliseconds/],
      ["/incidents?machine=", /1 to 256/],
      ["/offenders?days=99999", /from 1 to 3650/],
      ["/incidents?__proto__=1", /no parameter/],
      ["/jobs/llama/ranks?only=all", /"only" must be values/],
    ] as const;
    for (const [path, why] of bad) {
      const [status, body] = await json(`${url}/api/v1${path}`);
      expect([path, status]).toEqual([path, 400]);
      expect((body as { error: string }).error).toMatch(why);
    }
  });

  it("passes approvals on with the caller's name, and the view's refusals back", async () => {
    const { url, asked } = await start();
    expect(await json(url + ACTION, post({ verb: "approve", dryRun: true }))).toEqual([
      200,
      INCIDENT,
    ]);
    expect(asked.at(-1)!.of).toEqual([INCIDENT.id, "cordon-node0", "approve", "loopback", true]);
    expect((await json(url + ACTION, post({ verb: "approve" })))[0]).toBe(200);
    expect(asked.at(-1)!.of.at(-1)).toBe(false);
    expect(await json(url + ACTION, post({ verb: "dismiss" }))).toEqual([
      409,
      { error: "the action has been done already" },
    ]);
    const before = asked.length;
    for (const body of ["", "{", "[]", "null", { verb: "run" }, { verb: "approve", force: true }])
      expect((await json(url + ACTION, post(body)))[0]).toBe(400);
    expect(asked.length).toBe(before);
  });

  it("says 404 for other paths, 405 for other methods, and answers HEAD", async () => {
    const { url } = await start();
    expect(await json(`${url}/api/v2/jobs`)).toEqual([
      404,
      { error: "there is nothing at this path" },
    ]);
    for (const [method, path] of [
      ["POST", "/api/v1/jobs"],
      ["GET", ACTION],
      ["PUT", "/api/v1/jobs"],
      ["DELETE", "/healthz"],
      ["OPTIONS", "/api/v1/jobs"],
      ["PATCH", "/nowhere"],
    ] as const) {
      const init = /POST|DELETE/.test(method) ? { ...post({}), method } : { method };
      const response = await fetch(url + path, init);
      expect([method, path, response.status]).toEqual([method, path, 405]);
      expect(response.headers.get("allow")).toMatch(/GET|POST/);
    }
    for (const path of ["/", "/healthz", "/metrics", "/api/v1/jobs", "/api/v1/events"]) {
      const response = await fetch(url + path, { method: "HEAD" });
      expect([path, response.status, await response.text()]).toEqual([path, 200, ""]);
    }
  });

  it("hides what fails inside, says it in the log, and gives up what never ends", async () => {
    const { url, logged } = await start(
      {
        jobs: () => {
          throw new Error("secret path \u001b[31m");
        },
        incident: async () => await Promise.reject(new Error("no database")),
        audit: () => new Promise(() => undefined),
        health: () => new Promise(() => undefined),
      },
      { answerMs: 50 },
    );
    const failed = [500, { error: "internal error" }];
    expect(await json(`${url}/api/v1/jobs`)).toEqual(failed);
    expect(await json(`${url}/api/v1/incidents/x`)).toEqual(failed);
    expect(logged.join("\n")).toMatch(/secret path/);
    expect(logged.join("\n")).not.toContain("\u001b");
    expect(logged.join("\n")).toMatch(/no database/);
    expect((await json(`${url}/api/v1/audit`))[0]).toBe(503);
  });

  it("tells whether it is well", async () => {
    const well = await start();
    expect(await json(`${well.url}/healthz`)).toEqual([
      200,
      { status: "ok", store: "ok", broker: "none", version: "1.2.3", nowMs: expect.any(Number) },
    ]);
    const degraded = "the broker cannot be reached: agents keep their reports";
    const alone = await start({
      health: async () => ({ error: null, degraded, store: "ok", broker: "away" }),
    });
    expect(await json(`${alone.url}/healthz`)).toMatchObject([200, { degraded, broker: "away" }]);
    const error = "the history cannot be reached";
    const ill = await start({
      health: async () => ({ error, degraded: null, store: "away", broker: "none" }),
    });
    expect(await json(`${ill.url}/healthz`)).toMatchObject([503, { error, store: "away" }]);
    const lost = await start({ health: async () => await Promise.reject(new Error("x")) });
    expect((await json(`${lost.url}/healthz`))[0]).toBe(503);
  });

  it("writes nothing that a terminal or a page would act on", async () => {
    const { url } = await start();
    const text = await (await fetch(`${url}/api/v1/incidents`)).text();
    expect(text).not.toMatch(/[<>\u0080-\u009f\u202a-\u202e]/);
    expect(JSON.parse(text)).toEqual({ incidents: [INCIDENT], next: null });
  });
});

describe("the description", () => {
  /** What each path takes. */
  const BODIES: Readonly<Record<string, object>> = {
    "/v1/jobs/{job}/iterations": { run: "r1", iteration: 1, counts: [2, 2], seconds: [1, null] },
    "/api/v1/incidents/{id}/actions/{action}": { verb: "approve", dryRun: false },
    "/api/v1/incidents/{id}/handling": { do: "comment", text: "seen" },
    "/api/v1/mutes": { machine: "node0*", untilMs: NOW_MS + 3_600_000, why: "new firmware" },
    "/api/v1/site/records": { line: "a b", title: "t", action: "call", cause: "storage" },
    "/api/v1/incidents/{id}/links": { days: 2 },
    "/api/v1/site/forget": { job: "llama/r1" },
    "/api/v1/site/import": { schema: "faultline.logs-store/1" },
  };

  it("has every route, and every real answer fits the schema it promises", async () => {
    const { url } = await start();
    const [status, body] = await json(`${url}/api/v1/openapi.json`);
    expect(status).toBe(200);
    const api = body as Description;
    expect(api.openapi).toBe("3.1.0");
    expect(api.info.version).toBe("1.2.3");
    const described = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    const routed = ROUTES.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    expect(described.sort()).toEqual(routed.sort());

    const ids = new Set<string>();
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        expect(ids.has(operation.operationId)).toBe(false);
        ids.add(operation.operationId);
        const names = operation.parameters.filter((p) => p.in === "path").map((p) => p.name);
        expect(names).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
        for (const [status, response] of Object.entries(operation.responses))
          if (status !== "200") expect(at(api, response.$ref!)).toBeDefined();
        const where = path
          .replace("{job}", "llama")
          .replace("{id}", INCIDENT.id)
          .replace("{action}", "cordon-node0")
          .replace(/\/plan$/, "/plan?iteration=1&run=r1&replicas=2&total=4");
        const content = operation.responses["200"]!.content!;
        const schema = content["application/json"]?.schema;
        if (schema === undefined) continue;
        const sent = BODIES[path] ?? {};
        const init = method === "post" ? post(sent) : {};
        const [got, answer] = await json(url + where, init);
        expect([where, got]).toEqual([where, 200]);
        expect([where, faultsOf(api, schema, answer)]).toEqual([where, []]);
        // A schema that takes anything would pass as well.
        if (schema["$ref"] !== undefined) expect(faultsOf(api, schema, { x: 1 })).not.toEqual([]);
        const [missing, error] = await json(url + where.replace(/llama/g, "other"), init);
        if (missing !== 200)
          expect(faultsOf(api, { $ref: "#/components/schemas/Error" }, error)).toEqual([]);
      }
    }
  });

  it("says which scope each operation needs, and describes events", async () => {
    const { url } = await start();
    const api = (await json(`${url}/api/v1/openapi.json`))[1] as Description;
    expect(api.paths["/api/v1/jobs"]!["get"]!.security).toEqual([{ token: ["read"] }]);
    expect(api.paths["/healthz"]!["get"]!.security).toEqual([]);
    for (const way of ["on", "off"])
      expect(api.paths[`/api/v1/actions/${way}`]!["post"]!.security).toEqual([{ token: ["act"] }]);
    const action = api.paths["/api/v1/incidents/{id}/actions/{action}"]!["post"]!;
    expect(action.security).toEqual([{ token: ["act"] }]);
    const body = { $ref: "#/components/schemas/ActionBody" };
    expect(faultsOf(api, body, { verb: "approve" })).toEqual([]);
    expect(faultsOf(api, body, { verb: "approve", dryRun: 1 })).not.toEqual([]);
    const event = { $ref: "#/components/schemas/LiveEvent" };
    expect(faultsOf(api, event, { type: "job", job: JOB })).toEqual([]);
    expect(faultsOf(api, event, { type: "job", job: { ...JOB, more: 1 } })).not.toEqual([]);
    const rows = { iteration: [1], endMs: [2], durationMs: [null] };
    expect(faultsOf(api, event, { type: "iterations", job: "a", run: "b", rows })).toEqual([]);
    expect(faultsOf(api, event, { type: "nothing" })).not.toEqual([]);
    expect(api.paths["/api/v1/events"]!["get"]!.parameters.map(({ name }) => name)).toEqual([
      "Last-Event-ID",
    ]);
  });
});

type Json = Record<string, unknown>;
interface Operation {
  readonly operationId: string;
  readonly security: unknown;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Record<string, { $ref?: string; content?: Record<string, { schema: Json }> }>;
}
interface Description {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Json };
}

function at(root: unknown, ref: string): unknown {
  return ref
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((value, key) => (value as Json)[key], root);
}

/** By an own reading of the published schema, not by what it was made of. */
function faultsOf(api: Description, schema: Json, value: unknown): unknown[] {
  // What is not described must not be there, though clients are to bear it.
  const closed = (_: string, part: unknown): unknown =>
    typeof part === "object" && part !== null && "properties" in part
      ? { additionalProperties: false, ...part }
      : part;
  const moved = JSON.stringify({ ...schema, $defs: api.components.schemas }, closed).replaceAll(
    "#/components/schemas/",
    "#/$defs/",
  );
  const reading = z.fromJSONSchema(JSON.parse(moved) as Parameters<typeof z.fromJSONSchema>[0]);
  return reading.safeParse(value).error?.issues ?? [];
}

interface Heard {
  readonly id: string;
  readonly event: string;
  readonly data: Json;
}

/** A reader of events. */
async function listen(url: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  stops.push(() => stop.abort());
  const response = await fetch(`${url}/api/v1/events`, { headers, signal: stop.signal });
  const heard: Heard[] = [];
  const state = { text: "", ended: false };
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body!) {
      const text = decoder.decode(chunk, { stream: true });
      state.text += text;
      const parts = (rest + text).split("\n\n");
      rest = parts.pop()!;
      for (const part of parts) {
        const { id, event, data } = Object.fromEntries(
          part.split("\n").map((line) => {
            const [name = "", ...value] = line.split(": ");
            return [name, value.join(": ")];
          }),
        );
        if (data !== undefined)
          heard.push({ id: id ?? "", event: event ?? "", data: JSON.parse(data) as Json });
      }
    }
  };
  read()
    .catch(() => undefined)
    .finally(() => (state.ended = true));
  return { response, heard, state, stop };
}

const agentEvent = (agent: string) => ({ type: "agent", agent, connected: true }) as const;

describe("live events", () => {
  it("begin with a snapshot and go on with every change", async () => {
    const { url, tell } = await start();
    const { response, heard } = await listen(url);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await until(() => heard.length === 1);
    expect(heard[0]!.event).toBe("snapshot");
    expect(heard[0]!.data).toEqual({
      type: "snapshot",
      jobs: [JOB],
      incidents: [INCIDENT],
      isDemo: false,
      actions: { isOn: true, says: "", canRun: false },
      handlings: [HANDLING],
      mutes: [MUTE],
    });
    tell({ type: "incident", incident: INCIDENT });
    tell({ type: "trouble", line: "data: fake\n\nevent: fake" });
    await until(() => heard.length === 3);
    expect(heard.map(({ event }) => event)).toEqual(["snapshot", "incident", "trouble"]);
    expect(heard[2]!.data).toEqual({ type: "trouble", line: "data: fake\n\nevent: fake" });
  });

  it("go on after the last one seen, or begin anew where that is no longer kept", async () => {
    const { url, tell } = await start({}, { keptEvents: 3 });
    const first = await listen(url);
    await until(() => first.heard.length === 1);
    for (const agent of ["a", "b", "c"]) tell(agentEvent(agent));
    await until(() => first.heard.length === 4);
    const agents = (heard: readonly Heard[]): unknown[] =>
      heard.map(({ event, data }) => (event === "agent" ? data["agent"] : event));

    const back = await listen(url, { "last-event-id": first.heard[1]!.id });
    await until(() => back.heard.length === 2);
    expect(agents(back.heard)).toEqual(["b", "c"]);
    const last = await listen(url, { "last-event-id": first.heard[3]!.id });
    tell(agentEvent("d"));
    await until(() => last.heard.length === 1);
    expect(agents(last.heard)).toEqual(["d"]);

    // "a" and what came before it have gone.
    for (const id of [first.heard[0]!.id, "otherboot-2", "x", `${first.heard[3]!.id}9`]) {
      const late = await listen(url, { "last-event-id": id });
      await until(() => late.heard.length === 1);
      expect([id, late.heard[0]!.event]).toEqual([id, "snapshot"]);
    }
  });

  it("let a reader that comes back take its time for all that it missed", async () => {
    const { url, tell } = await start({}, { unreadBytes: 1000, keptEventBytes: 20 << 20 });
    const first = await listen(url);
    await until(() => first.heard.length === 1);
    const { id } = first.heard[0]!;
    first.stop.abort();
    const line = "x".repeat(1 << 18);
    for (let i = 0; i < 60; i++) tell({ type: "trouble", line });
    const back = await listen(url, { "last-event-id": id });
    await until(() => back.heard.length === 60);
    expect(back.state.ended).toBe(false);
  });

  it("miss nothing that happens while the snapshot is made", async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let asked = false;
    const { url, tell } = await start({
      incidents: async () => {
        asked = true;
        await held;
        return [];
      },
    });
    const listening = listen(url);
    await until(() => asked);
    tell(agentEvent("meanwhile"));
    release();
    const { heard } = await listening;
    await until(() => heard.length === 2);
    expect(heard.map(({ event }) => event)).toEqual(["snapshot", "agent"]);
  });

  it("send signs of life, are few, and end with the service", async () => {
    const made = await start({}, { heartbeatMs: 20, eventStreams: 2 });
    const one = await listen(made.url);
    const two = await listen(made.url);
    await until(() => one.state.text.includes(": still here"));
    expect(await json(`${made.url}/api/v1/events`)).toEqual([
      503,
      { error: "there are 2 readers of events already" },
    ]);
    two.stop.abort();
    await until(async () => {
      const again = await listen(made.url);
      if (again.response.status !== 200) return false;
      again.stop.abort();
      return true;
    });
    expect(made.listeners()).toBe(1);
    await made.close();
    await until(() => one.state.ended);
    expect(made.listeners()).toBe(0);
    stops.splice(0, 1);
  });

  it("drop a reader that does not read, and nobody else", async () => {
    const { url, tell } = await start({}, { unreadBytes: 100_000, heartbeatMs: 60_000 });
    const slow = openRaw(url);
    stops.push(() => void slow.destroy());
    slow.on("error", () => undefined);
    slow.write("GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    await new Promise<void>((resolve) => {
      slow.once("data", () => resolve());
    });
    slow.pause();
    const good = await listen(url);
    await until(() => good.heard.length === 1);
    const line = "x".repeat(50_000);
    let told = 0;
    const dropped = async (): Promise<boolean> =>
      /faultline_event_streams_dropped_total 1\n/.test(
        await (await fetch(`${url}/metrics`)).text(),
      );
    await until(async () => {
      tell({ type: "trouble", line });
      told++;
      await until(() => good.heard.length === told + 1);
      return await dropped();
    });
    expect(good.state.ended).toBe(false);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("faultline_event_streams 1\n");
  });
});

describe("/metrics", () => {
  it("says what the service counts", async () => {
    const { url } = await start();
    await fetch(`${url}/api/v1/jobs`);
    const response = await fetch(`${url}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    for (const line of [
      'faultline_build_info{version="1.2.3"} 1',
      "faultline_agents 2",
      "faultline_incidents_total 4",
      "faultline_fetched_bytes_total 9000",
      'faultline_verdict_seconds{quantile="0.5"} 4',
      'faultline_verdict_seconds{quantile="0.95"} 8',
      'faultline_job_health{job="llama",health="slow"} 1',
      'faultline_job_health{job="llama",health="hung"} 0',
      'faultline_job_iteration_seconds{job="llama"} 1.5305',
      'faultline_http_requests_total{route="/api/v1/jobs",status="200"} 1',
    ])
      expect(text.split("\n")).toContain(line);
    expect(text).not.toMatch(/job_baseline_seconds\{/);
    expect(text).toMatch(/^faultline_process_cpu_seconds_total \d/m);
    expect(text).toMatch(/^faultline_process_resident_memory_bytes [1-9]\d{6}/m);
    const named = [...text.matchAll(/^(faultline_\w+)/gm)].map(([, name]) => name!);
    for (const name of named) expect(text).toContain(`# TYPE ${name} `);
  });

  it.skipIf(whyNoPrometheus !== "")(
    `is to the liking of promtool and of a real Prometheus${whyNoPrometheus}`,
    async () => {
      const { url, port } = await started();
      const text = await (await fetch(`${url}/metrics`)).text();
      execFileSync("promtool", ["check", "metrics"], { input: text, stdio: "pipe" });
      const folder = mkdtempSync(join(tmpdir(), "faultline-scrape-"));
      stops.push(() => rmSync(folder, { recursive: true, force: true }));
      const config = join(folder, "prometheus.yml");
      writeFileSync(
        config,
        `global: { scrape_interval: 1s }\nscrape_configs:\n  - job_name: faultline\n    static_configs: [{ targets: ["127.0.0.1:${port}"] }]\n`,
      );
      const own = await freePort();
      const child = spawn(
        "prometheus",
        [
          `--config.file=${config}`,
          `--storage.tsdb.path=${join(folder, "data")}`,
          `--web.listen-address=127.0.0.1:${own}`,
          "--log.level=error",
        ],
        { stdio: "ignore" },
      );
      const kill = (): void => void child.kill("SIGKILL");
      process.once("exit", kill);
      stops.push(async () => {
        process.off("exit", kill);
        const ended = once(child, "exit");
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGKILL");
          await ended;
        }
      });
      const query = `http://127.0.0.1:${own}/api/v1/query?query=`;
      await until(
        async () => {
          const answer = await fetch(`${query}faultline_verdict_seconds`).catch(() => null);
          if (!answer?.ok) return false;
          const { data } = (await answer.json()) as { data: { result: unknown[] } };
          return data.result.length === 5;
        },
        "",
        60_000,
      );
    },
  );

  async function started(): Promise<{ url: string; port: string }> {
    const { url } = await start();
    return { url, port: new URL(url).port };
  }
});

describe("the server", () => {
  it("says in words that a port is taken", async () => {
    const { url } = await start();
    const port = Number(new URL(url).port);
    const auth = makeAuthorizer({
      host: "127.0.0.1",
      tokens: [],
      publicRead: false,
      insecure: false,
      allowedHosts: [],
      tls: false,
      nowMs: () => NOW_MS,
    });
    const again = serveHttp({
      view: testView().view,
      auth,
      host: "127.0.0.1",
      port,
      tls: null,
      nowMs: () => NOW_MS,
      version: "1",
      log: () => undefined,
    });
    await expect(again).rejects.toThrow(/cannot listen on 127\.0\.0\.1 port \d+: .*EADDRINUSE/);
  });

  it("answers several requests on one connection, and closes it at the end of the service", async () => {
    const made = await start();
    const ask = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    const { body } = await sendRaw(
      made.url,
      `${ask}${ask.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")}`,
    );
    expect(body.match(/"status":"ok"/g)).toHaveLength(2);
    const idle = openRaw(made.url);
    stops.push(() => void idle.destroy());
    idle.on("error", () => undefined);
    await once(idle, "connect");
    const closed = once(idle, "close");
    await made.close();
    stops.splice(0, 1);
    await closed;
  });
});
