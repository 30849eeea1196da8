/**
 * A forest as JSON: columns as base64 of little-endian numbers, because as decimals they would be three times
 * as long and a formatter would put each on a line. Thresholds and probabilities are float32 already when grown.
 */
import { assert } from "../../src/base/errors.ts";
import type { Forest } from "./forest-grow.ts";

export interface ForestJson {
  readonly features: number;
  /** uint32: first node of each tree. */
  readonly roots: string;
  /** uint8: feature of a node, 255 in a leaf. */
  readonly feature: string;
  /** float32: threshold of a node, probability of a leaf. */
  readonly value: string;
  /** uint16: how far behind a node its right child is. Left is the next. */
  readonly right: string;
  /** float32, by feature. */
  readonly gain: string;
}

const LEAF = 255;

export function forestToJson(forest: Forest): ForestJson {
  assert(forest.features < LEAF, "a feature fits in a byte");
  const { feature, threshold, probability, right } = forest;
  const value = threshold.map((at, node) => (feature[node]! < 0 ? probability[node]! : at));
  const behind = right.map((to, node) => to - node);
  assert(
    behind.every((step) => step < 65536),
    "a tree has fewer than 65,536 nodes",
  );
  return {
    features: forest.features,
    roots: pack(forest.roots, 4, (view, at, root) => view.setUint32(at, root, true)),
    feature: pack(feature, 1, (view, at, asked) => view.setUint8(at, asked < 0 ? LEAF : asked)),
    value: pack(value, 4, (view, at, number) => view.setFloat32(at, number, true)),
    right: pack(behind, 2, (view, at, step) => view.setUint16(at, step, true)),
    gain: pack(forest.gain, 4, (view, at, number) => view.setFloat32(at, number, true)),
  };
}

export function forestFromJson(json: ForestJson): Forest {
  const asked = unpack(json.feature, 1, (view, at) => view.getUint8(at));
  const value = unpack(json.value, 4, (view, at) => view.getFloat32(at, true));
  const behind = unpack(json.right, 2, (view, at) => view.getUint16(at, true));
  const feature = Int32Array.from(asked, (number) => (number === LEAF ? -1 : number));
  return {
    features: json.features,
    roots: Int32Array.from(unpack(json.roots, 4, (view, at) => view.getUint32(at, true))),
    feature,
    threshold: value.map((number, node) => (feature[node]! < 0 ? 0 : number)),
    left: feature.map((number, node) => (number < 0 ? node : node + 1)),
    right: Int32Array.from(behind, (step, node) => node + step),
    probability: value.map((number, node) => (feature[node]! < 0 ? number : 0)),
    gain: unpack(json.gain, 4, (view, at) => view.getFloat32(at, true)),
  };
}

function pack(
  numbers: Int32Array | Float64Array,
  size: number,
  set: (view: DataView, at: number, number: number) => void,
): string {
  const bytes = new Uint8Array(numbers.length * size);
  const view = new DataView(bytes.buffer);
  numbers.forEach((number, i) => set(view, i * size, number));
  return Buffer.from(bytes).toString("base64");
}

function unpack(
  text: string,
  size: number,
  get: (view: DataView, at: number) => number,
): Float64Array {
  const bytes = Buffer.from(text, "base64");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float64Array.from({ length: bytes.length / size }, (_, i) => get(view, i * size));
}
