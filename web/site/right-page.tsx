/** How right the answers were, by what people said of them: by kind and by how sure they were, with 95 % intervals. */
import type { VNode } from "preact";
import type { ForgottenLogs, SiteReport, SiteScore } from "../../src/model/site.ts";
import { KIND } from "../fleet/kinds.ts";
import { paths } from "../live/api.ts";
import { useAsked } from "../live/use-asked.ts";
import { Sent, useSend } from "../shell/sending.tsx";
import { Empty, Loading, Problem } from "../shell/states.tsx";
import { percentWords, thousands } from "../shell/words.ts";

export function RightPage(): VNode {
  const { value, error, again } = useAsked<SiteReport>(paths.site);
  return (
    <div class="stack site">
      <h1 tabIndex={-1}>How right were the answers?</h1>
      {value === null && error === null && <Loading what="judgements" />}
      {value === null && error !== null && <Problem error={error} retry={again} />}
      {value && value.all.judged === 0 && (
        <Empty>Nobody has judged an answer yet. Each incident asks whether it was right.</Empty>
      )}
      {value && value.all.judged > 0 && <Judged report={value} />}
      {value?.logs && <Learnt logs={value.logs} again={again} />}
    </div>
  );
}

function Judged({ report }: { readonly report: SiteReport }): VNode {
  const { all, kinds, confusions } = report;
  return (
    <>
      <section class="section" aria-labelledby="kinds-title">
        <h2 id="kinds-title">By kind</h2>
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Judged</th>
              <th scope="col">Right</th>
              <th scope="col">95 % interval</th>
            </tr>
          </thead>
          <tbody>
            {kinds.map(({ kind, ...score }) => (
              <Row key={kind} name={(KIND[kind] ?? KIND.undetermined).says} score={score} />
            ))}
            <Row name="all" score={all} />
          </tbody>
        </table>
      </section>
      <section class="section" aria-labelledby="sure-title">
        <h2 id="sure-title">How sure they were, and how often right</h2>
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">Sure</th>
              <th scope="col">Judged</th>
              <th scope="col">Right</th>
            </tr>
          </thead>
          <tbody>
            {all.calibration.map(({ from, judged, right, said }) => (
              <tr key={from}>
                <th scope="row">{percentWords(said)}</th>
                <td class="num">{thousands(judged)}</td>
                <td class="num">{percentWords(right / judged)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {confusions.length > 0 && (
        <section class="section" aria-labelledby="mistaken-title">
          <h2 id="mistaken-title">Mistaken causes</h2>
          <ul class="rows">
            {confusions.map(({ said, truth, incidents }) => (
              <li key={`${said} ${truth}`}>
                {said ?? "no suspect"} was {truth} <span class="soft num">{incidents}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Row({ name, score }: { readonly name: string; readonly score: SiteScore }): VNode {
  const { judged, right, low, high } = score;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="num">{thousands(judged)}</td>
      <td class="num">
        {thousands(right)} ({percentWords(right / judged)})
      </td>
      <td class="num">
        {percentWords(low)} to {percentWords(high)}
      </td>
    </tr>
  );
}

const MOST_JOBS = 50;

function Learnt({
  logs,
  again,
}: {
  readonly logs: NonNullable<SiteReport["logs"]>;
  readonly again: () => void;
}): VNode {
  const removing = useSend(again);
  const remove = (label: string, what: ForgottenLogs): VNode => (
    <button
      type="button"
      disabled={removing.isBusy}
      aria-label={label}
      onClick={() => void removing.send(paths.forgetLogs, what)}
    >
      Remove
    </button>
  );
  return (
    <section class="section" aria-labelledby="records-title">
      <h2 id="records-title">Records of log lines</h2>
      <p>
        {thousands(logs.healthyJobs)} healthy jobs were learnt from: {thousands(logs.normalEvents)}{" "}
        events are normal here.
      </p>
      <ul class="rows">
        {logs.imports.map(({ id, from, who, jobs, records }) => (
          <li key={id} class="line">
            <span>Imported from {from === "" ? "a file" : from}</span>
            <span class="soft">
              {jobs} jobs, {records} records; by {who}
            </span>
            {remove(`Remove the import ${from} ${id}`, { import: id })}
          </li>
        ))}
        {logs.jobs.slice(-MOST_JOBS).map((job) => (
          <li key={job} class="line">
            <span>Learnt from {job}</span>
            {remove(`Forget the job ${job}`, { job })}
          </li>
        ))}
      </ul>
      <ul class="rows">
        {logs.records.slice(0, 100).map(({ id, title, isOwn, confirmed, disputed, certainty }) => (
          <li key={id} class="line">
            <span>{title.slice(0, 200)}</span>
            {isOwn && <span class="tag tone-open">your record</span>}
            <span class="soft">
              {percentWords(certainty)} sure; confirmed {confirmed}, disputed {disputed}
            </span>
            {isOwn && (
              <button
                type="button"
                disabled={removing.isBusy}
                aria-label={`Remove the record ${title.slice(0, 200)}`}
                onClick={() => void removing.send(paths.removeRecord(id), {})}
              >
                Remove
              </button>
            )}
          </li>
        ))}
      </ul>
      <Sent error={removing.error} />
    </section>
  );
}
