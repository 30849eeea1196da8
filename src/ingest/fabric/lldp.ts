/**
 * `lldpctl -f json` or `-f json0` (lldpd: src/client/json_writer.c): the neighbours of each interface. The output does not say
 * whose it is: the file's name does ("node003.json", "lldp/node003.lldp.json", "node003/lldp.json"). A neighbour that
 * bridges or routes is a switch; where none does, the file is a switch's, and its neighbours are machines.
 */
import type { Reading } from "../../model/reading.ts";
import type { Head, Reader, Sink } from "../reader.ts";
import { rowOf, textOf, type Row } from "./json-rows.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "lldp";
/** A switch of 512 ports has some hundred kilobytes. */
const MAX_BYTES = 1 << 24;

export const lldp: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean =>
    /^\s*\{\s*"lldp"\s*:\s*[[{]/.test(text) && text.includes('"interface"'),
  open: (file) => new LldpSink(file),
};

class LldpSink implements Sink {
  readonly #file: string;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(file: string) {
    this.#file = file;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_BYTES) this.#chunks.push(Buffer.from(chunk));
  }

  end(): Reading {
    const list = new PortList(this.#file, FORMAT);
    if (this.#bytes > MAX_BYTES) return list.reading(["is larger than any LLDP answer"]);
    let root: Row | null;
    try {
      root = rowOf(JSON.parse(Buffer.concat(this.#chunks).toString("utf8")));
    } catch {
      return list.reading(["the LLDP answer is cut off or broken"]);
    }
    const owner = ownerOf(this.#file);
    for (const lldpPart of listOf(root?.["lldp"]))
      for (const [nic, body] of named(rowOf(lldpPart)?.["interface"])) {
        const [chassis] = named(body["chassis"]);
        if (!chassis || chassis[0] === "") continue;
        const [name, about] = chassis;
        const port = textOf(valueOf(first(body["port"])?.["id"]));
        if (isSwitch(about)) list.add({ machine: owner, nic, leaf: name });
        else list.add({ machine: name, nic: port, leaf: owner });
      }
    return list.reading([]);
  }
}

/** What may be one thing, a list of things, or things by name. */
function named(value: unknown): [name: string, body: Row][] {
  return listOf(value).flatMap((item) => {
    const row = rowOf(item);
    if (!row) return [];
    const own = textOf(valueOf(row["name"]));
    if (own !== null) return [[own, row]];
    // A neighbour without a name: its fields stand where the name would.
    if (rowOf(row["id"]) || Array.isArray(row["id"])) return [["", row]];
    return Object.entries(row).flatMap(([name, body]): [string, Row][] => {
      const about = rowOf(body);
      return about ? [[name, about]] : [];
    });
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function first(value: unknown): Row | null {
  return rowOf(listOf(value)[0]);
}

/** "x", [{ "value": "x" }] or { "type": …, "value": "x" }. */
function valueOf(value: unknown): unknown {
  return typeof value === "string" ? value : first(value)?.["value"];
}

function isSwitch(about: Row): boolean {
  return listOf(about["capability"]).some((one) => {
    const row = rowOf(one);
    return row?.["enabled"] === true && /^(?:bridge|router)$/i.test(textOf(row["type"]) ?? "");
  });
}

function ownerOf(file: string): string {
  const [folder = "", base = ""] =
    file.split("/").slice(-2).length > 1 ? file.split("/").slice(-2) : ["", file];
  const name = base
    .replace(/\.(?:json0?|txt|out)$/i, "")
    .replace(/(?:^|[-_.])lldp(?:ctl|cli)?(?=$|[-_.])/i, "")
    .replace(/^[-_.]+|[-_.]+$/g, "");
  return name === "" ? folder : name;
}
