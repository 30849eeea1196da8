/** The configuration file of the service: what may stand in it. Every key is optional. */
import { z } from "zod";
import { NAME } from "../../wire/messages.ts";
import { WORKLOAD_KINDS } from "../actions/drivers/kubernetes-restart.ts";
import { isPlainHostName } from "../actions/hooks.ts";
import { SCOPES } from "../access/grants.ts";
import { isLoopback } from "../http/known-hosts.ts";

export const PORT = 7077;
export const CLICKHOUSE = ["clickhouse", "clickhouses"];

const word = z.string().min(1).max(256);
const path = z.string().min(1).max(4096);
const seconds = z.number().positive().max(31_536_000);
const days = z.number().min(1).max(36_500);
const gigabytes = z.number().min(0.001).max(1_000_000);
const named = (what: string): z.ZodString =>
  z.string().regex(NAME, { error: `must be ${what}: letters, digits, - and _, 64 at most` });

/** A URL of these kinds, or where it is found: file:… or env:…, for some are secrets themselves. */
const url = (...schemes: readonly string[]): z.ZodString =>
  z
    .string()
    .max(4096)
    .refine((text) => isUrl(text, schemes) || /^(file|env):./.test(text), {
      error: `must be a URL with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`,
    });
const web = url("http", "https");

export function isUrl(text: string, schemes: readonly string[]): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, host } = new URL(text);
  return host !== "" && schemes.includes(protocol.slice(0, -1));
}

function isOnLoopback(text: string): boolean {
  return isLoopback(new URL(text).hostname);
}

const DURATION = 'must be a number of seconds, or a time such as "30s" or "5m", a day at most';
/** "90s", "15m", "1h", or a number of seconds. */
const duration = z
  .union([z.number(), z.string()], { error: DURATION })
  .transform((value, context) => {
    const [, digits, unit] = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(String(value)) ?? [];
    const found = Number(digits) * { s: 1, m: 60, h: 3600 }[(unit ?? "s") as "s" | "m" | "h"];
    if (found > 0 && found <= 86_400) return found;
    context.issues.push({ code: "custom", message: DURATION, input: value });
    return z.NEVER;
  });
const jobPatterns = z
  .array(
    z.string().regex(/^[A-Za-z0-9._*?-]{1,64}$/, { error: "must be a job's name, with * and ?" }),
  )
  .min(1)
  .max(256);
const token = z.strictObject({
  name: named("a name"),
  scopes: z.array(z.enum(SCOPES)).min(1),
  /** sha256:HEX, file:PATH or env:NAME; the token itself only with `plain`. */
  token: z.string().min(1).max(4096),
  plain: z.boolean().default(false),
  agent: named("an agent's name").optional(),
  jobs: jobPatterns.optional(),
});

const issuer = z
  .string()
  .max(1024)
  .refine((text) => isUrl(text, ["https"]) || (isUrl(text, ["http"]) && isOnLoopback(text)), {
    error: "must be a URL with https:// (http:// on this machine only)",
  });
const oidc = z.strictObject({
  issuer,
  clientId: word,
  clientSecret: z
    .string()
    .max(4096)
    .regex(/^(file|env):./, { error: "must be file:… or env:…" })
    .optional(),
  redirectUrl: url("https", "http").optional(),
  request: z.array(word).min(1).max(32).default(["openid", "profile", "email"]),
  groupsClaim: word.default("groups"),
  nameClaim: word.default("email"),
  groups: z
    .array(
      z.strictObject({
        group: word,
        scopes: z.array(z.enum(["read", "act"])).min(1),
        jobs: jobPatterns.optional(),
      }),
    )
    .min(1)
    .max(1000),
  sessionHours: z.number().positive().max(720).default(12),
});

const header = z.union([z.string().max(8192), z.record(word, z.string().max(8192))], {
  error: 'must be "Name: value", or an object of names and values',
});

const hook = z
  .strictObject({
    do: word,
    machine: word.optional(),
    command: z.array(z.string().max(4096)).min(1).max(256).optional(),
    webhook: web.optional(),
    timeoutSeconds: seconds.max(3600).default(60),
    environment: z
      .array(z.string().regex(/^\w{1,256}$/))
      .max(64)
      .default([]),
  })
  .refine(({ command, webhook }) => (command === undefined) !== (webhook === undefined), {
    error: "needs either command or webhook",
  });

