import { expect, it } from "vitest";
import { openDuckDbHistory } from "../src/history/duckdb-history.ts";
import { historyContract } from "./support/history-contract.ts";
import { incidentOf } from "./support/history-rows.ts";

historyContract("the history in DuckDB", () => openDuckDbHistory(":memory:"));

it("answers whether it is there while many readers wait for their turn", async () => {
  const history = await openDuckDbHistory(":memory:");
  await Promise.all(
    Array.from({ length: 300 }, (_, i) => history.putIncident(incidentOf(`i${i}`, 1, "resolved"))),
  );
  let read = 0;
  const readers = Array.from({ length: 60 }, () => history.incidents({}).then(() => read++));
  await history.ping();
  expect(read).toBeLessThan(readers.length / 2);
  await Promise.all(readers);
  await history.close();
});
