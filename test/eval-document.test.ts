/** docs/evaluation.md: what was not run is said, what is not found stops it, and no text breaks a table. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { assemble } from "../eval/document/assemble.ts";
import { countedIn, unaccounted, type Chapter, type Row } from "../eval/document/chapter.ts";
import { labResults } from "../eval/document/lab.ts";
import { embedded, escapeCell } from "../eval/document/markdown.ts";
import { CHAPTERS } from "../eval/document/papers.ts";
import { Part } from "../eval/document/part.ts";
import { parseResult, readResult, resultText, type Result } from "../eval/document/results.ts";
import { TOGETHER } from "../eval/document/together.ts";
import { TOPIC_NAMES } from "../eval/document/topics.ts";
import { archivesIn } from "../eval/recordings/archives.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const OUTPUT = [
  "## 2,048 GPUs",
  "",
  "6 cases, seeds from 7",
  "| method | all |",
  "| --- | --- |",
  "| **ours** | 5/6 = 83.3 % |",
  "| theirs | |",
  "",
  "## Other",
  "",
  "| method | time |",
  "|---|---|",
  "| ours | 3 s |",
].join("\n");

function resultOf(output: string, more: Partial<Result> = {}, status = 0): Result {
  return {
    topic: "live",
    isQuick: false,
    commit: "abc1234",
    day: "2026-01-02",
    isChanged: false,
    machine: "2 cores",
    runs: [{ script: "live/run.ts", options: [], seconds: 3, status, output }],
    ...more,
  };
}

const ROW: Row = {
  at: "Figure 1, §2",
  shows: "accuracy",
  published: "97 %",
  script: "live/run.ts",
  under: "2,048 GPUs",
  ours: (part) => part.cell("ours", "all"),
  count: (part) => part.match(/seeds from \d+/),
};

function chapterOf(row: Partial<Row> = {}, paper: Partial<Chapter["paper"]> = {}): Chapter {
  return {
    title: "A paper",
    about: "A question.",
    paper: { cited: "Title", tables: 0, figures: 1, drawings: [], notReproduced: [], ...paper },
    rows: [{ ...ROW, ...row }],
    peers: [],
    scripts: ["live/run.ts"],
  };
}

/** Cells of every table line, bars with a backslash not counted. */
function widths(text: string): number[][] {
  const tables: number[][] = [];
  let isTable = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("|")) {
      if (!isTable) tables.push([]);
      tables.at(-1)!.push(line.split(/(?<!\\)\|/).length - 2);
    }
    isTable = line.startsWith("|");
  }
  return tables;
}

describe("figures out of what was printed", () => {
  const part = new Part("somewhere", OUTPUT);

  it("are found by heading, row and column, whatever is emphasised", () => {
    expect(part.under("2,048").cell("ours", "all")).toBe("5/6 = 83.3 %");
    expect(part.under("Other").cell("ours", "time")).toBe("3 s");
    expect(part.cells("ours", "time")).toEqual(["3 s"]);
    expect(part.match(/seeds from (\d+)/)).toBe("7");
  });

  it("are an error with its place where they are not there", () => {
    expect(() => part.under("4,096 GPUs")).toThrow(/somewhere: no heading .*4,096 GPUs/);
    expect(() => part.under("2,048").cell("ours", "time")).toThrow(/no table with "time"/);
    expect(() => part.cell("nobody's", "all")).toThrow(/no row "nobody's"/);
    expect(() => part.cell("theirs", "all")).toThrow(/nothing in column "all" of row "theirs"/);
    expect(() => part.match(/seeds to/)).toThrow(/nothing like/);
    expect(() => part.matches(/seeds to/g)).toThrow(/nothing like/);
    expect(() => countedIn("many")).toThrow(/no share/);
  });

  it("read shares as they are written", () => {
    expect(countedIn("100.0 % (392/392), 95 %: 99.0–100.0")).toEqual({ right: 392, of: 392 });
    expect(countedIn("1,200 of 26,896 alike")).toEqual({ right: 1200, of: 26_896 });
  });
});

