/** Exports that are lists: a JSON array of objects, or an object with such an array in it. One broken row costs no other. */
import { count } from "../../base/text.ts";
import { fieldsOf, type Fields } from "../../base/json.ts";
import { JsonObjects } from "../json-objects.ts";
import type { Reading } from "../../model/reading.ts";
import type { Sink } from "../reader.ts";
import type { PortList } from "./port-list.ts";

const MAX_ROW_BYTES = 1 << 22;
const SPACE = /\s/;

export class JsonRowsSink implements Sink {
  readonly list: PortList;
  readonly #what: string;
  readonly #take: (row: Fields) => void;
  readonly #atEnd: () => void;
  #objects: JsonObjects | null = null;
  #bad = 0;

  /** `what`: "nodes", for people. */
  constructor(
    list: PortList,
    what: string,
    take: (row: Fields) => void,
    atEnd: () => void = () => undefined,
  ) {
    this.list = list;
    this.#what = what;
    this.#take = take;
    this.#atEnd = atEnd;
  }

  push(chunk: Uint8Array): void {
    let from = 0;
    if (!this.#objects) {
      while (from < chunk.length && SPACE.test(String.fromCharCode(chunk[from]!))) from++;
      if (from === chunk.length) return;
      const depth = chunk[from] === OPEN_BRACKET ? 1 : 2;
      this.#objects = new JsonObjects(depth, (text) => this.#row(text), MAX_ROW_BYTES);
    }
    this.#objects.push(chunk.subarray(from));
  }

  end(): Reading {
    // Which end of a link is the switch shows in the whole list alone.
    if (!this.#objects?.unfinished) this.#atEnd();
    const wrong: string[] = [];
    if (this.#bad > 0) wrong.push(`${count(this.#bad, "row")} of the ${this.#what} cannot be read`);
    if (this.#objects?.unfinished) wrong.push(`the list of ${this.#what} is cut off`);
    return this.list.reading(wrong);
  }

  #row(text: string): void {
    try {
      const row = fieldsOf(JSON.parse(text));
      if (row) this.#take(row);
    } catch {
      this.#bad++;
    }
  }
}

const OPEN_BRACKET = 91;

export function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
