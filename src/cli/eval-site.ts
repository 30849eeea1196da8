/** `faultline eval site`: how right verdicts were here, from a running service or from the folder of one that is stopped. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pico from "picocolors";
import { errorText, UserError } from "../base/errors.ts";
import { openLocalHistory } from "../history/local-history.ts";
import { howRight, judgementsOf } from "../live/service/site/how-right.ts";
import { handlingsOf } from "../live/service/workflow/deeds.ts";
import type { SiteReport } from "../model/site.ts";
import { renderSiteTerminal } from "../report/site-terminal.ts";
import { wantsColour } from "./output.ts";
import type { Io } from "./io.ts";

export interface EvalSiteFlags {
  readonly service?: string;
  readonly tokenFile?: string;
  readonly data?: string;
  readonly json?: boolean;
}

const PATIENCE_MS = 30_000;
const MOST_ROWS = 100_000;

export async function runEvalSite(io: Io, flags: EvalSiteFlags): Promise<number> {
  const { service, data } = flags;
  if ((service === undefined) === (data === undefined))
    throw new UserError("eval site needs --service URL or --data DIR", "give one of them", 2);
  const report =
    service === undefined ? await ofFolder(data!) : await ofService(io, service, flags);
  if (flags.json) io.out.write(`${JSON.stringify(report, null, 2)}\n`);
  else io.out.write(`${renderSiteTerminal(report, pico.createColors(wantsColour(io)))}\n`);
  return 0;
}

async function ofFolder(folder: string): Promise<SiteReport> {
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
    return howRight(judgementsOf(handlingsOf([...rows].reverse())));
  } finally {
    await history.close();
  }
}

async function ofService(io: Io, service: string, flags: EvalSiteFlags): Promise<SiteReport> {
  const token = tokenOf(io, flags);
  let answer: Response;
  try {
    answer = await fetch(new URL("/api/v1/site", service), {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  } catch (error) {
    throw new UserError(
      `${service} does not answer: ${errorText(error)}`,
      "give the URL of a running faultline serve",
    );
  }
  const hint =
    answer.status === 401 || answer.status === 403
      ? "give a token of scope read with --token-file or FAULTLINE_TOKEN"
      : "is it a faultline serve of this version?";
  if (!answer.ok) throw new UserError(`${service} answers with ${answer.status}`, hint);
  const report = (await answer.json().catch(() => null)) as SiteReport | null;
  if (report?.schema !== "faultline.site/1")
    throw new UserError(`${service} answers with something else`, hint);
  return report;
}

function tokenOf(io: Io, { tokenFile }: EvalSiteFlags): string | null {
  if (tokenFile === undefined) return io.env["FAULTLINE_TOKEN"] || null;
  try {
    return readFileSync(tokenFile, "utf8").trim();
  } catch (error) {
    throw new UserError(`${tokenFile} cannot be read: ${errorText(error)}`, "check the path", 2);
  }
}
