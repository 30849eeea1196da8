/**
 * Who hung, crashed or slowed the job? Every recording with a truth beside it, ours and others', from where they
 * lie: `npm run eval:hangs [FOLDER…]` (default: fixtures/recordings, and ../shared where it exists).
 * Prints a table and the counts; exits with 1 when one is wrong.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execFileSync } from "node:child_process";
import { diagnose } from "../src/pipeline.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const env = { signal: new AbortController().signal, progress: () => undefined };

interface Truth {
  readonly kind: string;
  /** Whether the verdict must say it. */
  readonly isAsked: boolean;
  readonly ranks: readonly number[];
  /** Causes that count as right. */
  readonly causes: readonly string[];
}

/** truth.json of our recordings, fault_injection.log of NVIDIA's resiliency tests. */
function truthIn(folder: string): Truth | null {
  const ours = join(folder, "truth.json");
  if (existsSync(ours)) {
    const { kind, faults } = JSON.parse(readFileSync(ours, "utf8")) as {
      kind: string;
      faults: { ranks: number[]; cause: string }[];
    };
    // Regressions need a baseline and are another question; here they must only not be called hung or crashed.
    const isAsked = kind !== "regression";
    const ranks = isAsked ? faults.flatMap((fault) => fault.ranks) : [];
    return { kind, isAsked, ranks, causes: faults.map((fault) => fault.cause) };
  }
  const injected = join(folder, "fault_injection.log");
  if (!existsSync(injected)) return null;
  const text = readFileSync(injected, "utf8");
  const ranks = /Fault ranks: \[([\d, ]+)\]/.exec(text)![1]!.split(",").map(Number);
  const isGpu = /GPU_ERROR|GPU_SLEEP/.test(text);
  return {
    kind: "hang",
    isAsked: true,
    ranks,
    causes: isGpu ? ["gpu-error", "gpu-hang"] : ["cpu-stall"],
  };
}

function* foldersWithTruth(folder: string): Generator<string> {
  if (truthIn(folder)) yield folder;
  else
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) yield* foldersWithTruth(path);
    }
}

const given = process.argv.slice(2);
const shared = join(root, "../shared");
const places =
  given.length > 0
    ? given
    : [join(root, "fixtures/recordings"), join(shared, "recordings"), join(shared, "thirdparty")];
const unpacked = mkdtempSync(join(tmpdir(), "faultline-eval-"));
let right = 0;
let total = 0;
try {
  console.log("| recording | truth | verdict | confidence | |");
  console.log("|---|---|---|---|---|");
  for (const place of places.filter((path) => existsSync(path))) {
    for (const archive of readdirSync(place).filter((name) =>
      /^(hang|gpuhang|kill|stop|mismatch|oom|nan|raise|slow|reg).*\.tar\.gz$/.test(name),
    )) {
      const to = mkdtempSync(join(unpacked, "case-"));
      execFileSync("tar", ["xzf", join(place, archive), "-C", to]);
      for (const folder of foldersWithTruth(to)) {
        const truth = truthIn(folder)!;
        const { verdict } = await diagnose({ paths: [folder] }, env);
        const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
        // Traces alone do not show that a job ended well: of a regression without its baseline nothing need be said.
        const kinds = truth.isAsked ? [truth.kind] : ["healthy", "undetermined"];
        const isRight =
          kinds.includes(verdict.kind) &&
          blamed.join() === truth.ranks.toSorted((a, b) => a - b).join() &&
          verdict.suspects.every(({ cause }) => truth.causes.includes(cause));
        total++;
        if (isRight) right++;
        const name = folder.slice(to.length + 1) || archive;
        const said = [...new Set(verdict.suspects.map(({ cause }) => cause))].join(", ");
        console.log(
          `| ${dirname(place) === shared ? "shared: " : ""}${name} | ${truth.kind} ${truth.ranks.join()} | ${verdict.kind} ${blamed.join()} ${said} | ${verdict.confidence} | ${isRight ? "" : "**wrong**"} |`,
        );
      }
    }
  }
} finally {
  rmSync(unpacked, { recursive: true, force: true });
}
console.log(`\n${right} of ${total} right`);
process.exitCode = right === total ? 0 : 1;
