/** How the verdict came about: what decided, who else is accused and why that was not believed, what would change it. */
import type { ComponentChild, VNode } from "preact";
import { count, cutText, percent } from "../../base/text.ts";
import type { Conflict, Reasoning as Reasons } from "../../model/reasoning.ts";
import type { Verdict } from "../../model/verdict.ts";
import { anchor } from "../html/escape.ts";
import {
  type Decided,
  decidingFindings,
  MOST_CHANGES,
  MOST_CONFLICTS,
  sentence,
  timesWords,
} from "../reasoning-words.ts";
import { Advice } from "./advice.tsx";
import { causeWords } from "./cause-words.ts";
import { placeWords } from "./evidence.tsx";

const MOST_SAYS = 600;
const MOST_NAME = 120;
const MOST_PLACES = 2;
const MOST_IDS = 8;

export interface ReasoningProps {
  readonly verdict: Pick<Verdict, "findings" | "reasoning">;
  /** The section that shows what the finding says, where it has one. */
  readonly shownIn?: (finding: string) => { readonly id: string; readonly name: string } | null;
  /** Where addresses carry something else than anchors: called instead of following one. */
  readonly onEvidence?: ((id: string) => void) | undefined;
  readonly onCopy?: ((command: string) => void) | undefined;
}

/** Nothing for a verdict that does not say how it came about. */
export function Reasoning({ verdict, onCopy, ...links }: ReasoningProps): VNode | null {
  if (!hasReasoning(verdict)) return null;
  const { conflicts, wouldChange, prior } = verdict.reasoning!;
  const decided = decidingFindings(verdict);
  const known = new Set(verdict.findings.map(({ id }) => id));
  return (
    <div class="fl-reasoning">
      {decided.length > 0 && (
        <ol class="fl-decided">
          {decided.map((one) => (
            <Deciding decided={one} {...links} />
          ))}
        </ol>
      )}
      {prior !== null && prior.says !== "" && (
        <p class="fl-note">Before looking: {sentence(cutText(prior.says, MOST_SAYS))}</p>
      )}
      {conflicts.length > 0 && (
        <>
          <h3>Other suspects, and why they are less likely</h3>
          <ul class="fl-conflicts">
            {conflicts.slice(0, MOST_CONFLICTS).map((conflict) => (
              <Disagrees conflict={conflict} known={known} {...links} />
            ))}
          </ul>
          <Rest rest={conflicts.length - MOST_CONFLICTS} what="more of them" />
        </>
      )}
      {wouldChange.length > 0 && (
        <>
          <h3>What would change this</h3>
          <ul class="fl-changes">
            {wouldChange.slice(0, MOST_CHANGES).map((text) => (
              <li>
                <Advice text={cutText(text, MOST_SAYS)} onCopy={onCopy} />
              </li>
            ))}
          </ul>
          <Rest rest={wouldChange.length - MOST_CHANGES} what="more" />
        </>
      )}
    </div>
  );
}

/** Whether there is anything to show. */
export function hasReasoning(verdict: Pick<Verdict, "findings" | "reasoning">): boolean {
  const reasoning: Reasons | undefined = verdict.reasoning;
  if (reasoning === undefined) return false;
  return (
    reasoning.conflicts.length + reasoning.wouldChange.length > 0 ||
    decidingFindings(verdict).length > 0
  );
}

type Links = Pick<ReasoningProps, "shownIn" | "onEvidence">;

function Deciding({ decided, shownIn, onEvidence }: Links & { readonly decided: Decided }): VNode {
  const { id, says, at } = decided.finding;
  const times = timesWords(decided.times);
  const section = shownIn?.(id) ?? null;
  return (
    <li>
      <p class="fl-p">{sentence(cutText(says, MOST_SAYS))}</p>
      <p class="fl-line fl-grounds">
        <Evidence id={id} onEvidence={onEvidence} />
        {times !== "" && <span>made it {times}</span>}
        {at.slice(0, MOST_PLACES).map((place) => (
          <code>{placeWords(place)}</code>
        ))}
        {at.length > MOST_PLACES && <span>and {count(at.length - MOST_PLACES, "more place")}</span>}
        {section && <a href={`#${section.id}`}>{section.name}</a>}
      </p>
    </li>
  );
}

function Disagrees({
  conflict,
  known,
  onEvidence,
}: Links & { readonly conflict: Conflict; readonly known: ReadonlySet<string> }): VNode {
  const { who, cause, probability, findings, why } = conflict;
  const ids = findings
    .slice(0, MOST_IDS)
    .map((id, i): ComponentChild => [
      i > 0 && ", ",
      known.has(id) ? <Evidence id={id} onEvidence={onEvidence} /> : cutText(id, MOST_NAME),
    ]);
  return (
    <li>
      <b>{cutText(who, MOST_NAME)}</b> <span class="fl-cause">{cutText(cause, MOST_NAME)}</span>{" "}
      <span class="fl-target">
        {causeWords(cause)}, {percent(probability)}
        {ids.length > 0 && [" (", ids, ")"]}
      </span>
      <p class="fl-p">Less likely: {sentence(cutText(why, MOST_SAYS))}</p>
    </li>
  );
}

function Evidence({ id, onEvidence }: Links & { readonly id: string }): VNode {
  return onEvidence ? (
    <button type="button" class="fl-link" onClick={() => onEvidence(id)}>
      {id}
    </button>
  ) : (
    <a href={`#${anchor(id)}`}>{id}</a>
  );
}

function Rest({ rest, what }: { readonly rest: number; readonly what: string }): VNode | null {
  return rest > 0 ? (
    <p class="fl-note">
      {rest} {what} in verdict.json.
    </p>
  ) : null;
}
