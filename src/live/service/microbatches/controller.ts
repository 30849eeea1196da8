/**
 * `faultline plan serve`: nothing of the service but the part that replicas ask for their micro-batches before each
 * iteration (Greyhound §5.2, "Implementation"), with one shape for all jobs.
 */
import { createHash } from "node:crypto";
import { UserError } from "../../../base/errors.ts";
import { makeAuthorizer } from "../http/authorize.ts";
import { isLoopback } from "../http/known-hosts.ts";
import { serveShares } from "../http/serve-http.ts";
import { evenAllocation } from "./allocation.ts";
import { type JobChange, type Jobs, makeJobs } from "./jobs.ts";
import { answerJob, MOST_GROUPS } from "./requests.ts";

export interface ControllerOptions {
  /** Replicas of the model, and micro-batches of the global batch. */
  readonly groups: number;
  readonly total: number;
  readonly multipleOf?: number;
  /** See JobShape. */
  readonly bubble?: number;
  /** 0: any free one. */
  readonly port: number;
  /** Loopback by default. */
  readonly host?: string;
  /** Where given, requests must carry it: `Authorization: Bearer …`. */
  readonly token?: string;
  /** A request has to be there within this time, and a connection is silent no longer; 10 s by default. */
  readonly patienceMs?: number;
}

export interface ControllerEnv {
  nowMs(this: void): number;
  onChange?(change: JobChange): void;
}

export interface Controller {
  readonly url: string;
  readonly jobs: Jobs;
  stop(): Promise<void>;
}

const PATIENCE_MS = 10_000;
/** What reports of MOST_GROUPS replicas take. */
const BODY_BYTES = 1 << 20;
const CONNECTIONS = 512;

export async function startController(
  options: ControllerOptions,
  { nowMs, ...env }: ControllerEnv,
): Promise<Controller> {
  const { groups, total, multipleOf = 1, bubble = 0, host = "127.0.0.1", port, token } = options;
  if (!(groups >= 1 && groups <= MOST_GROUPS))
    throw new UserError(`${groups} replicas are not possible`, `give 1 to ${MOST_GROUPS}`, 2);
  if (!(bubble >= 0 && bubble < Infinity))
    throw new UserError(`a bubble of ${bubble} is not possible`, "give (stages − 1) / chunks", 2);
  const shape = { groups, total, multipleOf, bubble };
  evenAllocation(shape); // Throws where the shape is not possible.
  const jobs = makeJobs({ nowMs, onChange: (change) => env.onChange?.(change) });
  const { patienceMs = PATIENCE_MS } = options;
  const auth = makeAuthorizer({
    host,
    tokens: token === undefined ? [] : [tokenOf(token)],
    publicRead: false,
    insecure: true,
    allowedHosts: [],
    tls: false,
    nowMs,
  });
  const http = await serveShares({
    ask: (job, question) => Promise.resolve(answerJob(jobs, job, question, shape)),
    // Beyond loopback it is open to whoever has the token, under any name.
    auth: { ...auth, knowsHost: (request) => !isLoopback(host) || auth.knowsHost(request) },
    host,
    port,
    nowMs,
    limits: {
      bodyBytes: BODY_BYTES,
      connections: CONNECTIONS,
      headersMs: patienceMs,
      bodyMs: patienceMs,
      idleMs: patienceMs,
    },
  });
  return { url: http.url, jobs, stop: () => http.close() };
}

function tokenOf(token: string): Parameters<typeof makeAuthorizer>[0]["tokens"][number] {
  const sha256 = createHash("sha256").update(token).digest("hex");
  return { name: "controller", scopes: ["agent", "read"], agent: null, jobs: null, sha256 };
}
