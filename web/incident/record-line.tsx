/** A log line becomes a record of the site's own: the next job that logs it is explained by it. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { CAUSES } from "../../src/model/cause.ts";
import { type Incident, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { session } from "../live/session.ts";
import { handlings } from "../live/store.ts";
import { Sent, useSend } from "../shell/sending.tsx";

const MOST_LINE = 2000;
const MOST_TITLE = 120;

export function RecordLine({
  incident,
  text,
}: {
  readonly incident: Incident;
  readonly text: string;
}): VNode | null {
  const now = useObservable(session);
  const [isOpen, setOpen] = useState(false);
  const [done, setDone] = useState("");
  const judgement = useObservable(handlings).get(incident.id)?.judgement ?? null;
  const { isBusy, error, send } = useSend((answer) => setDone((answer as { id: string }).id));
  // A record is about all jobs: not for who has a link, or sees some jobs only.
  if (now?.link || now?.jobs) return null;
  if (done !== "")
    return (
      <span class="soft" role="status">
        recorded as {done}
      </span>
    );
  if (!isOpen)
    return (
      <button type="button" class="record-line" onClick={() => setOpen(true)}>
        Record this line
      </button>
    );
  const { verdict } = incident;
  const cause = judgement?.cause ?? verdict?.suspects[0]?.cause ?? CAUSES[0];
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    await send(paths.siteRecords, { line: text.slice(0, MOST_LINE), ...Object.fromEntries(form) });
  };
  return (
    <form class="line record-line" onSubmit={(event) => void save(event)}>
      <label>
        What it means{" "}
        <input
          name="title"
          required
          maxLength={MOST_TITLE}
          defaultValue={text.trim().slice(0, MOST_TITLE)}
        />
      </label>
      <label>
        Cause{" "}
        <select name="cause">
          {CAUSES.map((one) => (
            <option key={one} value={one} selected={one === cause}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label>
        What to do{" "}
        <input name="action" required maxLength={1000} defaultValue="see this incident" />
      </label>
      <button type="submit" disabled={isBusy}>
        Save record
      </button>
      <Sent error={error} />
    </form>
  );
}
