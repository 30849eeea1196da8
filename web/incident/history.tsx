/** The way of an incident from the first suspicion to its end, and who did what about it. */
import type { VNode } from "preact";
import type { AuditRow, Incident } from "../live/api.ts";
import { paths } from "../live/api.ts";
import { useAsked } from "../live/use-asked.ts";
import { Time } from "../shell/time.tsx";
import { spanWords } from "../shell/words.ts";
import { stepsOf } from "./steps.ts";

export function History({ incident }: { readonly incident: Incident }): VNode {
  const { value } = useAsked<{ revisions: readonly Incident[] }>(paths.history(incident.id), [
    incident.revision,
  ]);
  const known = value?.revisions ?? [];
  // The newest one may be here before the history has it.
  const isBehind = (known.at(-1)?.revision ?? 0) < incident.revision;
  const steps = stepsOf(isBehind ? [...known, incident] : known);
  return (
    <ol class="steps">
      {steps.map(({ atMs, says, tone }, i) => (
        <li key={i} class={`tone-${tone}`}>
          <Time ms={atMs} />
          <span class="step-says">{says}</span>
          {i > 0 && <span class="soft small num">after {spanWords(atMs - steps[0]!.atMs)}</span>}
        </li>
      ))}
    </ol>
  );
}

export function Audit({ incident }: { readonly incident: Incident }): VNode | null {
  const { value } = useAsked<{ audit: readonly AuditRow[] }>(paths.audit(incident.id), [
    incident.revision,
  ]);
  const rows = value?.audit ?? [];
  if (rows.length === 0) return null;
  return (
    <details class="audit">
      <summary>Who did what ({rows.length})</summary>
      <ol class="audit-rows">
        {rows.slice(0, 100).map(({ id, atMs, who, what, detail }) => (
          <li key={id}>
            <Time ms={atMs} /> <strong>{who.slice(0, 80)}</strong> <span>{what}</span>
            <span class="soft mono audit-detail">{detail.slice(0, 2000)}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}
