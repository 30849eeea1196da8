/** The chapter on one verdict out of all inputs: aims, what was reached, what was missed, and what counts as right. */
import { USUAL_COST } from "../joint/scenarios/draw-fault.ts";
import { ACCEPTED } from "../joint/score.ts";
import type { Chapter, Row } from "./chapter.ts";
import type { Part } from "./part.ts";

const SCRIPT = "joint/run.ts";
const RIGHT = "component and cause";
const REDUCED = ["no-operators", "no-metrics", "no-logs", "no-stacks"] as const;

/** The figure, and whether it is what was aimed at: a quick run's few jobs are held to the same. */
function against(figure: string, isMet: (value: number) => boolean): string {
  const value = Number.parseFloat(figure);
  if (Number.isNaN(value)) throw new Error(`no figure in "${figure}"`);
  return `${figure}${isMet(value) ? "" : ", **missed**"}`;
}

const jobs = (part: Part): string => `n ${part.cell("all", "jobs")}`;

const rows: readonly Row[] = [
  {
    at: "all inputs",
    shows: "component and cause right",
    published: "≥ 97 %",
    script: SCRIPT,
    under: "By inputs",
    ours: (part) => against(part.cell("all", RIGHT), (value) => value >= 97),
    count: jobs,
  },
  {
    at: "all inputs, strict",
    shows: "one component named, not a group that holds it",
    published: "none set",
    script: SCRIPT,
    under: "By inputs",
    isFullOnly: true,
    ours: (part) => part.cell("all", "one component"),
    count: jobs,
  },
  {
    at: "all inputs, jobs with a fault",
    shows: "component and cause right, healthy jobs not counted",
    published: "none set",
    script: SCRIPT,
    under: "Of jobs with a fault",
    isFullOnly: true,
    ours: (part) => part.cell("all", RIGHT),
    count: jobs,
  },
  {
    at: "against the best single method",
    shows: "points gained by putting methods together",
    published: "≥ 5 points",
    script: SCRIPT,
    under: "What each method alone",
    ours: (part) =>
      against(
        part.match(/All together: .*, (-?[\d.]+ points more than \S+ alone)/),
        (value) => value >= 5,
      ),
    count: () => "the jobs with all inputs",
  },
  {
    at: "any one kind of input removed",
    shows: "component and cause right",
    published: "≥ 90 % each",
    script: SCRIPT,
    under: "By inputs",
    ours: (part) =>
      REDUCED.map(
        (name) => `${name} ${against(part.cell(name, RIGHT), (value) => value >= 90)}`,
      ).join("; "),
    count: (part) => REDUCED.map((name) => `${name}: n ${part.cell(name, "jobs")}`).join(", "),
  },
  {
    at: "confidence",
    shows: "expected calibration error",
    published: "≤ 0.05",
    script: SCRIPT,
    under: "How far confidence",
    ours: (part) =>
      against(part.match(/Expected calibration error: ([\d.]+)/), (value) => value <= 0.05),
    count: (part) => part.match(/Expected calibration error: [\d.]+ \(([^)]*)\)/),
  },
  {
    at: "healthy jobs",
    shows: "somebody accused, all inputs",
    published: "≤ 0.5 %",
    script: SCRIPT,
    under: "Healthy jobs",
    isFullOnly: true,
    ours: (part) => against(part.cell("all", "accused"), (value) => value <= 0.5),
    count: jobs,
  },
];

const accepted = ACCEPTED.map(
  ({ causes, as, because }) => `${causes.join(", ")} as ${as.join(" or ")} (${because})`,
).join("; ");

const percent = (share: number): string => `${Math.round(100 * share)} %`;

const about = [
  "One truth told by operators, metrics, logs and stacks of one simulated job, often with something that misleads; `diagnose` answers with all of it, and with each kind of input taken away. Read the figures with this in mind:",
  "",
  "- Right is a first suspect that is the true component, with the true cause. Further suspects do not count; of two slow-downs either may come first, beside a stop only the stop is the answer. Whether the kind of verdict is right has a column of its own.",
  `- Where the files that are left cannot tell two causes apart, the other counts as well: ${accepted}. The column “cause's very word” is without this.`,
  "- Where the files cannot tell the members of a collective apart (one of them hangs in it, or a way between them is slow and no counter of a NIC is there), the group counts if it is small: at most 16 ranks or an eighth of the job. Without operators a slow rank's machine counts. The column “one component” is strict: there neither does.",
  "- Healthy jobs count, too: right is that nobody is accused. They lift the figure where methods are silent; “Of jobs with a fault” is without them.",
  "- Above 256 GPUs only all inputs were asked: rows with an input removed are of the smaller jobs.",
  `- Slow-downs are drawn from ${percent(USUAL_COST.least)} to ${percent(USUAL_COST.most)} of an iteration, without noise; with the noise of the job the least are seen as a tenth. Fainter ones are not in these figures.`,
  "- An aim that was not reached is marked as missed.",
].join("\n");

export const TOGETHER: Chapter = {
  title: "All together: one verdict",
  about,
  rows,
  peers: [],
  scripts: [SCRIPT],
};
