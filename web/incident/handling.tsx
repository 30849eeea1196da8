/** Who looks after the incident, what was said of it, whether the answer was right. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { CAUSES } from "../../src/model/cause.ts";
import { acknowledgedNow, type CommentedHandling } from "../../src/model/handling.ts";
import { type Handling, type Incident, paths } from "../live/api.ts";
import { useObservable } from "../live/observable.ts";
import { handlings } from "../live/store.ts";
import { useAsked } from "../live/use-asked.ts";
import { links } from "../shell/route.ts";
import { Sent, useSend } from "../shell/sending.tsx";
import { Time } from "../shell/time.tsx";
import { Markdown } from "./markdown.tsx";

/** As the service tells it by the line; comments, and what was done long ago, are asked for. */
function useHandling(id: string): CommentedHandling | null {
  const told = useObservable(handlings).get(id) ?? null;
  const { value } = useAsked<CommentedHandling>(paths.handling(id), [told?.commentCount]);
  return told === null ? value : { ...told, comments: value?.comments ?? [] };
}

export function HandlingSection({ incident }: { readonly incident: Incident }): VNode | null {
  const handling = useHandling(incident.id);
  const { isBusy, error, send } = useSend((answer) => {
    const changed = answer as Handling;
    handlings.set(new Map([...handlings.value, [changed.incident, changed]]));
  });
  if (handling === null) return null;
  const handle = (body: object): Promise<boolean> => send(paths.handling(incident.id), body);
  const shared = { incident, handling, isBusy, handle };
  return (
    <section class="section handling" aria-labelledby="handling-title">
      <h2 id="handling-title">Who looks after it</h2>
      <Owner {...shared} />
      <Merged {...shared} />
      {incident.verdict !== null && <WasItRight {...shared} />}
      <Comments {...shared} />
      <Sent error={error} />
    </section>
  );
}

interface Shared {
  readonly incident: Incident;
  readonly handling: CommentedHandling;
  readonly isBusy: boolean;
  /** Resolves to whether it was done. */
  readonly handle: (body: object) => Promise<boolean>;
}

function Owner({ incident, handling, isBusy, handle }: Shared): VNode {
  const { assignee, reopened } = handling;
  const acknowledged = acknowledgedNow(handling, incident);
  return (
    <div class="line">
      {acknowledged ? (
        <>
          <span>
            Acknowledged by <strong>{acknowledged.who}</strong> at <Time ms={acknowledged.atMs} />
          </span>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void handle({ do: "unacknowledge" })}
          >
            Take back
          </button>
        </>
      ) : (
        <button
          type="button"
          disabled={isBusy}
          title="You know of it: Alertmanager does not repeat it any more"
          onClick={() => void handle({ do: "acknowledge" })}
        >
          Acknowledge
        </button>
      )}
      <OneLine
        key={assignee ?? ""}
        label="Assigned to"
        name="assignee"
        value={assignee ?? ""}
        says="Assign"
        isBusy={isBusy}
        onSend={(to) => handle({ do: "assign", to: to === "" ? null : to })}
      />
      {reopened && (
        <>
          <span class="tag tone-bad">reopened</span>
          <span>
            by <strong>{reopened.who}</strong>: {reopened.why}
          </span>
          <button type="button" disabled={isBusy} onClick={() => void handle({ do: "close" })}>
            Close
          </button>
        </>
      )}
      {incident.state === "resolved" && !reopened && (
        <OneLine
          label="Not over? Why"
          name="reopen"
          value=""
          says="Reopen"
          isBusy={isBusy}
          isNeeded
          onSend={(why) => handle({ do: "reopen", why })}
        />
      )}
    </div>
  );
}

