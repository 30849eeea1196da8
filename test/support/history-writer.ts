/** Writes to a history until it is killed; a line on stdout for each put that is acknowledged. For history-duckdb.test.ts. */
import { writeSync } from "node:fs";
import { openDuckDbHistory } from "../../src/history/duckdb-history.ts";
import { auditRow, incidentOf, iterationRows, jobRow } from "./history-rows.ts";

const [path = "", round = "0"] = process.argv.slice(2);
// A small log makes the file itself be written often: a kill must find that, too.
const history = await openDuckDbHistory(path, { checkpointAt: "32KB" });
writeSync(1, "open\n");
const acknowledged = (put: Promise<void>, line: string): Promise<void> =>
  put.then(() => void writeSync(1, `${line}\n`));

const text = "x".repeat(2000);
for (let i = 0; ; i++) {
  const name = `${round}-${i}`;
  await Promise.all([
    acknowledged(
      history.putIncident(incidentOf(name, 1, "confirmed", { summary: text })),
      `incident ${name}`,
    ),
    acknowledged(history.putAudit(auditRow(name, i)), `audit ${name}`),
    acknowledged(history.putJob(jobRow("job", `r${round}`, { seenMs: i })), `job ${round} ${i}`),
    acknowledged(history.putDocument(`doc${round}`, { i, text }), `document ${round} ${i}`),
    acknowledged(
      history.putIterations("job", `r${round}`, iterationRows([[i, i, i]])),
      `iteration ${round} ${i}`,
    ),
  ]);
}
