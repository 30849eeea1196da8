/** Where messages go in NATS. Names of jobs and agents fit a subject's token (NAME), so nothing is escaped. */
const ROOT = "faultline.v1";

export const STREAM = "FAULTLINE";
export const LEASES = "FAULTLINE_LEASES";
export const JOBS = "FAULTLINE_JOBS";
/** Services that share what only one of them has to hear. */
export const QUEUE = "faultline";

export const subjects = {
  allReports: `${ROOT}.report.>`,
  report: (job: string, agent: string): string => `${ROOT}.report.${job}.${agent}`,
  reportsOf: (job: string): string => `${ROOT}.report.${job}.*`,
  announce: (job: string): string => `${ROOT}.announce.${job}`,
  /** An agent is there: its hello, every few seconds. */
  present: (agent: string): string => `${ROOT}.present.${agent}`,
  /** A service begins with a job: its agents introduce themselves. */
  follow: (job: string): string => `${ROOT}.follow.${job}`,
  ask: (agent: string): string => `${ROOT}.ask.${agent}`,
  askRank: (job: string, rank: number): string => `${ROOT}.ask.${job}.${rank}`,
} as const;

/** Seconds between what is said again and again, in milliseconds. */
export const SAY_AGAIN_MS = 2000;
