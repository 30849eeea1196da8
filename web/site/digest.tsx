/** The last days in figures: what was lost to what, where, who broke again; to read here or to send on. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { digestMarkdown } from "../../src/report/digest-words.ts";
import type { Digest as DigestOf, Share } from "../../src/model/digest.ts";
import { useAsked } from "../live/use-asked.ts";
import { paths } from "../live/api.ts";
import { copyText } from "../shell/copy.ts";
import { links } from "../shell/route.ts";
import { Empty, Loading, Problem } from "../shell/states.tsx";
import { Waste } from "../shell/waste.tsx";
import { thousands } from "../shell/words.ts";

const SPANS = [7, 30, 90] as const;

export function Digest(): VNode {
  const [days, setDays] = useState<number>(SPANS[0]);
  const [said, say] = useState("");
  const { value, error, again } = useAsked<DigestOf>(paths.digest(days), [days]);
  return (
    <section class="section" aria-labelledby="digest-title">
      <div class="section-head">
        <h2 id="digest-title">The last {days} days</h2>
        <select
          aria-label="Days"
          value={String(days)}
          onChange={(event) => setDays(Number(event.currentTarget.value))}
        >
          {SPANS.map((span) => (
            <option key={span} value={String(span)}>
              {span} days
            </option>
          ))}
        </select>
        {value && (
          <button
            type="button"
            onClick={() =>
              void copyText(digestMarkdown(value)).then((done) =>
                say(done ? "Digest copied." : "The browser does not allow copying."),
              )
            }
          >
            Copy as Markdown
          </button>
        )}
        <span role="status">{said}</span>
      </div>
      {value === null && error === null && <Loading what="the digest" />}
      {value === null && error !== null && <Problem error={error} retry={again} />}
      {value && value.incidents === 0 && <Empty>No incidents.</Empty>}
      {value && value.incidents > 0 && (
        <>
          <p>
            {thousands(value.incidents)} {value.incidents === 1 ? "incident" : "incidents"}, lost{" "}
            <Waste gpuMs={value.wastedGpuMs} />
            {value.isCut && " (the newest only: there were more)"}.{" "}
            {value.judged.right + value.judged.wrong > 0 &&
              `Of ${value.judged.right + value.judged.wrong} answers that people judged, ${value.judged.right} were right.`}
          </p>
          <div class="digest-columns">
            <Shares title="By cause" shares={value.byCause} />
            <Shares title="By machine" shares={value.byMachine} areLinked />
            <Shares title="Broke again" shares={value.repeated} areLinked />
          </div>
        </>
      )}
    </section>
  );
}

function Shares({
  title,
  shares,
  areLinked = false,
}: {
  readonly title: string;
  readonly shares: readonly Share[];
  readonly areLinked?: boolean;
}): VNode | null {
  if (shares.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul class="rows">
        {shares.map(({ name, incidents, wastedGpuMs }) => (
          <li key={name} class="line">
            {areLinked ? (
              <a class="cut" href={links.history(name)}>
                {name.slice(0, 200)}
              </a>
            ) : (
              <span>{name}</span>
            )}
            <span class="soft num">{incidents}</span>
            <Waste gpuMs={wastedGpuMs} />
          </li>
        ))}
      </ul>
    </div>
  );
}
