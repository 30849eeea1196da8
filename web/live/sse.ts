/** Server-sent events out of chunks that may be cut anywhere, by the rules of the HTML standard (§9.2.6). */
export interface ServerEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

export interface EventParser {
  /** The id of the last event, for coming back. */
  readonly lastId: string;
  /** Events that are complete with this chunk. Throws where one grows without end. */
  push(chunk: string): readonly ServerEvent[];
}

/** A snapshot of thousands of jobs stays far below. */
const MOST_LENGTH = 64 << 20;

export function parseEvents(): EventParser {
  let rest: string[] = [];
  let length = 0;
  let endedWithReturn = false;
  let id = "";
  let lastId = "";
  let type = "";
  let data: string[] = [];

  const takeLine = (line: string, events: ServerEvent[]): void => {
    if (line === "") {
      lastId = id;
      if (data.length > 0) events.push({ id, type: type || "message", data: data.join("\n") });
      type = "";
      data = [];
      length = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") data.push(value);
    else if (field === "event") type = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  };

  return {
    get lastId() {
      return lastId;
    },
    push(chunk) {
      const events: ServerEvent[] = [];
      // A line's end may be two characters, and the chunk may be cut between them.
      let from = endedWithReturn && chunk[0] === "\n" ? 1 : 0;
      if (chunk !== "") endedWithReturn = chunk.endsWith("\r");
      const ends = /\r\n|\n|\r/g;
      ends.lastIndex = from;
      for (let end = ends.exec(chunk); end; end = ends.exec(chunk)) {
        rest.push(chunk.slice(from, end.index));
        takeLine(rest.length === 1 ? rest[0]! : rest.join(""), events);
        rest = [];
        from = ends.lastIndex;
      }
      if (from < chunk.length) rest.push(chunk.slice(from));
      length += chunk.length;
      if (events.length > 0) length = chunk.length - from;
      if (length > MOST_LENGTH) throw new Error("an event is too long");
      return events;
    },
  };
}
