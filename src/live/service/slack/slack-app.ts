/**
 * Buttons of Slack messages: who pressed which is taken from Slack's signed request, done as the page does it, and shown in
 * the message. Slack wants an answer within 3 s, so a request is answered before its work is done.
 */
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { jsonOf } from "../../../base/json.ts";
import { errorText } from "../../../base/errors.ts";
import { cutText, harmless } from "../../../base/text.ts";
import { acknowledgedNow, type Mute } from "../../../model/handling.ts";
import type { Incident } from "../../../model/incident.ts";
import { type Grant, jobsFor } from "../access/grants.ts";
import { viewFor } from "../access/limited-view.ts";
import { post } from "../alerts/post.ts";
import { type AlertsConfig, type Fetch, type SlackAppConfig } from "../alerts/types.ts";
import { noteRefusals } from "../http/admit.ts";
import { inTime } from "../http/in-time.ts";
import { Refusal, type ServiceView } from "../view.ts";
import { covers } from "../workflow/workflow.ts";
import { type Button, BUTTONS, isMutable, slackMessage, toldNow } from "./message.ts";
import { signedOf, SlackSignatures } from "./signature.ts";

export interface SlackAppOptions {
  readonly alerts: AlertsConfig;
  readonly view: ServiceView;
  readonly fetch: Fetch;
  /** The wall clock: Slack's timestamps are compared with it. */
  nowMs(this: void): number;
  log(this: void, line: string): void;
}

export const SLACK_PATH = "/slack/interactivity";
/** The message is in it, twice, with percent signs. */
export const SLACK_BODY_BYTES = 256 << 10;
const ROUTE = { method: "post", path: SLACK_PATH, needs: "act" } as const;
const HOUR_MS = 3_600_000;
/** A second click within this time does not lengthen a mute. */
const SAME_MUTE_MS = 60_000;
const WORK_MS = 10_000;
/** The next click waits for it. */
const REPLY_MS = 3000;
const MOST_WAITING = 100;

const slackId = z.string().regex(/^[A-Z0-9]{2,32}$/);
const payloadSchema = z.object({
  type: z.literal("block_actions"),
  user: z.object({
    id: slackId,
    name: z.string().optional(),
    username: z.string().optional(),
    /** The person's own, which may be another than the channel's; of an organization with Enterprise. */
    team_id: slackId.optional(),
  }),
  team: z.object({ id: slackId }).nullish(),
  response_url: z.string().max(2000).refine(isSlacks).optional(),
  actions: z.array(z.object({ action_id: z.string(), value: z.string().max(300) })).min(1),
});

interface Click {
  readonly team: string | null;
  readonly user: string;
  /** As the audit trail has them. */
  readonly who: string;
  readonly button: Button;
  readonly incident: string;
  /** Where the message is replaced; null where Slack names no place. */
  readonly replyUrl: string | null;
}

export class SlackApp {
  readonly #options: SlackAppOptions;
  readonly #signatures = new SlackSignatures();
  readonly #noteRefusal: ReturnType<typeof noteRefusals>;
  readonly #closing = new AbortController();
  #alerts: AlertsConfig;
  /** One click after the other: the second of a double click sees what the first has done. */
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(options: SlackAppOptions) {
    this.#options = options;
    this.#alerts = options.alerts;
    this.#noteRefusal = noteRefusals(options.view, options.nowMs);
  }

  reload(alerts: AlertsConfig): void {
    this.#alerts = alerts;
  }

