/** While nobody is named yet: what is being done, and since when. */
import type { VNode } from "preact";
import type { Incident } from "../live/api.ts";
import { Since } from "../shell/time.tsx";

const DOING: Readonly<Record<Incident["kind"], string>> = {
  hang: "No rank makes progress. Faultline is collecting dumps, stacks and logs from their machines to compare them.",
  crash:
    "Processes died. Faultline is collecting dumps, stacks and logs from their machines to compare them.",
  "fail-slow":
    "Iterations take longer than before. Faultline is fetching single operators from the ranks, to see which rank is late and why.",
  regression: "Iterations are longer than healthy ones, on most machines for the same reason.",
  "faulty-machine": "A machine differs from its peers. Faultline is watching it a while longer.",
  undetermined: "Something is wrong. Faultline is collecting more evidence.",
};

export function Searching({ incident }: { readonly incident: Incident }): VNode {
  return (
    <section class="searching edge-wait" role="status">
      <p>
        <strong>Searching for the root cause</strong>, for <Since ms={incident.openedMs} />.
      </p>
      <p>
        {DOING[incident.kind] ?? DOING.undetermined} The page shows the verdict as soon as it is
        there.
      </p>
    </section>
  );
}
