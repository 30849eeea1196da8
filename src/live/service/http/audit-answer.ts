/** The audit trail: a page of it as JSON, or all of it to take along, as lines of JSON or as CSV. */
import type { AuditQuery, AuditRow } from "../../../history/history.ts";
import type { ServiceView } from "../view.ts";
import { jsonText } from "./json.ts";
import { cursor, moment, oneOf, readQuery, text, whole } from "./queries.ts";

const MOST_ROWS = 10_000;
const MOST_EXPORTED = 1_000_000;
const PAGE = 1000;

export const AUDIT_QUERY = {
  incident: text("of this incident"),
  since: moment("at or after"),
  before: cursor,
  most: whole(
    "at most so many, the newest; 100 by default, all where a format is given",
    MOST_ROWS,
  ),
  format: oneOf("all rows to take along, instead of a page as JSON", ["ndjson", "csv"]),
};

export async function answerAudit(view: ServiceView, url: string): Promise<unknown> {
  const { incident, since: sinceMs, before: from, most, format } = readQuery(url, AUDIT_QUERY);
  const query: AuditQuery = {
    ...(incident === undefined ? {} : { incident }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(from === undefined ? {} : { before: from }),
  };
  if (format !== undefined) return exported(view, query, most ?? MOST_EXPORTED, format);
  const limit = most ?? 100;
  const audit = await view.audit({ ...query, most: limit });
  const last = audit.at(-1);
  return { audit, next: last && audit.length === limit ? `${last.atMs},${last.id}` : null };
}

const FORMATS = {
  ndjson: { type: "application/x-ndjson", head: "", line: (row: AuditRow) => `${jsonText(row)}\n` },
  csv: {
    type: "text/csv; charset=utf-8",
    head: "time,who,what,incident,action,detail,id\r\n",
    line: ({ atMs, who, what, incident, action, detail, id }: AuditRow) =>
      csvLine([new Date(atMs).toISOString(), who, what, incident, action, detail, id]),
  },
} as const;

/** Page after page, as fast as it is read: never all of it in memory. */
function exported(
  view: ServiceView,
  query: AuditQuery,
  most: number,
  format: "ndjson" | "csv",
): Response {
  const { type, head, line } = FORMATS[format];
  const encoder = new TextEncoder();
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield encoder.encode(head);
    let left = most;
    for (let at = query; left > 0;) {
      const rows = await view.audit({ ...at, most: Math.min(PAGE, left) });
      if (rows.length === 0) return;
      yield encoder.encode(rows.map(line).join(""));
      left -= rows.length;
      const { atMs, id } = rows.at(-1)!;
      at = { ...query, before: { atMs, id } };
    }
  }
  const left = parts();
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await left.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  return new Response(body, {
    headers: {
      "content-type": type,
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="faultline-audit.${format}"`,
    },
  });
}

/** Spreadsheets run what begins like a formula: an apostrophe before it makes it text. */
function csvLine(cells: readonly string[]): string {
  const quoted = cells.map((cell) => {
    const plain = /^[\s]*[=+\-@|%]/.test(cell) || /^[\t\r\n]/.test(cell) ? `'${cell}` : cell;
    return `"${plain.replaceAll('"', '""')}"`;
  });
  return `${quoted.join(",")}\r\n`;
}
