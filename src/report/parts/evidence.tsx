/** Every finding with its place in the files and the figures behind it. */
import type { VNode } from "preact";
import { count, cutText, percent } from "../../base/text.ts";
import type { Place } from "../../model/ids.ts";
import type { Verdict } from "../../model/verdict.ts";
import { anchor } from "../html/escape.ts";
import { jsonText } from "../html/json-text.ts";
import { Share } from "./share.tsx";

const MOST_FINDINGS = 100;
const MOST_PLACES = 12;
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
      <FindingCards findings={shown} />
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

export function FindingCards({ findings }: { readonly findings: readonly Finding[] }): VNode {
  return (
    <>
      {findings.map((finding) => (
        <FindingCard finding={finding} />
      ))}
    </>
  );
}

export function MoreFindings({ rest }: { readonly rest: number }): VNode | null {
  return rest > 0 ? <p class="fl-note">{count(rest, "more finding")} in verdict.json.</p> : null;
}

function FindingCard({ finding }: { readonly finding: Finding }): VNode {
  const { id, method, says, weight, at, data } = finding;
  const share = percent(weight);
  const json = data.fact === "remark" ? "" : jsonText(data, MOST_DATA + 1);
  const isCut = json.length > MOST_DATA;
  return (
    <article class="fl-finding" id={anchor(id)} tabIndex={-1}>
      <h3 class="fl-line">
        <span class="fl-id">{id}</span> <code>{method}</code>{" "}
        <span class="fl-weight">
          weight {share} <Share value={weight} label={`Weight ${share}`} />
        </span>
      </h3>
      <p class="fl-p">{cutText(says, MOST_SAYS)}</p>
      {at.length > 0 && (
        <p class="fl-p fl-places">
          {at.slice(0, MOST_PLACES).map((place) => [<code>{placeWords(place)}</code>, " "])}
          {at.length > MOST_PLACES && (
            <span class="fl-note">and {at.length - MOST_PLACES} more</span>
          )}
        </p>
      )}
      {json !== "" && (
        <details class="fl-details">
          <summary>Data</summary>
          <pre class="fl-data" tabIndex={0}>
            {json.slice(0, MOST_DATA)}
            {isCut && "\n… cut; the whole is in verdict.json"}
          </pre>
        </details>
      )}
    </article>
  );
}

export function placeWords({ file, line }: Place): string {
  return `${cutText(file, MOST_PATH)}${line ? `:${line}` : ""}`;
}
