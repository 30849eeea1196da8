/** Every finding with its place in the files and the figures behind it. */
import type { VNode } from "preact";
import { count, cutText } from "../../base/text.ts";
import type { Place } from "../../model/ids.ts";
import type { Verdict } from "../../model/verdict.ts";
import { anchor } from "../html/escape.ts";
import { jsonText } from "../html/json-text.ts";
import { inOrderOfWeight } from "../reasoning-words.ts";
import { evidenceGroups } from "../evidence-groups.ts";

const MOST_FINDINGS = 100;
const MOST_PLACES = 4;
const MOST_DATA = 4_000;
const MOST_SAYS = 2_000;
const MOST_PATH = 400;

type Finding = Verdict["findings"][number];

export function Evidence({
  verdict,
}: {
  readonly verdict: Pick<Verdict, "findings" | "suspects" | "reasoning">;
}): VNode {
  const shown = shownFindings(verdict);
  return (
    <>
      {verdict.findings.length === 0 && (
        <p class="fl-p">No method found anything in these files.</p>
      )}
      <FindingCards findings={shown} verdict={verdict} />
      <MoreFindings rest={verdict.findings.length - shown.length} />
    </>
  );
}

/** What anything links to must be there, however many findings come before it. */
export function shownFindings({
  findings,
  suspects,
  reasoning,
}: Pick<Verdict, "findings" | "suspects" | "reasoning">): readonly Finding[] {
  const cited = new Set([
    ...suspects.flatMap(({ evidence }) => evidence),
    ...(reasoning?.decidedBy.map(({ finding }) => finding) ?? []),
    ...(reasoning?.conflicts.flatMap((conflict) => conflict.findings) ?? []),
  ]);
  const others = findings.filter(({ id }) => !cited.has(id));
  const kept = new Set(others.slice(0, MOST_FINDINGS).map(({ id }) => id));
  return findings.filter(({ id }) => cited.has(id) || kept.has(id));
}

/** Alike ones are one card that says how many: nobody reads the same sentence of thirty ranks. */
export function FindingCards({
  findings,
  verdict,
}: {
  readonly findings: readonly Finding[];
  readonly verdict: Pick<Verdict, "findings" | "suspects" | "reasoning">;
}): VNode {
  const shown = new Set(findings);
  const ordered = inOrderOfWeight(verdict).filter((finding) => shown.has(finding));
  return (
    <>
      {evidenceGroups(verdict, ordered).map(({ first, alike }) => (
        <FindingCard finding={first} alike={alike} />
      ))}
    </>
  );
}

export function MoreFindings({ rest }: { readonly rest: number }): VNode | null {
  return rest > 0 ? <p class="fl-note">{count(rest, "more finding")} in verdict.json.</p> : null;
}

function FindingCard({
  finding,
  alike,
}: {
  readonly finding: Finding;
  readonly alike: readonly Finding[];
}): VNode {
  const { id, says, at, method, data } = finding;
  const json = data.fact === "remark" ? "" : jsonText(data, MOST_DATA + 1);
  const isCut = json.length > MOST_DATA;
  return (
    <article class="fl-finding" id={anchor(id)} tabIndex={-1}>
      <p class="fl-p">{cutText(says, MOST_SAYS)}</p>
      <Places at={at} />
      {alike.length > 0 && (
        <details class="fl-details">
          <summary>and {alike.length} alike</summary>
          <ul class="fl-alike">
            {alike.map((one) => (
              <li id={anchor(one.id)}>{cutText(one.says, MOST_SAYS)}</li>
            ))}
          </ul>
        </details>
      )}
      {json !== "" && (
        <details class="fl-details">
          <summary>
            Data of {id}, <code>{method}</code>
          </summary>
          <pre class="fl-data" tabIndex={0}>
            {json.slice(0, MOST_DATA)}
            {isCut && "\n… cut; the whole is in verdict.json"}
          </pre>
        </details>
      )}
    </article>
  );
}

function Places({ at }: { readonly at: readonly Place[] }): VNode | null {
  if (at.length === 0) return null;
  return (
    <p class="fl-p fl-places">
      {at.slice(0, MOST_PLACES).map((place) => [<code>{placeWords(place)}</code>, " "])}
      {at.length > MOST_PLACES && <span class="fl-note">and {at.length - MOST_PLACES} more</span>}
    </p>
  );
}

export function placeWords({ file, line }: Place): string {
  return `${cutText(file, MOST_PATH)}${line ? `:${line}` : ""}`;
}
