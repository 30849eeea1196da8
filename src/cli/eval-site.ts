/** `faultline eval site`: how right verdicts were here, from a running service or from the folder of one that is stopped. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pico from "picocolors";
import { errorText, UserError } from "../base/errors.ts";
import { harmless } from "../base/text.ts";
import { openLocalHistory } from "../history/local-history.ts";
import {
  howRight,
  judgementsOf,
  type Judged,
  withoutLimited,
} from "../live/service/site/how-right.ts";
import { labelsOf } from "../live/service/site/labels.ts";
import { handlingsOf } from "../live/service/workflow/deeds.ts";
import type { SiteLabels, SiteReport } from "../model/site.ts";
import { renderSiteTerminal } from "../report/site-terminal.ts";
import { askService } from "./ask-service.ts";
import { printJson, wantsColour } from "./output.ts";
import type { Io } from "./io.ts";

export interface EvalSiteFlags {
  readonly service?: string;
  readonly tokenFile?: string;
  readonly data?: string;
  readonly labels?: string;
  readonly json?: boolean;
}

const MOST_ROWS = 100_000;

export async function runEvalSite(io: Io, flags: EvalSiteFlags): Promise<number> {
  const { service, data } = flags;
  if ((service === undefined) === (data === undefined))
    throw new UserError("eval site needs --service URL or --data DIR", "give one of them", 2);
  if (flags.labels !== undefined) return await writeLabels(io, flags.labels, flags);
  const report =
    service === undefined
      ? howRight((await ofFolder(data!)).judgements)
      : await askService<SiteReport>(
          io,
          service,
          "/api/v1/site",
          "faultline.site/1",
          flags.tokenFile,
        );
  if (flags.json) printJson(io, report);
  else io.out.write(`${renderSiteTerminal(report, pico.createColors(wantsColour(io)))}\n`);
  return 0;
}

async function writeLabels(io: Io, file: string, flags: EvalSiteFlags): Promise<number> {
  const found =
    flags.service === undefined
      ? (await ofFolder(flags.data!)).labels
      : await askService<SiteLabels>(
          io,
          flags.service,
          "/api/v1/site/labels",
          "faultline.machine-labels/1",
          flags.tokenFile,
        );
  await writeFile(file, `${JSON.stringify(found, null, 1)}\n`).catch((error: unknown) => {
    throw new UserError(`cannot write ${file}: ${errorText(error)}`, "check the path");
  });
  const count = found.labels.length;
  io.out.write(
    `${count} labels: ${harmless(file)}; use them with faultline machines train TASK… --labels ${harmless(file)}\n`,
  );
  return 0;
}

async function ofFolder(
  folder: string,
): Promise<{ readonly judgements: readonly Judged[]; readonly labels: SiteLabels }> {
  const path = join(folder, "history.duckdb");
  if (![path, path.replace(/duckdb$/, "jsonl")].some((file) => existsSync(file)))
    throw new UserError(
      `${folder} holds no history of a service`,
      "give the folder that serve --data names",
      3,
    );
  const { history } = await openLocalHistory(path);
  try {
    const rows = await history.audit({ most: MOST_ROWS });
    const judgements = judgementsOf(withoutLimited(handlingsOf([...rows].reverse())));
    const incidentsOf = (ids: readonly string[]) => history.incidents({ ids, most: ids.length });
    const labels = await labelsOf(judgements, incidentsOf, Date.now());
    return { judgements, labels };
  } finally {
    await history.close();
  }
}
