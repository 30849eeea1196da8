/**
 * An API server over HTTPS that behaves as the published OpenAPI of Kubernetes says, as far as the driver goes: bearer
 * tokens, RBAC, merge patches with resourceVersion, the eviction subresource with PodDisruptionBudgets, and workloads whose
 * `suspend` takes their pods away.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:https";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { TEST_CERTIFICATE, TEST_KEY } from "./tls.ts";

type Json = Record<string, unknown>;

export interface Stored extends Json {
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    deletionTimestamp?: string;
  };
  spec: Json;
  status?: Json;
}

export interface KubernetesStub {
  readonly url: string;
  readonly token: string;
  /** "get nodes", "patch jobsets", "create pods/eviction", … */
  readonly rights: Set<string>;
  /** "PATCH /api/v1/nodes/node003", in order. */
  readonly requests: string[];
  /** Pods that a PodDisruptionBudget protects, by name. */
  readonly protectedPods: Set<string>;
  /** Called before a request is carried out: may change things under its feet, or answer instead. */
  before: ((line: string) => void | { status: number; body?: Json }) | null;
  /** "lost": carried out, and the connection breaks before the answer. */
  lose: ((line: string) => boolean) | null;
  /** Waits before a request is carried out; false: it is not. */
  hold: ((line: string) => Promise<boolean>) | null;
  object(path: string): Stored;
  add(
    path: string,
    object: Partial<Omit<Stored, "metadata">> & { labels?: Record<string, string> },
  ): Stored;
  pods(): string[];
  close(): Promise<void>;
}

const RIGHTS = [
  "get nodes",
  "patch nodes",
  "list pods",
  "create pods/eviction",
  ...["jobs", "jobsets", "pytorchjobs"].flatMap((one) => [`get ${one}`, `patch ${one}`]),
  "create commands",
];
const SUSPENDS: Readonly<Record<string, { path: string[]; label: string }>> = {
  jobs: { path: ["spec", "suspend"], label: "job-name" },
  jobsets: { path: ["spec", "suspend"], label: "jobset.sigs.k8s.io/jobset-name" },
  pytorchjobs: { path: ["spec", "runPolicy", "suspend"], label: "training.kubeflow.org/job-name" },
};

