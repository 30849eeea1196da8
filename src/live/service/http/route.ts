/** A way into the service, and what all of them share. */
import type { IncomingMessage } from "node:http";
import { NAME } from "../../wire/messages.ts";
import type { Caller } from "../access/grants.ts";
import { Refusal, type ServiceView } from "../view.ts";
import type { Need } from "./authorize.ts";
import type { Parameters } from "./queries.ts";
import type { SchemaName } from "./schemas.ts";

export interface Ask {
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
  readonly answer: ((ask: Ask) => unknown) | null;
}

/** Nobody has to know why: a name that cannot be is not there either. */
export function jobOf({ param }: Ask): string {
  const job = param("job");
  if (!NAME.test(job)) throw new Refusal(404, "there is no such job");
  return job;
}

export function found<T>(value: T | null, what: string): T {
  if (value === null) throw new Refusal(404, `there is no such ${what}`);
  return value;
}

export const get = (
  path: string,
  schema: SchemaName,
  summary: string,
  query: Parameters,
  answer: (ask: Ask) => unknown,
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

export const post = (
  path: string,
  schema: SchemaName,
  summary: string,
  more: Pick<Route, "errors"> & Partial<Pick<Route, "query" | "body" | "bodyBytes">>,
  answer: (ask: Ask) => unknown,
): Route => ({
  method: "post",
  path: `/api/v1${path}`,
  needs: "act",
  summary,
  query: {},
  answers: { schema },
  answer,
  ...more,
});

export const own = (
  path: string,
  needs: Need,
  answers: Route["answers"],
  summary: string,
  errors: readonly number[] = [],
): Route => ({ method: "get", path, needs, summary, query: {}, answers, errors, answer: null });
