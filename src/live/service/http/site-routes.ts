/** What the site has learnt: how right verdicts were, what healthy jobs log, records of its own. */
import { z } from "zod";
import { CAUSES } from "../../../model/cause.ts";
import { CATEGORIES, OWNERS } from "../../../model/fault-record.ts";
import type {
  ForgottenLogs,
  SiteLabels,
  SiteLogs,
  SiteReport,
  SiteScore,
} from "../../../model/site.ts";
import { flag, readQuery, text } from "./queries.ts";
import { get, post, type Route } from "./route.ts";
import { bodyOf, kind, line } from "./workflow-routes.ts";

const score = {
  judged: z.number(),
  right: z.number(),
  low: z.number().describe("of the share that was right, at 95 %"),
  high: z.number(),
  calibration: z.array(
    z.object({
      from: z.number(),
      to: z.number(),
      judged: z.number(),
      right: z.number(),
      said: z.number().describe("mean confidence"),
    }),
  ),
  calibrationError: z.number(),
};
const siteScore: z.ZodType<SiteScore> = z.object(score);
const cause = z.enum(CAUSES);

export const siteLogs: z.ZodType<SiteLogs> = z.object({
  healthyJobs: z.number().describe("jobs that ended well and were learnt from"),
  normalEvents: z.number(),
  jobs: z.array(z.string()).describe("their names, without those of imports"),
  imports: z.array(
    z.object({
      id: z.string(),
      from: z.string().describe("as who imported it said"),
      who: z.string(),
      atMs: z.number(),
      jobs: z.number(),
      normalEvents: z.number(),
      records: z.number(),
    }),
  ),
  records: z.array(
    z.object({
      id: z.string(),
      title: z.string(),
      isOwn: z.boolean().describe("of this site, not of Faultline"),
      confirmed: z.number(),
      disputed: z.number(),
      certainty: z.number().describe("with the votes, 0 to 1"),
    }),
  ),
});

export const site: z.ZodType<SiteReport> = z.object({
  schema: z.literal("faultline.site/1"),
  all: siteScore,
  kinds: z.array(z.object({ kind, ...score })),
  confusions: z
    .array(z.object({ said: cause.nullable(), truth: cause, incidents: z.number() }))
    .describe("said and true causes of verdicts that were wrong"),
  logs: siteLogs.exactOptional(),
});

export const siteLabels: z.ZodType<SiteLabels> = z.object({
  schema: z.literal("faultline.machine-labels/1"),
  labels: z.array(
    z.object({
      machine: z.string(),
      start: z.string().describe("ISO 8601"),
      end: z.string(),
      state: z.enum(["faulty", "healthy"]),
      cause: cause.nullable(),
      incident: z.string(),
    }),
  ),
});

const MOST_LINE = 2000;
const MOST_TITLE = 120;
const MOST_ACTION = 1000;
export const recordBody = z
  .strictObject({
    line: line(MOST_LINE).describe("as it stands in the log"),
    title: line(MOST_TITLE),
    action: line(MOST_ACTION).describe("what to do when it is seen again"),
    category: z.enum(CATEGORIES).exactOptional(),
    cause: cause.exactOptional(),
    owner: z.enum(OWNERS).exactOptional(),
  })
  .refine((body) => body.category !== undefined || body.cause !== undefined, {
    error: "needs a category or a cause",
  });
export const addedRecord = z.object({ id: z.string(), title: z.string() });
/** As `faultline logs export` writes it; looked at more closely where it is taken in. */
export const siteStore = z.looseObject({ schema: z.literal("faultline.logs-store/1") });

const MOST_FORGOTTEN = 500;
export const forgetBody: z.ZodType<ForgottenLogs> = z.union([
  z.strictObject({ job: line(MOST_FORGOTTEN) }),
  z.strictObject({ import: line(MOST_FORGOTTEN).describe("its id") }),
]);
const EXPORT_QUERY = {
  texts: flag(
    "also what healthy jobs log and what people wrote of records, masked as well as can be",
  ),
};
const IMPORT_QUERY = { from: text("where it comes from, for those who read the list later") };

const WITH_BODY = [408, 409, 413, 415, 503];
const EXPORT = "/site/export";
export const EXPORT_PATH = `/api/v1${EXPORT}`;

export const SITE_ROUTES: readonly Route[] = [
  get(
    "/site",
    "Site",
    "How right verdicts were here, by people's judgements, and what was learnt of logs",
    {},
    ({ view }) => view.site(),
  ),
  get(
    "/site/labels",
    "SiteLabels",
    "Judged incidents as labels of machines, for faultline machines train --labels",
    {},
    ({ view }) => view.siteLabels(),
  ),
  post(
    "/site/records",
    "SiteRecord",
    "Make a record of a line that nobody knew; refused where healthy jobs log it, too",
    { body: "SiteRecordBody", errors: WITH_BODY },
    async (ask) => {
      const asked = await bodyOf(ask, recordBody);
      const { id, title } = await ask.view.addRecord(asked, ask.caller.name);
      return { id, title };
    },
  ),
  post(
    "/site/records/:id/remove",
    "SiteLogs",
    "Remove a record of the site's own",
    { errors: [404, 409, 503] },
    ({ view, param, caller }) => view.removeRecord(param("id"), caller.name),
  ),
  post(
    "/site/forget",
    "SiteLogs",
    "Take back a job that was learnt, or an import, with all that came of it",
    { body: "SiteForgetBody", errors: [404, ...WITH_BODY] },
    async (ask) => ask.view.forgetLogs(await bodyOf(ask, forgetBody), ask.caller.name),
  ),
  get(
    EXPORT,
    "SiteStore",
    "What was learnt of logs for other sites: patterns of records, and votes on them",
    EXPORT_QUERY,
    ({ view, request }) =>
      view.exportSite(readQuery(request.url ?? "", EXPORT_QUERY).texts ?? false),
  ),
  post(
    "/site/import",
    "SiteLogs",
    "Add what another site exported",
    { body: "SiteStore", bodyBytes: 8 << 20, query: IMPORT_QUERY, errors: WITH_BODY },
    async (ask) => {
      const { from = "" } = readQuery(ask.request.url ?? "", IMPORT_QUERY);
      return await ask.view.importSite(await bodyOf(ask, siteStore), ask.caller.name, from);
    },
  ),
];
