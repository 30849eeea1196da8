/** A table of one's own, or an inventory's export: a header with a column for the machine and one for switch, rack or rail. */
import type { FabricPort } from "../../model/fabric.ts";
import type { Reading } from "../../model/reading.ts";
import { delimiterOf, textsOf } from "../metric-table/fields.ts";
import { LineSink } from "../line-sink.ts";
import type { Head, Reader } from "../reader.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "fabric-table";
const MAX_LINE_BYTES = 1 << 14;

const COLUMNS: Readonly<Record<keyof FabricPort, RegExp>> = {
  machine: /^(?:machine|host|host_?name|node|node_?name|server|device|name)$/i,
  nic: /^(?:nic|interface|hca|port)$/i,
  leaf: /^(?:leaf|leaf_?switch|switch|tor)$/i,
  rack: /^(?:rack|rack_?(?:id|name))$/i,
  rail: /^rail(?:_?id)?$/i,
};

export const fabricTable: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean => columnsOf(firstLine(text)) !== null,
  open: (file) => new TableSink(file),
};

class TableSink extends LineSink {
  readonly #list: PortList;
  #columns: Columns | null = null;
  #short = 0;

  constructor(file: string) {
    super(file, MAX_LINE_BYTES);
    this.#list = new PortList(file, FORMAT);
  }

  finish(): Reading {
    return this.#list.reading(
      this.#short > 0 ? [`${this.#short} rows have fewer fields than the header`] : [],
    );
  }

  line(given: string): void {
    const line = given.replace(/^\uFEFF/, "");
    if (line.trim() === "" || line.startsWith("#")) return;
    if (!this.#columns) {
      this.#columns = columnsOf(line);
      return;
    }
    const { separator, at } = this.#columns;
    const fields = textsOf(line, separator);
    const field = (key: keyof FabricPort): string | null => fields[at[key] ?? -1] ?? null;
    const machine = field("machine");
    const last = Math.max(...Object.values(at));
    if (machine === null || fields.length <= last) this.#short++;
    else
      this.#list.add({
        machine,
        nic: field("nic"),
        leaf: field("leaf"),
        rack: field("rack"),
        rail: field("rail"),
      });
  }
}

interface Columns {
  readonly separator: number;
  readonly at: Readonly<Partial<Record<keyof FabricPort, number>>>;
}

/** null where the line is no such header. */
function columnsOf(line: string): Columns | null {
  const separator = delimiterOf(line);
  const names = textsOf(line, separator);
  const at: Partial<Record<keyof FabricPort, number>> = {};
  for (const [key, pattern] of Object.entries(COLUMNS) as [keyof FabricPort, RegExp][]) {
    const index = names.findIndex((name) => pattern.test(name.replaceAll(" ", "_")));
    if (index >= 0) at[key] = index;
  }
  const { machine, leaf, rack, rail } = at;
  const isPlaced = leaf !== undefined || rack !== undefined || rail !== undefined;
  // Times and measured values make it a table of metrics, whose rows have racks too at times.
  const isMetric = names.some((name) =>
    /^(?:time|timestamp|date|value|step|iteration)\b/i.test(name),
  );
  return machine !== undefined && isPlaced && !isMetric ? { separator, at } : null;
}

function firstLine(text: string): string {
  const lines = text.replace(/^(?:\uFEFF|\xEF\xBB\xBF)/, "").split(/\r?\n/, 50);
  return lines.find((line) => line.trim() !== "" && !line.startsWith("#")) ?? "";
}
