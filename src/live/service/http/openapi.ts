/** The OpenAPI 3.1 description of the service, made of the table of routes. */
import { z } from "zod";
import type { Route } from "./route.ts";
import { type SchemaName, SCHEMAS } from "./schemas.ts";

const BASE = "#/components/schemas/";

/** What can come of any request, in words. */
const ERRORS: Readonly<Record<number, string>> = {
  400: "The request cannot be understood",
  401: "A token is needed, or the one given is not known",
  403: "The token does not have the scope, or the request comes from a page of another site",
  404: "There is no such thing",
  405: "The path does not take this method",
  408: "The request took too long",
  409: "It is not in a state that allows this",
  413: "The body is too large",
  414: "The URL is too long",
  415: "The body is not JSON",
  421: "The service does not answer under this name",
  429: "Too many wrong tokens came from this address",
  431: "The headers are too large",
  500: "An error of the service",
  502: "The provider of sign-ins does not answer as it should",
  503: "The service is not well, or has no place left",
};
const ALWAYS = [400, 405, 414, 421, 431, 500, 503];
const WITH_TOKEN = [401, 403, 429];

export function describeApi(
  version: string,
  routes: readonly Route[],
): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: operation(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Faultline",
      version,
      description:
        "Which GPU, machine, link or line of code makes a training job hang, crash or crawl.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    // Relative: under whatever name it was fetched.
    servers: [{ url: "/" }],
    paths,
    webhooks: {
      alert: sent(
        "AlertWebhook",
        "To alerts.webhooks: an incident is confirmed, resolved or came back. X-Faultline-Event is the event; X-Faultline-Delivery stays the same when a message is repeated.",
      ),
      digest: sent(
        "DigestWebhook",
        "To alerts.webhooks, once a week where alerts.digest says when: the last seven days in figures. X-Faultline-Event is digest.",
      ),
      action: sent(
        "ActionWebhook",
        "To actions.drivers.webhook: do an action, or undo it. X-Faultline-Delivery stays the same for each attempt.",
      ),
    },
    components: {
      schemas: schemas(routes),
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description:
            "A token with the scope that the operation names. On loopback, where no tokens are configured, none is needed.",
        },
      },
      responses: Object.fromEntries(
        Object.entries(ERRORS).map(([status, description]) => [
          `Error${status}`,
          { description, content: { "application/json": { schema: { $ref: `${BASE}Error` } } } },
        ]),
      ),
    },
  };
}

/** What the service itself posts; any answer of 200 to 299 takes it. */
function sent(schema: SchemaName, summary: string): unknown {
  const content = { "application/json": { schema: { $ref: BASE + schema } } };
  return {
    post: {
      summary,
      requestBody: { required: true, content },
      responses: { "2XX": { description: "The receiver has it" } },
    },
  };
}

/** Not there where nothing can be broken on purpose. */
const OF_THE_DEMO: ReadonlySet<string> = new Set<SchemaName>(["DemoFault", "DemoState"]);

function schemaOf({ schema, or }: { schema: string; or?: string }): unknown {
  const ref = { $ref: BASE + schema };
  return or === undefined ? ref : { anyOf: [ref, { $ref: BASE + or }] };
}

function operation(route: Route): unknown {
  const { needs, answers } = route;
  const isOpen = needs === "nothing";
  const scope = needs === "metrics" ? "read" : needs;
  const statuses = new Set([...ALWAYS, ...(isOpen ? [] : WITH_TOKEN), ...route.errors]);
  const ok =
    "schema" in answers
      ? { "application/json": { schema: schemaOf(answers) } }
      : { [answers.type]: streamed(answers.type) };
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...(isOpen
      ? { security: [] }
      : { security: [{ token: [scope] }], description: `Needs a token with the scope ${scope}.` }),
    parameters: parameters(route),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: { $ref: BASE + route.body } } },
          },
        }),
    responses: Object.fromEntries([
      ["200", { description: route.summary, content: ok }],
      ...[...statuses]
        .sort((a, b) => a - b)
        .map((status) => [String(status), { $ref: `#/components/responses/Error${status}` }]),
    ]),
  };
}

function streamed(type: string): unknown {
  if (type === "application/json") return { schema: { type: "object" } };
  if (type !== "text/event-stream") return { schema: { type: "string" } };
  return {
    schema: {
      type: "string",
      description:
        "Events with id, event (snapshot, job, incident, iterations, actions, agent, trouble) and data: a Snapshot first, then LiveEvents, as JSON.",
    },
  };
}

/** "/api/v1/jobs/:job/ranks" → "getJobsJobRanks" */
function operationId({ method, path }: Route): string {
  const words = path.replace("/api/v1", "").match(/[a-z]+/gi) ?? ["page"];
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}

function parameters({ path, query, method, answers }: Route): unknown[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(query).map(([name, { says, schema }]) => ({
    name,
    in: "query",
    required: false,
    description: says,
    schema,
  }));
  const isStream = method === "get" && "type" in answers && answers.type === "text/event-stream";
  const resume = {
    name: "Last-Event-ID",
    in: "header",
    required: false,
    description: "Id of the last event that was seen",
    schema: { type: "string" },
  };
  return [...inPath, ...inQuery, ...(isStream ? [resume] : [])];
}

function schemas(routes: readonly Route[]): Record<string, unknown> {
  const registry = z.registry<{ id: string }>();
  const hasDemo = routes.some(({ path }) => path.startsWith("/api/v1/demo"));
  for (const [id, schema] of Object.entries(SCHEMAS))
    if (hasDemo || !OF_THE_DEMO.has(id)) registry.add(schema, { id });
  const made = z.toJSONSchema(registry, {
    uri: (id) => BASE + id,
    // What a default fills in need not be sent.
    io: "input",
  });
  return Object.fromEntries(
    Object.entries(made.schemas).map(([id, schema]) => {
      const { $schema: _, $id: __, ...rest } = schema;
      return [id, rest];
    }),
  );
}
