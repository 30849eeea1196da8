/** While nobody is named yet: what is being done, and since when. */
import type { VNode } from "preact";
import type { Incident } from "../live/api.ts";
import { Since } from "../shell/time.tsx";

const DOING: Readonly<Record<Incident["kind"], string>> = {
  hang: "Nothing goes on. What the ranks left behind is being collected from their machines and compared.",
  crash:
    "Processes died. What they left behind is being collected from their machines and compared.",
  "fail-slow":
    "Iterations take longer than they did. Single operators are being fetched from the ranks, to see who comes late and why.",
  regression: "Iterations are longer than healthy ones, on most machines for the same reason.",
  "faulty-machine": "A machine is unlike its peers. It is being watched a while longer.",
  undetermined: "Something is off. More is being collected.",
};

export function Searching({ incident }: { readonly incident: Incident }): VNode {
  return (
    <section class="searching edge-wait" role="status">
      <p>
        <strong>Who is at fault is being searched</strong>, for <Since ms={incident.openedMs} />.
      </p>
      <p>
        {DOING[incident.kind] ?? DOING.undetermined} The page shows the verdict as soon as it is
        there.
      </p>
    </section>
  );
}
