/**
 * How the service is to run: a JSON file, words of the command line over it, defaults under it. Whatever is wrong is
 * said at the start, in one line with the place in the file.
 */
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { UserError } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Way } from "../../../ingest/prometheus/prometheus.ts";
import type { KubernetesConfig } from "../actions/drivers/kubernetes.ts";
import type { ActionsConfig } from "../actions/types.ts";
import type { AlertsConfig, SlackAppConfig, WebhookTarget } from "../alerts/types.ts";
import { issueLine } from "./config-errors.ts";
import { CLICKHOUSE, isUrl, type ServeFile, serveSchema, WEEKDAYS } from "./config-schema.ts";
import { isReference, readText, readTokens, secret, type SecretSource } from "./config-secrets.ts";
import type { OidcConfig } from "../access/oidc.ts";
import type { Token } from "../http/authorize.ts";
import { isLoopback } from "../http/known-hosts.ts";

export interface ServeConfig {
  readonly host: string;
  readonly port: number;
  /** Said on the command line only. */
  readonly insecure: boolean;
  /** Where the service keeps what is its own; may not be there yet. */
  readonly dataFolder: string;
  readonly tokens: readonly Token[];
  /** Where people sign in; null where they cannot. */
  readonly oidc: OidcConfig | null;
  /** PEM texts. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  readonly allowedHosts: readonly string[];
  readonly publicRead: boolean;
  readonly nats: NatsConfig | null;
  readonly history: HistoryConfig;
  readonly prometheus: PrometheusConfig | null;
  readonly alerts: AlertsConfig;
  readonly actions: ActionsConfig;
  readonly detection: DetectionConfig;
  readonly validation: ValidationConfig;
  readonly retention: RetentionConfig;
  /** Whether ends of logs are fetched from jobs that ended well, to know what is normal. */
  readonly learning: { readonly logs: boolean };
  /** Paths of files that say where machines hang in the network. */
  readonly fabric: readonly string[];
  readonly jobs: readonly JobConfig[];
  /** Sentences for the start, where something deserves a second look. */
  readonly notes: readonly string[];
}

export interface NatsConfig {
  /** Several with commas. */
  readonly url: string;
  readonly token: string | null;
}

/** clickhouse:// or clickhouses://, or the path of a DuckDB file. */
export type HistoryConfig =
  | { readonly kind: "duckdb"; readonly path: string }
  | { readonly kind: "clickhouse"; readonly url: string };

export interface PrometheusConfig {
  readonly url: string;
  readonly everySeconds: number;
  readonly rangeSeconds: number;
  readonly match: string;
  readonly via: "auto" | Way;
  readonly headers: Readonly<Record<string, string>>;
  /** What labels taught: a file; null for none. */
  readonly priorities: string | null;
}

export interface DetectionConfig {
  /** Nothing goes on for so long though something should: a hang. */
  readonly hangSeconds: number;
  /** A pause that explains itself (a checkpoint, an evaluation) may last so long. */
  readonly pauseSeconds: number;
  /** Nobody has said anything of a job for so long: it is silent. */
  readonly silentSeconds: number;
}

/** Tests of GPUs and links that the service asks for by itself where a search ends in a group. */
export interface ValidationConfig {
  readonly enabled: boolean;
  readonly mostRanks: number;
  /** A job is held up once in this time at most. */
  readonly everySeconds: number;
  /** No rank tests for longer. */
  readonly limitSeconds: number;
}

/** How long and in how much room things are kept; null: without a limit. */
export interface RetentionConfig {
  readonly iterationDays: number;
  /** Resolved incidents, and runs of jobs. The audit trail is never removed. */
  readonly incidentDays: number | null;
  /** Of a history in a file of our own: beyond, the oldest iterations go. */
  readonly historyGB: number | null;
  readonly evidenceDays: number | null;
  readonly evidenceGB: number | null;
}

export interface JobConfig {
  readonly name: string;
  /** Path of its job.json. */
  readonly jobFile: string | null;
  /** Where they differ from those of all jobs. */
  readonly hangSeconds: number | null;
  readonly pauseSeconds: number | null;
}

