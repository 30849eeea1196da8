/** What nobody is alerted of, until when and why; and a form for another one. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { type Mute, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { mutes } from "../live/store.ts";
import { useAsked } from "../live/use-asked.ts";
import { Sent, useSend } from "../shell/sending.tsx";
import { Empty } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";

const HOUR_MS = 3_600_000;
const SPANS = [
  ["1", "1 hour"],
  ["4", "4 hours"],
  ["24", "1 day"],
  ["168", "1 week"],
] as const;

export function Mutes(): VNode {
  const told = useObservable(mutes);
  const asked = useAsked<{ mutes: readonly Mute[] }>(paths.mutes);
  const all = told ?? asked.value?.mutes ?? [];
  const ending = useSend((answer) => mutes.set((answer as { mutes: Mute[] }).mutes));
  return (
    <section class="section" aria-labelledby="mutes-title">
      <h2 id="mutes-title">Mutes and maintenance</h2>
      {all.length === 0 && <Empty>Nothing is muted.</Empty>}
      {all.length > 0 && (
        <ul class="rows mutes">
          {all.map((mute) => (
            <li key={mute.id} class="line">
              <span class="tag tone-open">{mute.kind}</span>
              <strong>{nameOf(mute)}</strong>
              <span>
                {mute.fromMs > Date.now() && (
                  <>
                    from <Time ms={mute.fromMs} />{" "}
                  </>
                )}
                until <Time ms={mute.untilMs} />: {mute.why}
              </span>
              <span class="soft">{mute.who}</span>
              <button
                type="button"
                disabled={ending.isBusy}
                aria-label={`End ${mute.kind} of ${nameOf(mute)}`}
                onClick={() => void ending.send(paths.endMute(mute.id), {})}
              >
                End
              </button>
            </li>
          ))}
        </ul>
      )}
      <Sent error={ending.error} />
      <MuteForm />
    </section>
  );
}

/** "machine node00*, cause gpu-slow" */
function nameOf({ job, machine, cause }: Mute): string {
  const parts = [
    job === null ? "" : `job ${job}`,
    machine === null ? "" : `machine ${machine}`,
    cause === null ? "" : `cause ${cause}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function MuteForm(): VNode {
  const [round, setRound] = useState(0);
  const [says, setSays] = useState("");
  const { isBusy, error, send } = useSend((answer) => {
    const { says: doubt = "", ...mute } = answer as Mute & { readonly says?: string };
    setSays(doubt);
    const others = (mutes.value ?? []).filter(({ id }) => id !== mute.id);
    mutes.set([...others, mute].sort((a, b) => a.untilMs - b.untilMs));
    setRound((before) => before + 1);
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string => {
      const value = form.get(name);
      return typeof value === "string" ? value.trim() : "";
    };
    const start = text("from") === "" ? Date.now() : new Date(text("from")).getTime();
    void send(paths.mutes, {
      kind: text("kind"),
      [text("what")]: text("name"),
      ...(text("from") === "" ? {} : { fromMs: start }),
      untilMs: start + Number(text("hours")) * HOUR_MS,
      why: text("why"),
    });
  };
  return (
    <form class="line mute-form" key={round} onSubmit={submit} aria-label="Mute alerts">
      <select name="kind" aria-label="Kind">
        <option value="mute">mute</option>
        <option value="maintenance">maintenance</option>
      </select>
      <select name="what" aria-label="Of what">
        <option value="machine">machine</option>
        <option value="job">job</option>
        <option value="cause">cause</option>
      </select>
      <input
        name="name"
        required
        maxLength={200}
        placeholder="name; * is any text"
        aria-label="Name"
        autocomplete="off"
      />
      <label>
        from <input name="from" type="datetime-local" />
      </label>
      <select name="hours" aria-label="For how long">
        {SPANS.map(([hours, says]) => (
          <option key={hours} value={hours}>
            for {says}
          </option>
        ))}
      </select>
      <input name="why" required maxLength={1000} placeholder="why" aria-label="Why" />
      <button type="submit" disabled={isBusy}>
        Mute
      </button>
      {says !== "" && <p role="status">Muted, but {says}.</p>}
      <Sent error={error} />
    </form>
  );
}
