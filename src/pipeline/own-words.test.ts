import { expect, it } from "vitest";
import { diagnoseFiles, jobOf } from "../../test/support/in-memory.ts";
import type { Finding } from "../model/finding.ts";
import type { Suspect, Verdict } from "../model/verdict.ts";
import { ownWords } from "./picture.ts";

const LOG = `[rank3]: loading shard 12
[rank3]:[E1116 10:26:57.923189170 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from rank 7 and we will try our best to dump the debug info.
`;

it("the culprit's own words are not what every rank repeats of another's time-out", async () => {
  const job = jobOf([{ name: "rank3.log", bytes: Buffer.from(LOG) }]);
  expect(job.failures).toMatchObject([{ line: 2, role: "echo" }]);
  const keysCiting = async (line: number): Promise<string[]> => {
    const at = [{ file: "rank3.log", line }];
    const finding = { id: "f1", at, says: "", weight: 1 } as unknown as Finding;
    const suspect = { ranks: [3], evidence: ["f1"] } as unknown as Suspect;
    const empty = await diagnoseFiles([]);
    const verdict: Verdict = { ...empty, suspects: [suspect], findings: [finding] };
    const keys = ownWords(job, verdict).logs.flatMap(({ lines }) =>
      lines.filter((one) => one.isKey),
    );
    return keys.map(({ text }) => text);
  };
  expect(await keysCiting(1)).toEqual(["loading shard 12"]);
  expect(await keysCiting(2)).toEqual([]);
});
