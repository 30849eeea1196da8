import { expect, it } from "vitest";
import { parseJobFile } from "./job-file.ts";

it("takes a table of what monitoring calls the machines", () => {
  const names = { node777: ["10.40.21.32", "dcgm-exporter-d66sz"] };
  const { machineNames } = parseJobFile({ machineNames: names }, "job.json");
  expect([...machineNames!]).toEqual([["node777", names.node777]]);
  expect(parseJobFile({}, "job.json").machineNames).toBeNull();
});

it.each([[["node777"]], [{ node777: "10.40.21.32" }], [{ node777: [7] }], [null]])(
  "says what a table of names looks like: %j is none",
  (machineNames) => {
    expect(() => parseJobFile({ machineNames }, "job.json")).toThrow(
      /machineNames must map machines to lists of names/,
    );
  },
);
