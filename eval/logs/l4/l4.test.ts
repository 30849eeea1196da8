import { describe, expect, it } from "vitest";
import { normalEvents } from "../../../src/methods/logs/cross-job.ts";
import { poolOf } from "../text-pool.ts";
import { l4 } from "./l4.ts";
import { nodesOf } from "../../../src/methods/logs/nodes.ts";
import {
  digestOf,
  identityTemplates,
  type TestLine,
} from "../../../test/support/methods/log-digest.ts";

function lines(): TestLine[] {
  const all: TestLine[] = [];
  for (let n = 0; n < 40; n++) {
    for (const text of ["starting", "ring 3 up", "shard 7 loaded"])
      all.push({ file: "a.log", host: `gx-${n}`, text });
    // Everybody's retries differ a little.
    for (let i = 0; i < 3 + (n % 4); i++)
      all.push({ file: "a.log", host: `gx-${n}`, text: "retry 2" });
  }
  for (let i = 0; i < 30; i++)
    all.push({ file: "a.log", host: "gx-0", text: `argument ${"y".repeat(i)}` });
  all.push({ file: "a.log", host: "gx-17", text: "cqe status bad" });
  return all;
}

describe("L4 as published", () => {
  const digest = digestOf(lines());
  const templates = identityTemplates(digest);
  const nodes = nodesOf(digest);

  it("is misled by who writes for all", () => {
    const { nodes: ranked } = l4(digest, templates, nodes, null);
    expect(nodes.names[ranked[0]!.node]).toBe("gx-0");
  });

  it("finds the node once healthy jobs took that away", () => {
    const pool = poolOf([templates.texts.filter((text) => text.startsWith("argument"))]);
    const { nodes: ranked, indicating } = l4(digest, templates, nodes, pool);
    expect(nodes.names[ranked[0]!.node]).toBe("gx-17");
    expect([...indicating].map((t) => templates.texts[t])).toContain("cqe status bad");
    expect(ranked).toHaveLength(40);
  });
});

describe("the pool of normal events", () => {
  it("knows what healthy jobs write", () => {
    const pool = poolOf([["starting", "stopping"], ["starting"]]);
    expect(pool.jobs).toBe(2);
    expect([...normalEvents(["starting", "boom"], pool)]).toEqual([1, 0]);
    expect([...normalEvents(["starting", "boom"], null)]).toEqual([0, 0]);
    expect([...normalEvents(["starting"], { ...pool, jobs: 0 })]).toEqual([0]);
  });
});
