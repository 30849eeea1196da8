/**
 * `lldpctl -f json` or `-f json0` (lldpd: src/client/json_writer.c): the neighbours of each interface. The output does not say
 * whose it is: the file's name does ("node003.json", "lldp/node003.lldp.json", "node003/lldp.json"). A neighbour that
 * bridges or routes is a switch; where none does, the file is a switch's, and its neighbours are machines.
 */
import type { Reading } from "../../model/reading.ts";
import { type Fields, fieldsOf, jsonOf } from "../../base/json.ts";
import type { Head, Reader } from "../reader.ts";
import { wholeFile } from "../whole-file.ts";
import { textOf } from "./json-rows.ts";
import { PortList } from "./port-list.ts";

const FORMAT = "lldp";
/** A switch of 512 ports has some hundred kilobytes. */
const MAX_BYTES = 1 << 24;

export const lldp: Reader = {
  format: FORMAT,
  sniff: ({ text }: Head): boolean =>
    /^\s*\{\s*"lldp"\s*:\s*[[{]/.test(text) && text.includes('"interface"'),
  open: (file) => wholeFile(MAX_BYTES, (bytes) => read(file, bytes)),
};

function read(file: string, bytes: Buffer | null): Reading {
  const list = new PortList(file, FORMAT);
  if (bytes === null) return list.reading(["is larger than any LLDP answer"]);
  const json = jsonOf(bytes.toString("utf8"));
  if (json === undefined) return list.reading(["the LLDP answer is cut off or broken"]);
  const root = fieldsOf(json);
  const owner = ownerOf(file);
  for (const lldpPart of listOf(root?.["lldp"]))
    for (const [nic, body] of named(fieldsOf(lldpPart)?.["interface"])) {
      const [chassis] = named(body["chassis"]);
      if (!chassis || chassis[0] === "") continue;
      const [name, about] = chassis;
      const port = textOf(valueOf(first(body["port"])?.["id"]));
      if (isSwitch(about)) list.add({ machine: owner, nic, leaf: name });
      else list.add({ machine: name, nic: port, leaf: owner });
    }
  return list.reading([]);
}

/** What may be one thing, a list of things, or things by name. */
function named(value: unknown): [name: string, body: Fields][] {
  return listOf(value).flatMap((item) => {
    const row = fieldsOf(item);
    if (!row) return [];
    const own = textOf(valueOf(row["name"]));
    if (own !== null) return [[own, row]];
    // A neighbour without a name: its fields stand where the name would.
    if (fieldsOf(row["id"]) || Array.isArray(row["id"])) return [["", row]];
    return Object.entries(row).flatMap(([name, body]): [string, Fields][] => {
      const about = fieldsOf(body);
      return about ? [[name, about]] : [];
    });
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function first(value: unknown): Fields | null {
  return fieldsOf(listOf(value)[0]);
}

/** "x", [{ "value": "x" }] or { "type": …, "value": "x" }. */
function valueOf(value: unknown): unknown {
  return typeof value === "string" ? value : first(value)?.["value"];
}

function isSwitch(about: Fields): boolean {
  return listOf(about["capability"]).some((one) => {
    const row = fieldsOf(one);
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
