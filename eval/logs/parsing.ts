/**
 * Templates against people's own (Loghub-2k): raw lines in, one configuration for all sets. Beside it parsers that were
 * given the sets' header formats: Drain3 with one list of masks, Drain3 and Brain with thresholds and masks for each set
 * (our own runs of their code on the same files).
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { FormReader } from "../../src/ingest/logs/form-reader.ts";
import { mergeDigests } from "../../src/ingest/logs/merge-digests.ts";
import { LogEngine, MOST_FORMS } from "../../src/ingest/logs/scanner.ts";
import { shippedMatchers } from "../../src/library/shipped.ts";
import { templatesOf } from "../../src/methods/logs/templates/templates.ts";
import { unpacked } from "../unpacked.ts";
import { LAYOUTS, underHeader } from "./parsing-headers.ts";
import { mutated } from "./parsing-mutate.ts";
import { meanScore, parsingScore, type ParsingScore } from "./parsing-scores.ts";
import { DEVELOPED_ON, HELD_OUT, parsingSet, type ParsingSet } from "./parsing-truth.ts";

interface Peers {
  readonly generic: readonly [ga: number, fga: number];
  readonly tuned: readonly [ga: number, fga: number];
  readonly brain: number;
}

const PEERS: Readonly<Record<string, Peers>> = {
  HDFS: { generic: [0.9975, 0.867], tuned: [0.9975, 0.839], brain: 0.9975 },
  BGL: { generic: [0.9685, 0.844], tuned: [0.9625, 0.833], brain: 0.986 },
  Linux: { generic: [0.6865, 0.93], tuned: [0.69, 0.93], brain: 0.996 },
  OpenStack: { generic: [0.3095, 0.5], tuned: [0.7325, 0.117], brain: 1 },
  Proxifier: { generic: [0.017, 0.087], tuned: [0.5265, 0.538], brain: 1 },
  Spark: { generic: [0.9225, 0.87], tuned: [0.92, 0.769], brain: 0.9975 },
  HealthApp: { generic: [0.9005, 0.939], tuned: [0.78, 0.351], brain: 1 },
  OpenSSH: { generic: [0.718, 0.76], tuned: [0.7875, 0.824], brain: 1 },
  Thunderbird: { generic: [0.9575, 0.793], tuned: [0.955, 0.773], brain: 0.971 },
  Zookeeper: { generic: [0.9665, 0.854], tuned: [0.9665, 0.854], brain: 0.9875 },
};
const MATCHERS = shippedMatchers();
const SEEDS = [20_001, 20_002, 20_003];

export async function runParsing(): Promise<string> {
  const archive = fileURLToPath(
    new URL("../../../shared/thirdparty/parsing-loghub-2k.tar.gz", import.meta.url),
  );
  if (!existsSync(archive))
    return "No sets for parsing here (../shared/thirdparty/parsing-loghub-2k.tar.gz).\n";
  return await unpacked(archive, (folder) => {
    const sets = [...DEVELOPED_ON, ...HELD_OUT].map((name) => parsingSet(folder, name));
    return Promise.resolve(report(sets));
  });
}

/** Remembers the shape of every line that the scanner reads. */
class RecordingReader extends FormReader {
  readonly shapeOf: number[] = [];

  override read(buf: Buffer, from: number, to: number): void {
    super.read(buf, from, to);
    this.shapeOf.push(this.shape);
  }
}

/** The template of every line, as the command finds it: raw bytes through its own scanner, then its own templates. */
function groupsOf(lines: readonly string[]): Int32Array {
  const reader = new RecordingReader((text) => MATCHERS.couldMatch(text), MOST_FORMS);
  const scanner = new LogEngine({ isTelling: (text) => MATCHERS.couldMatch(text) }, reader);
  scanner.begin(0);
  scanner.push(Buffer.from(lines.join("\n")));
  scanner.end();
  const { of } = templatesOf(mergeDigests(["log"], [scanner.digest()]).shapes);
  // The scanner does not read empty lines; of what has no shape every line is a group of its own.
  let read = 0;
  return Int32Array.from(lines, (line, i) => {
    const shape = line === "" ? -1 : reader.shapeOf[read++]!;
    return shape < 0 ? -1 - i : of[shape]!;
  });
}

function report(sets: readonly ParsingSet[]): string {
  const scores = new Map(sets.map((set) => [set.name, scoreOf(set)]));
  const rows = sets.map(({ name }) => setRow(name, scores.get(name)!));
  const scoresOf = (names: readonly string[]) => names.map((name) => scores.get(name)!);
  const others = SEEDS.map((seed) =>
    meanScore(sets.map((set, i) => scoreOf(mutated(set, seed + 1000 * i)))),
  );
  return `${[
    "## Templates (Loghub-2k, raw lines, one configuration)",
    "",
    "| set | GA | FGA | templates / true | Drain3 generic GA (FGA) | Drain3 tuned GA (FGA) | Brain GA |",
    "|---|---|---|---|---|---|---|",
    ...rows,
    meanRow("mean, rules made with these in view", DEVELOPED_ON, scoresOf(DEVELOPED_ON)),
    meanRow("mean, held out but for scores and headers", HELD_OUT, scoresOf(HELD_OUT)),
    meanRow("mean of all", [...DEVELOPED_ON, ...HELD_OUT], [...scores.values()]),
    "",
    `Other headers (three kinds mixed in every file), numbers and hosts: ${others
      .map(({ ga, fga }) => `GA ${ga.toFixed(3)}, FGA ${fga.toFixed(3)}`)
      .join("; ")} (seeds ${SEEDS.join(", ")}).`,
    "",
    "The messages of all sets under one made-up header a file, which is to be learnt from the file:",
    "",
    "| header | GA | FGA |",
    "|---|---|---|",
    ...Object.keys(LAYOUTS).map((layout) => layoutRow(layout, sets)),
  ].join("\n")}\n`;
}

function layoutRow(layout: string, sets: readonly ParsingSet[]): string {
  const { ga, fga } = meanScore(sets.map((set) => scoreOf(underHeader(set, layout))));
  return `| ${layout} | ${ga.toFixed(4)} | ${fga.toFixed(3)} |`;
}

function scoreOf(set: ParsingSet): ParsingScore {
  return parsingScore(groupsOf(set.lines), set.events);
}

function setRow(name: string, { ga, fga, templates, truths }: ParsingScore): string {
  const { generic, tuned, brain } = PEERS[name]!;
  return `| ${name} | ${ga.toFixed(4)} | ${fga.toFixed(3)} | ${templates} / ${truths} | ${pair(generic)} | ${pair(tuned)} | ${brain.toFixed(4)} |`;
}

function meanRow(title: string, names: readonly string[], scores: readonly ParsingScore[]): string {
  const { ga, fga } = meanScore(scores);
  const mean = (of: (peers: Peers) => number): number =>
    names.reduce((sum, name) => sum + of(PEERS[name]!), 0) / names.length;
  const generic = pair([mean((p) => p.generic[0]), mean((p) => p.generic[1])]);
  const tuned = pair([mean((p) => p.tuned[0]), mean((p) => p.tuned[1])]);
  return `| **${title}** | **${ga.toFixed(4)}** | **${fga.toFixed(3)}** | | ${generic} | ${tuned} | ${mean((p) => p.brain).toFixed(4)} |`;
}

function pair([ga, fga]: readonly [number, number]): string {
  return `${ga.toFixed(4)} (${fga.toFixed(3)})`;
}
