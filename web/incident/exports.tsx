/** The incident to take along: into a ticket, a trace viewer, a message, a program. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { incidentMarkdown } from "../../src/report/markdown.ts";
import { pictureTrace } from "../../src/report/picture-trace.ts";
import { askText, type Incident, type IncidentPicture, paths } from "../live/api.ts";
import { hasToken } from "../live/token.ts";
import { copyText, download } from "../shell/copy.ts";
import { problemWords } from "../shell/states.tsx";

const SAID_MS = 6000;

export function Exports({
  incident,
  picture,
}: {
  readonly incident: Incident;
  readonly picture: IncidentPicture | null;
}): VNode {
  const [said, say] = useState("");
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => say(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (text: string, what: string): Promise<void> =>
    say((await copyText(text)) ? `${what} copied.` : "The browser does not allow copying.");
  const save = (ending: string, text: string, type: string, words: string): void => {
    download(`${incident.id}.${ending}`, text, type);
    say(words);
  };
  /** A link could not carry the token. */
  const saveReport = async (): Promise<void> => {
    try {
      const page = await askText(paths.report(incident.id));
      save("report.html", page, "text/html", "Report saved.");
    } catch (error) {
      say(problemWords(error));
    }
  };
  const { verdict } = incident;
  const hasReport = incident.kind === "hang" || incident.kind === "crash";
  const markdown = (): string =>
    incidentMarkdown({ incident, verdict: verdict!, picture, link: location.href });
  return (
    <div class="exports" role="group" aria-label="Export">
      <button type="button" onClick={() => void copy(location.href, "Link")}>
        Copy link
      </button>
      {verdict && (
        <span class="segmented">
          <button type="button" onClick={() => void copy(markdown(), "Markdown")}>
            Copy Markdown
          </button>
          <button
            type="button"
            aria-label="Save Markdown"
            title="Save Markdown"
            onClick={() => save("md", markdown(), "text/markdown", "Markdown saved.")}
          >
            <span aria-hidden="true">↓</span>
          </button>
        </span>
      )}
      {verdict && picture && (
        <button
          type="button"
          onClick={() =>
            save(
              "trace.json",
              pictureTrace(picture, verdict),
              "application/json",
              "Trace saved. Open it at ui.perfetto.dev: Open trace file. It stays in your browser.",
            )
          }
        >
          Perfetto trace
        </button>
      )}
      <button
        type="button"
        onClick={() =>
          save(
            "json",
            JSON.stringify({ incident, picture }, null, 2),
            "application/json",
            "JSON saved.",
          )
        }
      >
        JSON
      </button>
      {hasReport && verdict && hasToken() && (
        <button type="button" onClick={() => void saveReport()}>
          Save full report
        </button>
      )}
      {hasReport && verdict && !hasToken() && (
        <a
          class="button"
          href={paths.report(incident.id)}
          target="_blank"
          rel="noopener noreferrer"
        >
          Full report
        </a>
      )}
      <span class="soft small" role="status">
        {said}
      </span>
    </div>
  );
}