export const WEEKDAYS = [
  "sunday",
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
] as const;
const slackId = (what: string, letters: string): z.ZodString =>
  z
    .string()
    .regex(new RegExp(`^[${letters}][A-Z0-9]{1,31}$`), { error: `must be the id of ${what}` });
const slackApp = z.strictObject({
  signingSecret: z
    .string()
    .max(4096)
    .regex(/^(file|env):./, { error: "must be file:… or env:…" }),
  people: z
    .array(
      z.strictObject({
        team: slackId("a Slack workspace, T… (with Enterprise the organization's, E…)", "TE"),
        user: slackId("a Slack user, U… or W…", "UW").optional(),
        jobs: jobPatterns.optional(),
      }),
    )
    .min(1)
    .max(1000),
});
const alerts = z
  .strictObject({
    alertmanager: z.array(web).max(16).default([]),
    webhooks: z
      .array(z.strictObject({ url: web, header: header.optional() }))
      .max(16)
      .default([]),
    slack: z
      .array(z.strictObject({ url: web }))
      .max(16)
      .default([]),
    slackApp: z.nullable(slackApp).default(null),
    externalUrl: z.nullable(web).default(null),
    runbookUrl: z.nullable(z.string().max(4096)).default(null),
    repeatSeconds: seconds.min(1).max(86_400).default(60),
    holdSeconds: z.number().min(0).max(3600).default(30),
    digest: z
      .nullable(
        z.strictObject({
          day: z.enum(WEEKDAYS).default("monday"),
          hour: z.int().min(0).max(23).default(8),
        }),
      )
      .default(null),
  })
  .refine(({ digest, webhooks, slack }) => digest === null || webhooks.length + slack.length > 0, {
    path: ["digest"],
    error: "nobody would get it: add a receiver to alerts.webhooks or alerts.slack",
  })
  .refine((one) => one.slackApp === null || one.slack.length > 0, {
    path: ["slackApp"],
    error: "no message would have its buttons: add the app's webhook to alerts.slack",
  });

const driverSeconds = seconds.max(600).default(60);
/** The words of actions that a driver does, of those that it can do. */
const does = <T extends string>(...words: readonly [T, ...T[]]) =>
  z.array(z.enum(words)).min(1).max(words.length);
const machineWords = ["cordon-node", "exclude-node", "replace-machine", "restart-job"] as const;
/** Names of Kubernetes' objects: RFC 1123. */
const kubernetesName = z
  .string()
  .regex(/^[a-z0-9{]([a-z0-9.{}-]{0,251}[a-z0-9}])?$/, { error: "must be a name of Kubernetes" });
const kubernetes = z
  .strictObject({
    do: does(...machineWords).default(["cordon-node"]),
    server: url("https").optional(),
    /** file:PATH is read again for each request. */
    token: z.string().min(1).max(8192).optional(),
    ca: path.optional(),
    taint: z
      .strictObject({
        key: word,
        value: z.string().max(63).optional(),
        effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).default("NoSchedule"),
      })
      .optional(),
    pods: z.strictObject({ namespace: kubernetesName, selector: word }).optional(),
    workload: z
      .strictObject({
        kind: z.enum(WORKLOAD_KINDS),
        namespace: kubernetesName,
        name: kubernetesName.default("{job}"),
      })
      .optional(),
    timeoutSeconds: driverSeconds,
  })
  .refine((one) => !one.do.includes("replace-machine") || one.pods !== undefined, {
    error: "replace-machine evicts the job's pods: it needs pods",
  })
  .refine((one) => !one.do.includes("restart-job") || one.workload !== undefined, {
    error: "restart-job needs workload",
  });
