/** Who is told of incidents, and what telling needs from the service. */
import type { Incident } from "../../../model/incident.ts";

export interface AlertsConfig {
  /** Base URLs of Alertmanagers, each told separately, as their clusters want it. */
  readonly alertmanager: readonly string[];
  readonly webhooks: readonly WebhookTarget[];
  readonly slack: readonly { readonly url: string }[];
  /** Whose buttons in Slack count; null or absent: messages have none. */
  readonly slackApp?: SlackAppConfig | null | undefined;
  /** Where people reach the service: links in alerts begin with it. */
  readonly externalUrl?: string | null | undefined;
  /** Link for people who are woken up; {cause}, {kind} and {job} are put in. */
  readonly runbookUrl?: string | null | undefined;
  /** How often an open alert is said again to Alertmanager; default 60. */
  readonly repeatSeconds?: number | undefined;
  /** How long an incident has to be over before that is said; default 30. Doubles with every relapse. */
  readonly holdSeconds?: number | undefined;
  /** When webhooks and Slack get the week in figures; null or absent: never. */
  readonly digest?: DigestTime | null | undefined;
}

/** An app of the site's Slack workspace, which sends clicks on buttons to us. */
export interface SlackAppConfig {
  readonly signingSecret: string;
  readonly people: readonly {
    /** The workspace's id: T…, with Enterprise E…. */
    readonly team: string;
    /** U…; null for everybody of the workspace. */
    readonly user: string | null;
    /** Patterns of names; null for all jobs. */
    readonly jobs: readonly string[] | null;
  }[];
}

/** In UTC. */
export interface DigestTime {
  /** 0 is Sunday. */
  readonly day: number;
  readonly hour: number;
}

export interface WebhookTarget {
  readonly url: string;
  /** "Authorization: Bearer …", or several by name. */
  readonly header?: string | Readonly<Record<string, string>> | undefined;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface AlertsEnv {
  nowMs(this: void): number;
  readonly fetch: Fetch;
  /** Calls once after so many milliseconds; returns how to cancel. */
  setTimer(this: void, afterMs: number, run: () => void): () => void;
  /** One line for people, harmless and without secrets. */
  log(this: void, line: string): void;
  /**
   * Keeps what was told, safe from kill -9 when it resolves. LeaseLost: another service tells now, and we say no more.
   * Other failures do not silence alerts: better told twice than not at all.
   */
  remember(this: void, document: unknown): Promise<void>;
  /** The document of last time, as it was remembered; null or undefined at the first start. */
  readonly recalled: unknown;
  /** Why people need not hear of an incident now; null or absent: they must. */
  hush?(this: void, incident: Incident): Hush | null;
  readonly timings?: Partial<AlertTimings>;
}

/** Acknowledged: it is said, and not repeated. Muted: it is not said for as long as that holds. */
export interface Hush {
  readonly how: "acknowledged" | "muted";
  readonly who: string;
  readonly why: string;
}

export interface AlertTimings {
  /** A request that takes longer is given up. */
  readonly requestMs: number;
  readonly firstRetryMs: number;
  readonly mostRetryMs: number;
  /** Attempts at one message before it is given up. */
  readonly tries: number;
  /** Of these at most so many may end without an answer: the receiver may have got it. */
  readonly silentTries: number;
  /** How long telling waits for `remember`. */
  readonly rememberMs: number;
}

/** Twenty tries with these pauses take about an hour. */
export const TIMINGS: AlertTimings = {
  requestMs: 10_000,
  firstRetryMs: 1000,
  mostRetryMs: 300_000,
  tries: 20,
  silentTries: 3,
  rememberMs: 5000,
};

/** For one job or for all: incidents are told apart by their ids. */
export interface Alerts {
  /**
   * At every change of an incident; and after a start with the latest record of every incident that is open or was
   * until lately, so that what could not be told before the restart is told now. What was told is not told again.
   */
  notify(incident: Incident): void;
  /** Whether the incident is acknowledged or muted may have changed. */
  hushed(incident: Incident): void;
  /** Ends timers and requests; what was not told yet is told after the next start. */
  close(): Promise<void>;
  /** Messages that were taken: one for each channel and state, repetitions not counted. */
  readonly sent: number;
  /** Attempts that failed. */
  readonly failures: number;
  /** Messages that wait for a receiver. */
  readonly pending: number;
}