export async function startKubernetesStub(): Promise<KubernetesStub> {
  const objects = new Map<string, Stored>();
  let version = 100;

  const server = createServer({ cert: TEST_CERTIFICATE, key: TEST_KEY }, (request, response) => {
    void bodyOf(request).then(async (body) => {
      const url = new URL(request.url ?? "/", "https://stub");
      const line = `${request.method} ${url.pathname}`;
      stub.requests.push(line);
      if (stub.hold && !(await stub.hold(line))) {
        request.socket.destroy();
        return;
      }
      const instead = stub.before?.(line);
      const answer = instead
        ? { status: instead.status, body: instead.body ?? statusOf(instead.status, "made up") }
        : answerTo(request, url, body);
      if (stub.lose?.(line)) {
        request.socket.destroy();
        return;
      }
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer.body));
    });
  });

  function answerTo(request: IncomingMessage, url: URL, body: string): Answer {
    if (request.headers.authorization !== `Bearer ${stub.token}`)
      return refuse(401, "Unauthorized");
    const { method = "GET" } = request;
    const parts = url.pathname.split("/").filter((part) => part !== "");
    const rest = parts.slice(parts[0] === "api" ? 2 : 3);
    const namespaced = rest[0] === "namespaces";
    const [resource = "", name, sub] = namespaced ? rest.slice(2) : rest;
    const verbs = { GET: name === undefined ? "list" : "get", PATCH: "patch", POST: "create" };
    const right = `${verbs[method as "GET"]} ${resource}${sub === undefined ? "" : `/${sub}`}`;
    if (!stub.rights.has(right))
      return refuse(
        403,
        `${resource} "${name ?? ""}" is forbidden: User "system:serviceaccount:faultline:faultline" cannot ${right.replace(" ", " resource ")}`,
      );
    if (method === "GET" && name === undefined) return list(url);
    const path = sub === undefined ? url.pathname : url.pathname.slice(0, -sub.length - 1);
    if (method === "POST" && resource === "commands")
      return create(url.pathname, JSON.parse(body) as Json);
    const found = objects.get(path);
    if (!found) return refuse(404, `${resource} "${name}" not found`);
    if (method === "GET") return { status: 200, body: found };
    if (sub === "eviction") return evict(path, found, JSON.parse(body) as Json);
    if (request.headers["content-type"] !== "application/merge-patch+json")
      return refuse(415, "the body of the request was in an unknown format");
    return patch(path, resource, found, JSON.parse(body) as Json);
  }

  function list(url: URL): Answer {
    const node = /^spec\.nodeName=(.+)$/.exec(url.searchParams.get("fieldSelector") ?? "")?.[1];
    const [key, value] = (url.searchParams.get("labelSelector") ?? "").split("=");
    const items = [...objects]
      .filter(([path]) => path.startsWith(`${url.pathname}/`))
      .map(([, object]) => object)
      .filter(({ spec }) => node === undefined || spec["nodeName"] === node)
      .filter(({ metadata }) => !key || metadata.labels?.[key] === value);
    return { status: 200, body: { kind: "List", items } };
  }

  function create(path: string, object: Json): Answer {
    const { name } = object["metadata"] as { name: string };
    if (objects.has(`${path}/${name}`)) return refuse(409, `commands "${name}" already exists`);
    const made = {
      ...object,
      spec: {},
      metadata: { name, uid: randomUUID(), resourceVersion: "1" },
    };
    objects.set(`${path}/${name}`, made);
    return { status: 201, body: made };
  }

  function patch(path: string, resource: string, old: Stored, change: Json): Answer {
    const wanted = (change["metadata"] as { resourceVersion?: string } | undefined)
      ?.resourceVersion;
    if (wanted !== undefined && wanted !== old.metadata.resourceVersion)
      return refuse(
        409,
        `Operation cannot be fulfilled on ${resource} "${old.metadata.name}": the object has been modified; please apply your changes to the latest version and try again`,
      );
    const made = merged(old, change) as Stored;
    const notes = Object.values(made.metadata.annotations ?? {});
    const taints = (made.spec["taints"] ?? []) as { effect?: string }[];
    const isWrong =
      notes.some((value) => typeof value !== "string") ||
      taints.some(({ effect }) => !/^(NoSchedule|PreferNoSchedule|NoExecute)$/.test(effect ?? ""));
    if (isWrong) return refuse(422, `${resource} "${old.metadata.name}" is invalid`);
    made.metadata.resourceVersion = String(++version);
    objects.set(path, made);
    const suspends = SUSPENDS[resource];
    if (suspends && !path.includes("volcano")) suspend(made, suspends.path, suspends.label);
    return { status: 200, body: made };
  }

  /** What the workload's controller does. */
  function suspend(object: Stored, at: readonly string[], label: string): void {
    const { name, namespace } = object.metadata;
    const isSuspended = at.reduce<unknown>((value, key) => (value as Json)?.[key], object) === true;
    const base = `/api/v1/namespaces/${namespace}/pods`;
    const own = [...objects].filter(([, { metadata }]) => metadata.labels?.[label] === name);
    if (isSuspended) for (const [path] of own) objects.delete(path);
    else if (own.length === 0)
      stub.add(`${base}/${name}-new-${++version}`, { labels: { [label]: name } });
  }

  function evict(path: string, pod: Stored, body: Json): Answer {
    const { kind, deleteOptions } = body as {
      kind?: string;
      deleteOptions?: { preconditions?: { uid?: string } };
    };
    if (kind !== "Eviction") return refuse(422, "not an eviction");
    const uid = deleteOptions?.preconditions?.uid;
    if (uid !== undefined && uid !== pod.metadata.uid) return refuse(409, "the UID is another");
    if (stub.protectedPods.has(pod.metadata.name))
      return refuse(429, "Cannot evict pod as it would violate the pod's disruption budget.");
    objects.delete(path);
    return { status: 201, body: { kind: "Status", status: "Success" } };
  }

  const stub: KubernetesStub = {
    url: "",
    token: `token-${randomUUID()}`,
    rights: new Set(RIGHTS),
    requests: [],
    protectedPods: new Set(),
    before: null,
    lose: null,
    hold: null,
    object(path) {
      const found = objects.get(path);
      if (!found) throw new Error(`there is no ${path}`);
      return found;
    },
    add(path, { labels, spec, status, ...rest }) {
      const [, namespace] = /namespaces\/([^/]+)/.exec(path) ?? [];
      const name = path.slice(path.lastIndexOf("/") + 1);
      const object: Stored = {
        ...rest,
        metadata: {
          name,
          ...(namespace === undefined ? {} : { namespace }),
          uid: randomUUID(),
          resourceVersion: String(++version),
          ...(labels ? { labels } : {}),
        },
        spec: (spec ?? {}) as Json,
        status: (status ?? { phase: "Running" }) as Json,
      };
      objects.set(path, object);
      return object;
    },
    pods: () =>
      [...objects].flatMap(([path, { metadata }]) =>
        /\/pods\//.test(path) ? [metadata.name] : [],
      ),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(stub, { url: `https://127.0.0.1:${port}` });
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

function refuse(code: number, message: string): Answer {
  return { status: code, body: statusOf(code, message) };
}

function statusOf(code: number, message: string): Json {
  return { kind: "Status", apiVersion: "v1", status: "Failure", message, code };
}

/** RFC 7386. */
function merged(old: unknown, change: unknown): unknown {
  if (typeof change !== "object" || change === null || Array.isArray(change)) return change;
  const made: Json =
    typeof old === "object" && old !== null && !Array.isArray(old) ? { ...old } : {};
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete made[key];
    else made[key] = merged(made[key], value);
  }
  return made;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}