const slurm = z.strictObject({
  do: does(...machineWords).default(["exclude-node"]),
  scontrol: path.default("scontrol"),
  squeue: path.default("squeue"),
  environment: z
    .array(z.string().regex(/^\w{1,256}$/))
    .max(64)
    .default([]),
  timeoutSeconds: driverSeconds,
});
const webhook = z.strictObject({
  do: z.array(word).min(1).max(64),
  url: web,
  headers: z.record(word, z.string().max(8192)).default({}),
  canUndo: z.boolean().default(false),
  timeoutSeconds: driverSeconds,
});

const actions = z.strictObject({
  enabled: z.boolean().default(true),
  dryRun: z.boolean().default(true),
  approval: z.enum(["required", "automatic"]).default("required"),
  hooks: z.array(hook).max(64).default([]),
  drivers: z
    .strictObject({
      kubernetes: kubernetes.optional(),
      slurm: slurm.optional(),
      webhook: webhook.optional(),
    })
    .prefault({}),
  microBatches: z.enum(["approval", "automatic"]).nullable().default(null),
  spares: z
    .array(z.string().refine(isPlainHostName, { error: "must be a machine's name" }))
    .max(10_000)
    .default([]),
  leastConfidence: z.number().min(0).max(1).default(0.8),
  leastMachineConfidence: z.number().min(0).max(1).default(0.5),
  mostMachinesPerDay: z.int().min(0).max(10_000).default(2),
  leastMachines: z.number().min(0).max(1_000_000).default(0.5),
  mostActionsPerHour: z.int().min(0).max(100_000).default(60),
  mostActionsPerHourOfJob: z.int().min(0).max(100_000).default(12),
});

const prometheus = z.strictObject({
  url: web,
  every: duration.default(60),
  range: duration.default(900),
  /** Label matchers that select the machines: 'cluster="a"'. */
  match: z.string().max(4096).default(""),
  via: z.enum(["auto", "remote-read", "raw", "query-range", "export"]).default("auto"),
  headers: z.record(word, z.string().max(8192)).default({}),
  /** From faultline machines train --labels. */
  priorities: path.optional(),
});

export const serveSchema = z.strictObject({
  host: word.default("127.0.0.1"),
  port: z.int().min(0).max(65_535).default(PORT),
  data: path.optional(),
  tokens: z.array(token).max(10_000).default([]),
  oidc: oidc.optional(),
  tls: z.strictObject({ cert: path, key: path }).optional(),
  allowedHosts: z
    .array(z.string().regex(/^[A-Za-z0-9._:[\]-]{1,253}$/, { error: "must be a host's name" }))
    .max(256)
    .optional(),
  publicRead: z.boolean().default(false),
  nats: z
    .strictObject({
      url: z.string().min(1).max(4096),
      token: z.string().min(1).max(4096).optional(),
      plain: z.boolean().default(false),
    })
    .optional(),
  history: path.optional(),
  prometheus: prometheus.optional(),
  alerts: alerts.prefault({}),
  actions: actions.prefault({}),
  detection: z
    .strictObject({
      hangSeconds: seconds.min(1).max(86_400).default(30),
      pauseSeconds: seconds.min(1).max(86_400).default(900),
      silentSeconds: seconds.min(1).max(86_400).default(60),
    })
    .prefault({}),
  validation: z
    .strictObject({
      enabled: z.boolean().default(true),
      mostRanks: z.int().min(2).max(4096).default(256),
      everySeconds: seconds.min(60).default(1800),
      limitSeconds: seconds.min(1).max(120).default(10),
    })
    .prefault({}),
  retention: z
    .strictObject({
      iterationDays: days.default(90),
      incidentDays: z.nullable(days).default(null),
      historyGB: z.nullable(gigabytes).default(null),
      evidenceDays: z.nullable(days).default(null),
      evidenceGB: z.nullable(gigabytes).default(null),
    })
    .prefault({}),
  learning: z.strictObject({ logs: z.boolean().default(true) }).prefault({}),
  fabric: z.array(path).max(256).default([]),
  jobs: z
    .array(
      z.strictObject({
        name: named("a job's name"),
        jobFile: path.optional(),
        hangSeconds: seconds.min(1).max(86_400).optional(),
        pauseSeconds: seconds.min(1).max(86_400).optional(),
      }),
    )
    .max(10_000)
    .default([]),
});

export type ServeFile = z.output<typeof serveSchema>;
