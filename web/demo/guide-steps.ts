/** The first minute of somebody new, step by step; each is over when the thing has happened. */
import type { Route } from "../shell/route.ts";

export interface GuideFacts {
  readonly page: Route["page"];
  readonly hasJob: boolean;
  readonly isReady: boolean;
  /** Whether the service does not know yet what is normal. */
  readonly isLearning: boolean;
  readonly isBroken: boolean;
  readonly isFound: boolean;
  readonly isFixed: boolean;
}

export interface GuideStep {
  readonly title: string;
  says(facts: GuideFacts): string;
  /** Elements that it may be about, the first that is there is outlined. */
  readonly points: readonly string[];
  isOver(facts: GuideFacts): boolean;
  /** Whether one goes on by a button, for there is nothing to do. */
  readonly hasNext: boolean;
}

/** Who breaks something at once needs no introduction. */
const isOnTheWay = ({ page, isBroken, isFound }: GuideFacts): boolean =>
  page === "job" || isBroken || isFound;

export const GUIDE: readonly GuideStep[] = [
  {
    title: "This is your fleet",
    says: () =>
      "Every job, its health, and what is wrong now. One simulated job of 64 GPUs runs here; the service, its agents and the verdicts are real.",
    points: ["table.jobs", "main section"],
    isOver: isOnTheWay,
    hasNext: true,
  },
  {
    title: "Open the job",
    says: ({ page }) =>
      page === "fleet" ? "Click its name." : "Go to the fleet, and click the job's name.",
    points: ['main a[href^="#/jobs/"]', 'header a[href="#/"]'],
    isOver: isOnTheWay,
    hasNext: false,
  },
  {
    title: "Break a GPU",
    says: ({ isReady, isLearning }) =>
      isReady
        ? "One of the 64 GPUs will compute at a third of its speed. Click GPU below."
        : `${isLearning ? "The service is still learning the healthy pace" : "The job is recovering"}. In a few seconds you can click GPU below.`,
    points: ['[data-break="gpu"]'],
    isOver: ({ isBroken, isFound }) => isBroken || isFound,
    hasNext: false,
  },
  {
    title: "Watch it being found",
    says: () =>
      "Iterations get longer, and all ranks wait for each other: which one is slow? The service compares all ranks with their peers until it knows.",
    points: [".demo-result"],
    isOver: ({ isFound }) => isFound,
    hasNext: false,
  },
  {
    title: "Why that one?",
    says: () => "Open the incident: the verdict, who was compared with whom, and what it costs.",
    points: [".demo-result a", ".demo-result"],
    isOver: ({ page, isFixed }) => page === "incident" || isFixed,
    hasNext: false,
  },
  {
    title: "Approve the action",
    says: ({ isFixed }) =>
      isFixed
        ? "The machine was replaced, and the job is as fast as before. That is all: break something else."
        : "Where there is an Approve, press it, then Yes: the machine is replaced, the job recovers, and the incident is resolved. Where there is none, press Fix here.",
    points: [".confirm .button-primary", "main .button-primary", "#todo-title"],
    isOver: () => false,
    hasNext: false,
  },
];

/** Goes on over all that has happened already. */
export function stepNow(at: number, facts: GuideFacts): number {
  let step = at;
  while (step < GUIDE.length && GUIDE[step]!.isOver(facts)) step++;
  return Math.min(step, GUIDE.length);
}
