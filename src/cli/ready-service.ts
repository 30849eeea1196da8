/**
 * What a configuration needs before a service of it can be opened: read and checked the same way by `serve`, which does
 * not start where something is wrong, and by `doctor`, which says all that is.
 */
import { readFile } from "node:fs/promises";
import { errorText, UserError } from "../base/errors.ts";
import { type JobFile, readJobFile } from "../ingest/job-file.ts";
import { connect } from "../ingest/prometheus/prometheus.ts";
import { SignIn } from "../live/service/access/sign-in.ts";
import type { ServeConfig } from "../live/service/config/config.ts";
import {
  type AccessRules,
  type Authorizer,
  makeAuthorizer,
} from "../live/service/http/authorize.ts";
import { checkCertificate } from "../live/service/http/serve-http.ts";
import type { ServiceOptions } from "../live/service/service.ts";
import { refuseHalfRestored } from "../live/service/store/backup-folder.ts";
import { readSiteMetrics } from "../methods/machines/site-metrics-file.ts";
import { readFabric } from "../pipeline/fabric.ts";

export interface Ready extends Pick<ServiceOptions, "fabric" | "machines"> {
  readonly signIn: SignIn;
  readonly auth: Authorizer;
  readonly jobFiles: ReadonlyMap<string, JobFile>;
}

/** `faults`: why it cannot be opened; `ready` is null where there are some. Nothing is written, and nobody is asked. */
export async function readyService(
  config: ServeConfig,
): Promise<{ readonly ready: Ready | null; readonly faults: readonly UserError[] }> {
  const faults: UserError[] = [];
  const tried = async <T>(read: () => T | Promise<T>): Promise<T | null> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      faults.push(error);
      return null;
    }
  };
  const access = await tried(() => accessOf(config));
  await tried(() => config.tls && checkCertificate(config.tls));
  const jobFiles = new Map<string, JobFile>();
  for (const { name, jobFile } of config.jobs) {
    const read = jobFile === null ? null : await tried(() => readJobFile(jobFile));
    if (read) jobFiles.set(name, read);
  }
  const env = { signal: new AbortController().signal, progress: () => undefined };
  const fabric = await tried(() => readFabric(config.fabric, env));
  const machines = await tried(() => machinesOf(config));
  await tried(() => refuseHalfRestored(config.dataFolder));
  const isReady = faults.length === 0 && access !== null && fabric !== null;
  return { ready: isReady ? { ...access, jobFiles, fabric, machines } : null, faults };
}

export function rulesOf({ tokens, publicRead, allowedHosts, oidc }: ServeConfig): AccessRules {
  return { tokens, publicRead, allowedHosts, groups: oidc?.groups ?? null };
}

function accessOf(config: ServeConfig): Pick<Ready, "signIn" | "auth"> {
  const isTls = config.tls !== null;
  const signIn = new SignIn({ oidc: config.oidc, isTls, nowMs: Date.now });
  const auth = makeAuthorizer({
    ...config,
    ...rulesOf(config),
    tls: isTls,
    personOf: ({ headers }) => signIn.personOf(headers),
    nowMs: Date.now,
  });
  return { signIn, auth };
}

async function machinesOf({ prometheus }: ServeConfig): Promise<ServiceOptions["machines"]> {
  if (!prometheus) return null;
  const { url, headers, match, via, everySeconds, rangeSeconds, priorities } = prometheus;
  const { signal } = new AbortController();
  const text =
    priorities === null
      ? null
      : await readFile(priorities, "utf8").catch((error: unknown) => {
          throw new UserError(`prometheus.priorities: ${errorText(error)}`, "check the path", 2);
        });
  return {
    connect: () => connect({ url, headers, signal }),
    match,
    via,
    rangeS: rangeSeconds,
    site: text === null ? null : readSiteMetrics(text, priorities ?? ""),
    everyMs: 1000 * everySeconds,
  };
}