describe("kept results", () => {
  it("come back as they were", () => {
    const result = resultOf(OUTPUT, { isQuick: true, isChanged: true }, 1);
    expect(parseResult(resultText(result), "x")).toEqual(result);
  });

  it("are not split by an output that pretends to be results", () => {
    const hostile = 'a\n<!-- faultline-run {"script":"evil.ts"} -->\nb';
    const back = parseResult(resultText(resultOf(hostile)), "x");
    expect(back.runs.map(({ script }) => script)).toEqual(["live/run.ts"]);
    expect(back.runs[0]!.output).toContain("evil.ts");
  });

  it("keep the first line's indent, by which a line of a single case is known", () => {
    const { runs } = parseResult(resultText(resultOf("\n\n  first case\n  second\n\n")), "x");
    expect(runs[0]!.output).toBe("  first case\n  second");
  });

  it("hold at most some lines of single cases, and say how many more there were", () => {
    const cases = Array.from({ length: 100 }, (_, i) => `WRONG seed ${i}`);
    const { output } = parseResult(
      resultText(resultOf([...cases, "| a |", "|---|", "| 1 |"].join("\n"))),
      "x",
    ).runs[0]!;
    expect(output.match(/WRONG/g)).toHaveLength(60);
    expect(output).toContain("40 more lines");
    expect(output).toContain("| 1 |");
  });

  it("that are something else are refused by name", () => {
    expect(() => parseResult("# notes", "eval/results/live.md")).toThrow(/eval\/results\/live\.md/);
  });
});

describe("the document", () => {
  it("has ours beside the paper's, and what was printed below", () => {
    const text = assemble([resultOf(OUTPUT)], [chapterOf()]);
    expect(text).toMatch(
      /\| Figure 1, §2 \| accuracy \| 97 % \| 5\/6 = 83\.3 % \| seeds from 7 \|/,
    );
    expect(text).toContain("#### 2,048 GPUs");
    expect(text).toContain("abc1234 of 2026-01-02");
    expect(text).not.toContain("Only a quick run");
  });

  it("says what was not run, and how to run it", () => {
    const text = assemble([], [chapterOf()]);
    expect(text).toMatch(/\| Figure 1, §2 \| accuracy \| 97 % \| not run \|/);
    expect(text).toContain("Not run yet: `npm run eval -- live --write`");
  });

  it("says of quick runs that they are, and what they lack", () => {
    const text = assemble(
      [resultOf(OUTPUT, { isQuick: true })],
      [chapterOf({ isFullOnly: true, under: "8,192 GPUs" })],
    );
    expect(text).toContain("Only a quick run, with few cases, is in here of: live");
    expect(text).toContain("not in a quick run");
  });

  it("says of an evaluation that failed that it did", () => {
    expect(assemble([resultOf(OUTPUT, {}, 1)], [chapterOf()])).toContain("ended with status 1");
  });

  it("is not made where a figure is missing, and says which", () => {
    const wrong = chapterOf({ ours: (part) => part.cell("ours", "accuracy") });
    expect(() => assemble([resultOf(OUTPUT)], [wrong])).toThrow(
      /A paper, Figure 1, §2: live\/run\.ts, "2,048 GPUs": no table with "accuracy"/,
    );
  });

  it("is not made where a table of a paper is passed over", () => {
    expect(() => assemble([], [chapterOf({}, { tables: 2 })])).toThrow(
      /nothing is said of Table 1/,
    );
    const told = { at: "Tables 1 and 2", shows: "x", why: "y" };
    const drawings = ["Figures 2 to 4 (drawings)"];
    const chapter = chapterOf({}, { tables: 2, figures: 4, drawings, notReproduced: [told] });
    expect(unaccounted(chapter)).toEqual([]);
  });

  it("keeps its tables whole whatever the text holds", () => {
    const evil = 'a | b\n| c | <script>alert("x")</script> `| ``` |';
    const chapter = chapterOf({
      shows: evil,
      published: evil,
      ours: () => evil,
      count: () => evil,
    });
    const text = assemble([resultOf(OUTPUT, { commit: evil, machine: evil })], [chapter]);
    for (const table of widths(text)) expect(new Set(table).size).toBe(1);
    expect(text).not.toContain("<script>");
  });
});

describe("what is embedded", () => {
  it("cannot become markup, nor end the block of single cases early", () => {
    const text = embedded(
      "# T\n<b>bold</b>\n  case ``` <i>\n  second\n| a |\n|---|\n| <x> |\nafter",
      4,
    );
    expect(text).toContain("#### T");
    expect(text).toContain("&lt;b>");
    expect(text).toContain("| &lt;x> |");
    expect(text).toContain("````text\ncase ``` <i>\nsecond\n````");
    expect(text).toMatch(/\| &lt;x> \|\n\nafter/);
  });

  it("is one line in a cell", () => {
    expect(escapeCell(" a\n b | c \\| d")).toBe("a b \\| c \\| d");
  });
});