  /** Resolves when the request is known to be Slack's and its click waits to be done. Rejects with Refusal. */
  async take(headers: IncomingHttpHeaders, readBody: () => Promise<string>): Promise<void> {
    const { slackApp } = this.#alerts;
    if (!slackApp) throw new Refusal(404, "there is nothing at this path");
    const signed = signedOf(headers, this.#options.nowMs());
    const body = await readBody();
    this.#signatures.check(slackApp.signingSecret, signed, body, this.#options.nowMs());
    const click = clickOf(body);
    if (this.#waiting >= MOST_WAITING) throw new Refusal(503, "too many clicks wait already");
    this.#waiting++;
    this.#last = this.#last.then(() => this.#answer(click)).finally(() => void this.#waiting--);
  }

  /** Replies on their way are given up. */
  close(): void {
    this.#closing.abort();
  }

  /** Never rejects. */
  async #answer(click: Click): Promise<void> {
    const { slackApp } = this.#alerts;
    const jobs = slackApp ? jobsFor(grantsOf(slackApp, click), "act") : undefined;
    // A link opens by itself; Slack sends a request all the same.
    if (click.button === "faultline-open") return;
    try {
      if (jobs === undefined) {
        const whose = `${click.user} of ${click.team ?? "no workspace"}`;
        throw new Refusal(403, `${whose} is not among alerts.slackApp.people`);
      }
      const view = viewFor(this.#options.view, { jobs });
      const message = await inTime(this.#do(view, click), WORK_MS);
      await this.#reply(click, { replace_original: true, ...message });
    } catch (error) {
      const refused = this.#refuse(click, error, jobs !== null);
      // Nobody waits for what a stranger is told.
      if (jobs !== undefined) await refused;
    }
  }

  async #refuse(click: Click, error: unknown, isLimited: boolean): Promise<void> {
    const isRefusal = error instanceof Refusal;
    const why = isRefusal ? error.message : "it could not be done: see the service's log";
    if (!isRefusal) this.#options.log(`Slack: ${cutText(harmless(errorText(error)), 500)}`);
    if (isRefusal && (error.status === 403 || (error.status === 404 && isLimited)))
      await this.#noteRefusal(ROUTE, click.incident, click.who, why);
    const text = `${BUTTONS[click.button]}: ${why}.`;
    await this.#reply(click, { response_type: "ephemeral", replace_original: false, text });
  }

  /** What the message says afterwards. */
  async #do(view: ServiceView, { button, incident: id, who }: Click): Promise<object> {
    const incident = await view.incident(id);
    const before = incident && (await view.handling(id));
    if (!incident || !before) throw new Refusal(404, "there is no such incident");
    const isJudged = button === "faultline-right" || button === "faultline-wrong";
    if (incident.state === "resolved" && !isJudged) throw new Refusal(409, "the incident is over");
    if (button === "faultline-acknowledge") {
      if (!acknowledgedNow(before, incident)) await view.handle(id, { do: "acknowledge" }, who);
    } else if (button === "faultline-mute") await this.#mute(view, incident, who);
    else {
      const isRight = button === "faultline-right";
      const { judgement } = before;
      // What somebody said in more words on the page stays.
      const isSaid =
        judgement?.isRight === isRight && (judgement.jobs === null || judgement.who === who);
      if (!isSaid) await view.handle(id, { do: "judge", isRight, machine: null, cause: null }, who);
    }
    const handling = (await view.handling(id)) ?? before;
    const answered = { handling, mute: this.#muteOf(view, incident) };
    return slackMessage(incident, toldNow(incident), this.#alerts, answered);
  }

  /** Nothing wider than what the incident is about. */
  async #mute(view: ServiceView, incident: Incident, who: string): Promise<void> {
    const untilMs = this.#options.nowMs() + HOUR_MS;
    if ((this.#muteOf(view, incident)?.untilMs ?? 0) > untilMs - SAME_MUTE_MS) return;
    const { job, kind, verdict, machines } = incident;
    if (!isMutable(incident))
      throw new Refusal(409, "its cause is not known: the page can mute the whole job");
    await view.mute(
      {
        kind: "mute",
        job,
        machine: kind === "faulty-machine" ? (machines[0] ?? null) : null,
        cause: verdict?.suspects[0]?.cause ?? null,
        fromMs: this.#options.nowMs(),
        untilMs,
        why: `from Slack, about ${incident.id}`,
      },
      who,
    );
  }

  /** The one that lasts longest. */
  #muteOf(view: ServiceView, incident: Incident): Mute | null {
    const nowMs = this.#options.nowMs();
    const found = view.mutes().filter((one) => one.fromMs <= nowMs && covers(one, incident));
    return found.sort((a, b) => b.untilMs - a.untilMs)[0] ?? null;
  }

  async #reply({ replyUrl }: Click, message: object): Promise<void> {
    if (replyUrl === null) return;
    const { fetch, log } = this.#options;
    const body = JSON.stringify(message);
    const closing = this.#closing.signal;
    const result = await post(fetch, replyUrl, body, {}, REPLY_MS, closing);
    if (!result.ok && !closing.aborted) log(`Slack ${result.why}; the message shows an old state`);
  }
}

function grantsOf({ people }: SlackAppConfig, click: Click): Grant[] {
  return people
    .filter(({ team, user }) => team === click.team && (user === null || user === click.user))
    .map(({ jobs }) => ({ scopes: ["act"], jobs }));
}

/** Throws Refusal: also Slack may send what is no click on a button of ours. */
function clickOf(body: string): Click {
  const parsed = payloadSchema.safeParse(jsonOf(new URLSearchParams(body).get("payload") ?? ""));
  const [action] = parsed.data?.actions ?? [];
  const button = (Object.keys(BUTTONS) as Button[]).find((id) => id === action?.action_id);
  if (!parsed.success || !action || !button)
    throw new Refusal(400, "the body is no click on a button of an alert");
  const { user, team, response_url: replyUrl = null } = parsed.data;
  const name = cutText(harmless(user.username ?? user.name ?? ""), 64);
  return {
    team: user.team_id ?? team?.id ?? null,
    user: user.id,
    who: `slack:${user.id}${name === "" ? "" : ` (${name})`}`,
    button,
    incident: action.value,
    replyUrl,
  };
}

/** The service posts nowhere else, whatever a request says. */
function isSlacks(text: string): boolean {
  return URL.canParse(text) && text.startsWith("https://hooks.slack.com/");
}
