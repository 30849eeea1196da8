/** Incidents told to people: Alertmanagers, webhooks, Slack. Each state once, whoever restarts in between. */
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import { makeAlertmanagerChannel } from "./alertmanager.ts";
import { makeNotifier } from "./notifier.ts";
import type { Channel, ChannelMeans } from "./channel.ts";
import { makeLedger, type LedgerEntry } from "./ledger.ts";
import {
  type Alerts,
  type AlertsConfig,
  type AlertsEnv,
  TIMINGS,
  type WebhookTarget,
} from "./types.ts";
import { slackMessage } from "../slack/message.ts";
import { bounded, webhookBody } from "./alert-text.ts";

const DEFAULT_HOLD_SECONDS = 30;
const MOST_HOLD_MS = 600_000;
/** Requests on their way may end by themselves when the service stops, for so long. */
const CLOSE_MS = 2000;

export function makeAlerts(config: AlertsConfig, env: AlertsEnv): Alerts {
  const timings = { ...TIMINGS, ...env.timings };
  const ledger = makeLedger(env, timings.rememberMs);
  const counters = { sent: 0, failures: 0 };
  const ending = new AbortController();
  const means: ChannelMeans = {
    config,
    env,
    timings,
    ledger,
    counters,
    closing: ending.signal,
  };
  const channels: readonly Channel[] = channelsOf(config, means);
  const keys = channels.map(({ key }) => key);
  /** Incidents that are over, but not long enough to say so: how to stop waiting. */
  const holds = new Map<string, () => void>();
  let isClosed = false;

  function follow(incident: Incident): void {
    const { id, state } = incident;
    // A suspicion wakes nobody up.
    if (state === "suspected" || channels.length === 0 || ledger.isLost) return;
    const isOpen = state !== "resolved";
    const order = 2 * Math.max(0, Math.floor(incident.relapses)) + (isOpen ? 0 : 1);
    const known = ledger.get(id);
    if (isOpen && env.hush?.(incident)?.how === "muted") {
      // Told once it is not muted any more: the service brings what is open again and again.
      if (known?.isOpen === true) {
        endHold(id);
        for (const channel of channels) channel.keep?.(known, incident);
      }
      return;
    }
    if (!known) {
      // Nobody was told that it began, so nobody need know that it is over.
      if (isOpen) tell(ledger.add(incident, order, keys), incident);
      return;
    }
    if (incident.revision < known.revision) return;
    known.revision = incident.revision;
    if (known.isOpen) {
      // Over and back within the hold: for people it never ended.
      if (isOpen) {
        endHold(id);
        tell(known, incident);
      } else hold(known, incident, order);
    } else if (isOpen && order > known.order) {
      change(known, true, order);
      known.startsMs = bounded(Math.min(incident.changedMs, env.nowMs()));
      tell(known, incident);
    } else if (!isOpen) tell(known, incident);
  }

  function hold(entry: LedgerEntry, incident: Incident, order: number): void {
    endHold(entry.id);
    const holdMs = Math.max(0, config.holdSeconds ?? DEFAULT_HOLD_SECONDS) * 1000;
    // What comes back again and again has to be quiet for longer each time.
    const waitMs = Math.min(holdMs * 2 ** Math.min(20, Math.floor(order / 2)), MOST_HOLD_MS);
    const nowMs = env.nowMs();
    const leftMs = Math.min(waitMs, Math.max(0, (incident.resolvedMs ?? nowMs) + waitMs - nowMs));
    const cancel = env.setTimer(leftMs, () => {
      holds.delete(entry.id);
      if (isClosed) return;
      change(entry, false, order);
      tell(entry, incident);
    });
    holds.set(entry.id, cancel);
  }

  function endHold(id: string): void {
    holds.get(id)?.();
    holds.delete(id);
  }

  function change(entry: LedgerEntry, isOpen: boolean, order: number): void {
    entry.isOpen = isOpen;
    entry.order = order;
    entry.changedMs = env.nowMs();
  }

  function tell(entry: LedgerEntry, incident: Incident): void {
    for (const channel of channels) channel.tell(entry, incident);
  }

  return {
    get sent() {
      return counters.sent;
    },
    get failures() {
      return counters.failures;
    },
    get pending() {
      return channels.reduce((sum, { pending }) => sum + pending, 0);
    },
    notify(incident) {
      if (isClosed) return;
      try {
        follow(incident);
      } catch (error) {
        counters.failures++;
        const why = errorText(error);
        env.log(`alerts: ${harmless(incident.id)} could not be reported: ${harmless(why)}`);
      }
    },
    hushed(incident) {
      if (isClosed) return;
      for (const channel of channels) channel.hushed?.(incident);
      this.notify(incident);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      for (const cancel of holds.values()) cancel();
      holds.clear();
      const cancel = env.setTimer(CLOSE_MS, () => ending.abort());
      await Promise.all(channels.map((channel) => channel.close()));
      cancel();
      ending.abort();
      if (channels.length > 0) await ledger.save();
    },
  };
}

function channelsOf(config: AlertsConfig, means: ChannelMeans): Channel[] {
  const distinct = <T extends { url: string }>(targets: readonly T[]): T[] => [
    ...new Map(targets.map((target) => [target.url, target])).values(),
  ];
  return [
    ...[...new Set(config.alertmanager)].map((url) => makeAlertmanagerChannel(url, means)),
    ...distinct(config.webhooks).map((target) =>
      makeNotifier(
        {
          kind: "webhook",
          url: target.url,
          headers: headersOf(target),
          bodyOf: (incident, told) => webhookBody(incident, told, config),
        },
        means,
      ),
    ),
    ...distinct(config.slack).map(({ url }) =>
      makeNotifier(
        {
          kind: "slack",
          url,
          headers: {},
          bodyOf: (incident, told) => JSON.stringify(slackMessage(incident, told, config)),
        },
        means,
      ),
    ),
  ];
}

export function headersOf({ header }: WebhookTarget): Record<string, string> {
  if (header === undefined) return {};
  if (typeof header !== "string") return { ...header };
  const colon = header.indexOf(":");
  return colon < 1 ? {} : { [header.slice(0, colon).trim()]: header.slice(colon + 1).trim() };
}