describe("one verdict from all inputs", () => {
  /** The columns in another order than the evaluation's, and one more. */
  const joint = (right: string, accused: string, error: string): Result => {
    const table = (title: string): string[] => [
      `## ${title}`,
      "| inputs | new | one component | component and cause | jobs |",
      "|---|---|---|---|---|",
      ...["all", "no-operators", "no-metrics", "no-logs", "no-stacks"].map(
        (name) => `| ${name} | ? | 80.0 % (70 to 90) | ${right} % (60 to 99) | 40 |`,
      ),
    ];
    const output = [
      ...table("By inputs"),
      ...table("Of jobs with a fault"),
      "## Healthy jobs",
      "| inputs | jobs | accused |",
      "|---|---|---|",
      `| all | 40 | ${accused} % (0 to 9) |`,
      "## What each method alone would have answered",
      "All together: 98.0 % (90 to 99), 4.9 points more than logs/library alone",
      "## How far confidence can be trusted",
      `Expected calibration error: ${error} (40 jobs, ten bins)`,
    ].join("\n");
    const run = { script: "joint/run.ts", options: [], seconds: 1, status: 0, output };
    return resultOf("", { topic: "joint", runs: [run] });
  };
  const rowsOf = (result: Result): string[] =>
    assemble([result], [TOGETHER])
      .split("\n")
      .filter((line) => line.includes("](#run-joint-run), "));

  it("marks the aims that were missed, and no others", () => {
    const missed = rowsOf(joint("89.9", "0.6", "0.051")).filter((row) => row.includes("missed"));
    expect(missed.map((row) => row.split(" | ")[0])).toEqual([
      "| all inputs",
      "| against the best single method",
      "| any one kind of input removed",
      "| confidence",
      "| healthy jobs",
    ]);
    expect(missed[2]!.match(/missed/g)).toHaveLength(4);
    const met = rowsOf(joint("97.0", "0.5", "0.050")).filter((row) => row.includes("missed"));
    expect(met.map((row) => row.split(" | ")[0])).toEqual(["| against the best single method"]);
  });

  it("says what counts as right", () => {
    expect(TOGETHER.about).toMatch(/“one component” is strict/);
    expect(TOGETHER.about).toMatch(
      /storage as dataloader \(a loader that waits for storage is both\)/,
    );
    expect(TOGETHER.about).toMatch(/Healthy jobs count/);
    expect(TOGETHER.about).toMatch(/Above 256 GPUs only all inputs/);
    expect(TOGETHER.about).toMatch(/from 13 % to 90 %/);
  });
});

describe("folders of recordings", () => {
  it("that hold none are told in one line", () => {
    for (const folder of [join(root, "no-such"), join(root, "package.json"), join(root, "eval")])
      expect(() => archivesIn(folder)).toThrow(/^\S+ (is not there|is no folder|holds no).*$/);
    expect(archivesIn(join(root, "fixtures/recordings")).length).toBeGreaterThan(10);
  });
});

describe("the committed document", () => {
  it("has as many cells in every row of a table as in its head", () => {
    const text = readFileSync(join(root, "docs/evaluation.md"), "utf8");
    const lines = text.split("\n").filter((line) => line.startsWith("|"));
    const uneven = widths(text).flatMap((table) => table.filter((width) => width !== table[0]));
    expect(lines.length).toBeGreaterThan(100);
    expect(uneven).toEqual([]);
  });

  it("does not pass over a layout without a figure", () => {
    const of = (chapter: string, at: string) =>
      CHAPTERS.find(({ title }) => title.startsWith(chapter))!.rows.find((row) => row.at === at)!;
    const column = "largest error of the mean of any rank: flight recorder";
    const part = new Part(
      "somewhere",
      [
        `| layout | jobs | ${column} | all operators |`,
        "|---|---|---|---|",
        "| 2T2D2P | 1 | 0.12 % | 0.00 % |",
        "| 2T4D1P | 1 | no period | 0.00 % |",
      ].join("\n"),
    );
    expect(of("Greyhound", "Figure 13, §7.2").ours(part)).toMatch(
      /^at most 0.12 % in 1 of 2; 1: no period/,
    );
  });

  it("accounts for every table and figure of the five papers", () => {
    expect(CHAPTERS.filter(({ paper }) => paper).length).toBe(5);
    for (const chapter of CHAPTERS) expect(unaccounted(chapter)).toEqual([]);
  });

  it("is what eval/results give (npm run eval -- document)", () => {
    const results = TOPIC_NAMES.map((topic) => readResult(join(root, "eval/results"), topic));
    const known = [...results.filter((one) => one !== null), labResults(root)];
    expect(readFileSync(join(root, "docs/evaluation.md"), "utf8")).toBe(assemble(known));
  });
});
