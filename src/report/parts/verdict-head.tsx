/** The answer: what is wrong, how sure, since when, whose. */
import type { ComponentChild, ComponentChildren, VNode } from "preact";
import { cutText } from "../../base/text.ts";
import type { Incident } from "../../model/incident.ts";
import type { Verdict } from "../../model/verdict.ts";
import { sureWords } from "../answer-words.ts";
import { shownMoment, type ShowTime } from "./moment.tsx";
import { ownerWords } from "../owner-words.ts";

/** One sentence, however long the names in it. */
const MOST_SUMMARY = 600;
const MOST_ABOUT = 300;

/** By what a verdict says; class names of parts-style.ts. */
const TONES: Readonly<Record<Verdict["kind"], string>> = {
  hang: "fl-bad",
  crash: "fl-bad",
  "fail-slow": "fl-warn",
  regression: "fl-warn",
  "faulty-machine": "fl-warn",
  healthy: "fl-good",
  undetermined: "fl-open",
};

function toneOf(kind: string): string {
  return Object.hasOwn(TONES, kind) ? TONES[kind as Verdict["kind"]] : "fl-open";
}

interface HeadVerdict extends Pick<Verdict, "kind" | "summary" | "when" | "owner"> {
  /** null before there is a verdict. */
  readonly confidence: number | null;
}

/** An incident's answer, also while the culprit is still searched. */
export function headOfIncident(incident: Incident): HeadVerdict {
  const { kind, summary, verdict, onsetMs, resolvedMs, fromIteration } = incident;
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    kind,
    summary,
    confidence: verdict?.confidence ?? null,
    when: {
      iteration: fromIteration,
      from: iso(onsetMs),
      to: resolvedMs === null ? null : iso(resolvedMs),
    },
    owner: verdict?.owner ?? null,
  };
}

interface VerdictHeadProps {
  readonly verdict: HeadVerdict;
  /** What it does to the job, and who only waits. */
  readonly effect?: string;
  /** Where else to find the culprit: "pid 705". */
  readonly where?: readonly string[];
  /** "llama-70b · 64 ranks" */
  readonly about?: ComponentChildren;
  /** Beside the badge: an incident's state, a link back. */
  readonly badges?: ComponentChildren;
  /** Behind the facts: time wasted, for instance; made of <Fact>. */
  readonly facts?: ComponentChildren;
  readonly time?: ShowTime;
}

export function VerdictHead(props: VerdictHeadProps): VNode {
  const { verdict, effect = "", where = [], about, badges, facts, time } = props;
  const { kind, summary, confidence, when, owner } = verdict;
  return (
    <header class={`fl-head ${toneOf(kind)}`}>
      <p class="fl-line">
        <span class="fl-badge">{kind}</span>
        {badges}
        <span class="fl-about">
          {typeof about === "string" ? cutText(about, MOST_ABOUT) : about}
        </span>
      </p>
      <h1>{cutText(summary, MOST_SUMMARY)}</h1>
      {effect !== "" && <p class="fl-effect">{cutText(effect, MOST_SUMMARY)}</p>}
      <dl class="fl-facts">
        {confidence !== null && <Fact name="Confidence">{sureWords(confidence)}</Fact>}
        {when.iteration !== null && <Fact name="Iteration">{when.iteration}</Fact>}
        {when.from !== null && (
          <Fact name={when.to === null ? "Since" : "From"}>{shownMoment(when.from, time)}</Fact>
        )}
        {when.to !== null && <Fact name="Until">{shownMoment(when.to, time)}</Fact>}
        {owner !== null && <Fact name="Owner">{ownerWords(owner)}</Fact>}
        {where.length > 0 && <Fact name="Where">{cutText(where.join(" · "), MOST_ABOUT)}</Fact>}
        {facts}
      </dl>
    </header>
  );
}

export function Fact({
  name,
  children,
}: {
  readonly name: string;
  readonly children?: ComponentChild | readonly ComponentChild[];
}): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children as ComponentChildren}</dd>
    </div>
  );
}