/** Words of the command line; each goes over what the file says. */
export interface ServeFlags {
  readonly host?: string;
  readonly port?: number;
  readonly data?: string;
  readonly insecure?: boolean;
  readonly publicRead?: boolean;
  readonly allowedHosts?: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly nats?: string;
  readonly history?: string;
  readonly prometheus?: string;
  readonly match?: string;
  readonly alertmanager?: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

export function readServeConfig(
  file: string | null,
  flags: ServeFlags,
  env: Environment,
): ServeConfig {
  const given = file === null ? {} : parseFile(file);
  const where = file ?? "the command line";
  const checked = serveSchema.safeParse(withFlags(given, flags));
  if (!checked.success)
    throw new UserError(`${where}: ${issueLine(serveSchema, checked.error.issues)}`, HINT, 2);
  const source: SecretSource = {
    folder: file === null ? process.cwd() : dirname(resolve(file)),
    env,
    file: where,
  };
  return complete(checked.data, source, flags.insecure ?? false);
}

function parseFile(file: string): Readonly<Record<string, unknown>> {
  const text = readText(file, "the configuration");
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch (error) {
    // Only the place: the parser quotes the text, and there may be secrets in it.
    const why = error instanceof Error ? error.message : "";
    const [, at] = /at position (\d+)/.exec(why) ?? [];
    const line = at === undefined ? "" : `: line ${text.slice(0, Number(at)).split("\n").length}`;
    throw new UserError(`${file}: is not JSON${line}`, HINT, 2);
  }
  if (typeof root !== "object" || root === null || Array.isArray(root))
    throw new UserError(`${file}: must be a JSON object`, HINT, 2);
  return root as Readonly<Record<string, unknown>>;
}

/** Paths of the command line are relative to where it was typed. */
function withFlags(given: Readonly<Record<string, unknown>>, flags: ServeFlags): unknown {
  const { host, port, data, publicRead, allowedHosts, history } = flags;
  const merged: Record<string, unknown> = { ...given };
  const put = (key: string, value: unknown): void => {
    if (value !== undefined) merged[key] = value;
  };
  const putInto = (key: string, fields: Readonly<Record<string, unknown>>): void => {
    const said = Object.entries(fields).filter(([, value]) => value !== undefined);
    if (said.length > 0) merged[key] = { ...sectionOf(given[key]), ...Object.fromEntries(said) };
  };
  put("host", host);
  put("port", port);
  put("data", data === undefined ? undefined : resolve(data));
  put("publicRead", publicRead);
  put("allowedHosts", allowedHosts);
  const isPath = history !== undefined && !isUrl(history, CLICKHOUSE);
  put("history", isPath ? resolve(history) : history);
  const absolute = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(path);
  putInto("tls", { cert: absolute(flags.tlsCert), key: absolute(flags.tlsKey) });
  putInto("nats", { url: flags.nats });
  putInto("prometheus", { url: flags.prometheus, match: flags.match });
  putInto("alerts", { alertmanager: flags.alertmanager });
  return merged;
}

function sectionOf(value: unknown): object {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function complete(said: ServeFile, source: SecretSource, insecure: boolean): ServeConfig {
  const { host, port, publicRead, detection, validation, retention, learning } = said;
  const at = (path: string): string => resolve(source.folder, path);
  const dataFolder = said.data === undefined ? defaultData(source.env) : at(said.data);
  const plain = said.tokens.filter((token) => token.plain).map(({ name }) => name);
  return {
    host,
    port,
    insecure,
    dataFolder,
    tokens: readTokens(said.tokens, source),
    oidc: said.oidc ? oidcOf(said.oidc, source) : null,
    tls: said.tls
      ? {
          cert: readText(at(said.tls.cert), `${source.file}: tls.cert`),
          key: readText(at(said.tls.key), `${source.file}: tls.key`),
        }
      : null,
    // Other machines call this one by its name.
    allowedHosts: said.allowedHosts ?? (isLoopback(host) ? [] : [hostname()]),
    publicRead,
    nats: said.nats ? natsOf(said.nats, source) : null,
    history: historyOf(said.history, dataFolder, source),
    prometheus: said.prometheus ? prometheusOf(said.prometheus, source) : null,
    alerts: alertsOf(said.alerts, source),
    actions: actionsOf(said.actions, source),
    detection,
    validation,
    retention,
    learning,
    fabric: said.fabric.map(at),
    jobs: said.jobs.map(({ name, jobFile, hangSeconds = null, pauseSeconds = null }) => ({
      name,
      jobFile: jobFile === undefined ? null : at(jobFile),
      hangSeconds,
      pauseSeconds,
    })),
    notes: plain.map((name) => `the token "${name}" is in plain text in ${source.file}`),
  };
}

export function defaultData(env: Environment): string {
  const { XDG_DATA_HOME: data = "", HOME: home = "" } = env;
  // The specification says that relative ones are to be ignored.
  if (data.startsWith("/")) return join(data, "faultline");
  if (home !== "") return join(home, ".local", "share", "faultline");
  throw new UserError("there is no home folder for the data", "give --data FOLDER", 2);
}

const HINT = "docs/guides/serve.md has an example with every key";
const NATS = ["nats", "tls", "ws", "wss"];

function natsOf(nats: NonNullable<ServeFile["nats"]>, source: SecretSource): NatsConfig {
  const wrong = (why: string): never => {
    throw new UserError(`${source.file}: nats.${why}`, HINT, 2);
  };
  const urls = nats.url.split(",").map((url) => url.trim());
  if (!urls.every((url) => isUrl(url, NATS)))
    wrong("url: must be nats://HOST:PORT, several with commas");
  const { token = env(source, "FAULTLINE_NATS_TOKEN") } = nats;
  if (nats.token !== undefined && !isReference(nats.token) && !nats.plain)
    wrong('token: must be file:… or env:…; a token in plain text needs "plain": true');
  return {
    url: urls.join(","),
    token: token === undefined ? null : secret(token, "nats.token", source),
  };
}

function env(source: SecretSource, name: string): string | undefined {
  return source.env[name] ? `env:${name}` : undefined;
}

function oidcOf(said: NonNullable<ServeFile["oidc"]>, source: SecretSource): OidcConfig {
  const { clientSecret, redirectUrl, groups, sessionHours, ...rest } = said;
  return {
    ...rest,
    request: [...new Set(["openid", ...said.request])],
    clientSecret:
      clientSecret === undefined ? null : secret(clientSecret, "oidc.clientSecret", source),
    redirectUrl: redirectUrl === undefined ? null : webUrl(redirectUrl, "oidc.redirectUrl", source),
    groups: groups.map(({ jobs = null, ...group }) => ({ ...group, jobs })),
    sessionSeconds: 3600 * sessionHours,
  };
}

function historyOf(said: string | undefined, folder: string, source: SecretSource): HistoryConfig {
  const text =
    said === undefined ? join(folder, "history.duckdb") : secret(said, "history", source);
  if (isUrl(text, CLICKHOUSE)) return { kind: "clickhouse", url: text };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
    throw new UserError(
      `${source.file}: history: must be a path, or clickhouse://HOST:PORT/DATABASE`,
      HINT,
      2,
    );
  return { kind: "duckdb", path: text === ":memory:" ? text : resolve(source.folder, text) };
}

function prometheusOf(
  said: NonNullable<ServeFile["prometheus"]>,
  source: SecretSource,
): PrometheusConfig {
  const { url, every, range, match, via, headers, priorities } = said;
  return {
    url: webUrl(url, "prometheus.url", source),
    everySeconds: every,
    rangeSeconds: range,
    match,
    via,
    headers: secretValues(headers, "prometheus.headers", source),
    priorities: priorities === undefined ? null : resolve(source.folder, priorities),
  };
}

function actionsOf(said: ServeFile["actions"], source: SecretSource): ActionsConfig {
  const hooks = said.hooks.map((hook, i) => {
    if (hook.webhook === undefined) return hook;
    return { ...hook, webhook: webUrl(hook.webhook, `actions.hooks[${i}].webhook`, source) };
  });
  const { kubernetes, slurm, webhook } = said.drivers;
  const drivers = {
    ...(kubernetes ? { kubernetes: kubernetesOf(kubernetes, source) } : {}),
    ...(slurm ? { slurm } : {}),
    ...(webhook
      ? {
          webhook: {
            ...webhook,
            url: webUrl(webhook.url, "actions.drivers.webhook.url", source),
            headers: secretValues(webhook.headers, "actions.drivers.webhook.headers", source),
          },
        }
      : {}),
  };
  return { ...said, hooks, drivers };
}

/** Where Kubernetes puts what a pod needs to ask its API server. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

function kubernetesOf(
  said: NonNullable<ServeFile["actions"]["drivers"]["kubernetes"]>,
  source: SecretSource,
): KubernetesConfig {
  const where = "actions.drivers.kubernetes";
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = source.env;
  const inside = host ? `https://${host.includes(":") ? `[${host}]` : host}:${port}` : undefined;
  const server =
    said.server === undefined ? inside : secret(said.server, `${where}.server`, source);
  if (server === undefined || !isUrl(server, ["https"]))
    throw new UserError(
      `${source.file}: ${where}: the API server is not known: this is no pod, and there is no server`,
      'give "server": "https://HOST:PORT"',
      2,
    );
  const { token = `file:${SERVICE_ACCOUNT}/token` } = said;
  const ca = said.ca ?? (said.server === undefined ? `${SERVICE_ACCOUNT}/ca.crt` : null);
  const { do: words, taint = null, pods = null, workload = null, timeoutSeconds } = said;
  return {
    do: words,
    access: {
      server,
      // Not read now: the cluster replaces it every hour.
      token: token.startsWith("file:")
        ? { file: resolve(source.folder, token.slice("file:".length)) }
        : { text: secret(token, `${where}.token`, source) },
      ca: ca === null ? null : resolve(source.folder, ca),
    },
    taint,
    pods,
    workload,
    timeoutSeconds,
  };
}

function alertsOf(said: ServeFile["alerts"], source: SecretSource): AlertsConfig {
  return {
    ...said,
    alertmanager: said.alertmanager.map((url, i) =>
      webUrl(url, `alerts.alertmanager[${i}]`, source),
    ),
    webhooks: said.webhooks.map(({ url, header }, i): WebhookTarget => {
      const where = `alerts.webhooks[${i}]`;
      const target = { url: webUrl(url, `${where}.url`, source) };
      if (header === undefined) return target;
      if (typeof header !== "string")
        return { ...target, header: secretValues(header, `${where}.header`, source) };
      const line = secret(header, `${where}.header`, source);
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+:/.test(line))
        throw new UserError(`${source.file}: ${where}.header: must be "Name: value"`, HINT, 2);
      return { ...target, header: line };
    }),
    slack: said.slack.map(({ url }, i) => ({
      url: webUrl(url, `alerts.slack[${i}].url`, source),
    })),
    slackApp: said.slackApp && slackAppOf(said.slackApp, source),
    externalUrl:
      said.externalUrl === null ? null : webUrl(said.externalUrl, "alerts.externalUrl", source),
    digest: said.digest && { ...said.digest, day: WEEKDAYS.indexOf(said.digest.day) },
  };
}

function slackAppOf(
  { signingSecret, people }: NonNullable<ServeFile["alerts"]["slackApp"]>,
  source: SecretSource,
): SlackAppConfig {
  return {
    signingSecret: secret(signingSecret, "alerts.slackApp.signingSecret", source),
    people: people.map(({ team, user = null, jobs = null }) => ({ team, user, jobs })),
  };
}

function secretValues(
  values: Readonly<Record<string, string>>,
  where: string,
  source: SecretSource,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      secret(value, `${where}.${harmless(name)}`, source),
    ]),
  );
}

/** What was found in a file or in the environment is checked, too, and not shown: it may be a secret. */
function webUrl(text: string, where: string, source: SecretSource): string {
  const url = secret(text, where, source);
  if (isUrl(url, ["http", "https"])) return url;
  throw new UserError(`${source.file}: ${where}: it does not refer to an http:// URL`, HINT, 2);
}
