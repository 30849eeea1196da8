/** Sections of the configuration, with what they name in files and in the environment. */
import { join, resolve } from "node:path";
import { UserError } from "../../base/errors.ts";
import { harmless } from "../../base/text.ts";
import type { ActionsConfig } from "./actions/types.ts";
import type { AlertsConfig, WebhookTarget } from "./alerts/types.ts";
import type { HistoryConfig, NatsConfig, PrometheusConfig } from "./config.ts";
import { CLICKHOUSE, isUrl, type ServeFile } from "./config-schema.ts";
import { isReference, secret, type SecretSource } from "./config-secrets.ts";

export const HINT = "docs/guides/serve.md has an example with every key";
const NATS = ["nats", "tls", "ws", "wss"];

export function natsOf(nats: NonNullable<ServeFile["nats"]>, source: SecretSource): NatsConfig {
  const wrong = (why: string): never => {
    throw new UserError(`${source.file}: nats.${why}`, HINT, 2);
  };
  const urls = nats.url.split(",").map((url) => url.trim());
  if (!urls.every((url) => isUrl(url, NATS)))
    wrong("url: must be nats://HOST:PORT, several with commas");
  const { token = env(source, "FAULTLINE_NATS_TOKEN") } = nats;
  if (nats.token !== undefined && !isReference(nats.token) && !nats.plain)
    wrong('token: must be file:… or env:…; a plain token needs "plain": true');
  return {
    url: urls.join(","),
    token: token === undefined ? null : secret(token, "nats.token", source),
  };
}

function env(source: SecretSource, name: string): string | undefined {
  return source.env[name] ? `env:${name}` : undefined;
}

export function historyOf(
  said: string | undefined,
  folder: string,
  source: SecretSource,
): HistoryConfig {
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

export function prometheusOf(
  said: NonNullable<ServeFile["prometheus"]>,
  source: SecretSource,
): PrometheusConfig {
  const { url, every, range, match, via, headers } = said;
  return {
    url: webUrl(url, "prometheus.url", source),
    everySeconds: every,
    rangeSeconds: range,
    match,
    via,
    headers: secretValues(headers, "prometheus.headers", source),
  };
}

export function actionsOf(said: ServeFile["actions"], source: SecretSource): ActionsConfig {
  const hooks = said.hooks.map((hook, i) => {
    if (hook.webhook === undefined) return hook;
    return { ...hook, webhook: webUrl(hook.webhook, `actions.hooks[${i}].webhook`, source) };
  });
  return { ...said, hooks };
}

export function alertsOf(said: ServeFile["alerts"], source: SecretSource): AlertsConfig {
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
    externalUrl:
      said.externalUrl === null ? null : webUrl(said.externalUrl, "alerts.externalUrl", source),
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
  throw new UserError(`${source.file}: ${where}: what it names is no http:// URL`, HINT, 2);
}