function Merged({ handling, isBusy, handle }: Shared): VNode {
  const { mergedInto } = handling;
  if (mergedInto !== null)
    return (
      <p class="line">
        <span>
          The same as{" "}
          {mergedInto === "hidden" ? (
            "an incident of a job that you do not see"
          ) : (
            <a href={links.incident(mergedInto)}>{mergedInto.slice(0, 200)}</a>
          )}
          ; nobody is alerted of this one.
        </span>
        <button type="button" disabled={isBusy} onClick={() => void handle({ do: "unmerge" })}>
          Separate again
        </button>
      </p>
    );
  return (
    <details>
      <summary>The same as another incident?</summary>
      <OneLine
        label="Its id"
        name="merge"
        value=""
        says="Merge"
        isBusy={isBusy}
        isNeeded
        onSend={(into) => handle({ do: "merge", into })}
      />
    </details>
  );
}

function WasItRight({ incident, handling, isBusy, handle }: Shared): VNode {
  const { judgement } = handling;
  const [isWrong, setWrong] = useState(false);
  const wrong = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string | null => {
      const value = form.get(name);
      return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
    };
    const body = { do: "judge", isRight: false, machine: text("machine"), cause: text("cause") };
    if (await handle(body)) setWrong(false);
  };
  return (
    <div class="handling-part">
      <p class="line">
        <span>Was the answer right?</span>
        <button
          type="button"
          disabled={isBusy}
          aria-pressed={judgement?.isRight === true}
          onClick={() => {
            setWrong(false);
            void handle({ do: "judge", isRight: true });
          }}
        >
          Right
        </button>
        <button
          type="button"
          disabled={isBusy}
          aria-pressed={judgement?.isRight === false}
          aria-expanded={isWrong}
          onClick={() => setWrong(!isWrong)}
        >
          Wrong …
        </button>
        {judgement && (
          <span class="soft">
            {judgement.isRight ? "right" : "wrong"}, says {judgement.who}
            {judgement.machine !== null && <>; it was {judgement.machine}</>}
            {judgement.cause !== null && <>; cause {judgement.cause}</>}
          </span>
        )}
      </p>
      {isWrong && (
        <form class="line" onSubmit={(event) => void wrong(event)}>
          <label>
            Which machine was it?{" "}
            <input
              name="machine"
              list="machines-known"
              maxLength={200}
              placeholder="none, or not known"
              autocomplete="off"
            />
          </label>
          <datalist id="machines-known">
            {incident.machines.slice(0, 50).map((machine) => (
              <option key={machine} value={machine} />
            ))}
          </datalist>
          <label>
            What was it?{" "}
            <select name="cause">
              <option value="">not known</option>
              {CAUSES.map((cause) => (
                <option key={cause} value={cause}>
                  {cause}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" disabled={isBusy}>
            Say so
          </button>
        </form>
      )}
    </div>
  );
}

function Comments({ handling, isBusy, handle }: Shared): VNode {
  const [text, setText] = useState("");
  const add = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    // What could not be sent stays in the field.
    if (await handle({ do: "comment", text })) setText("");
  };
  return (
    <div class="handling-part">
      {handling.comments.length > 0 && (
        <ol class="comments">
          {handling.comments.map(({ who, atMs, text: said }, i) => (
            <li key={i}>
              <p class="soft small">
                <strong>{who}</strong> <Time ms={atMs} />
              </p>
              <Markdown text={said} />
            </li>
          ))}
        </ol>
      )}
      <form class="comment-form" onSubmit={(event) => void add(event)}>
        <label>
          Comment <span class="soft small">(Markdown: **bold**, `code`, lists, links)</span>
          <textarea
            name="comment"
            rows={2}
            maxLength={4000}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={isBusy || text.trim() === ""}>
          Add comment
        </button>
      </form>
    </div>
  );
}

function OneLine({
  label,
  name,
  value,
  says,
  isBusy,
  isNeeded = false,
  onSend,
}: {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly says: string;
  readonly isBusy: boolean;
  readonly isNeeded?: boolean;
  readonly onSend: (text: string) => Promise<boolean>;
}): VNode {
  const [text, setText] = useState(value);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void onSend(text.trim());
  };
  return (
    <form class="line" onSubmit={submit}>
      <label>
        {label}{" "}
        <input
          name={name}
          maxLength={200}
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button
        type="submit"
        disabled={isBusy || text.trim() === value || (isNeeded && text.trim() === "")}
      >
        {says}
      </button>
    </form>
  );
}
