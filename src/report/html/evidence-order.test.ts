import { describe, expect, test } from "vitest";
import type { Verdict } from "../../model/verdict.ts";
import { html } from "./escape.ts";
import { type EvidenceSection, placeEvidence } from "./evidence-order.ts";
import { reasonedSlowGpu } from "../../../test/support/report/reasoning.ts";

const section = (id: string, ...shows: EvidenceSection["shows"]): EvidenceSection => ({
  id,
  name: id,
  shows,
  folds: "more",
  body: html`${id}`,
});
const STORY = section("story", "slow/judge");
const SECTIONS = [
  section("waits", "hang/wait-graph"),
  section("iterations", "iterations/"),
  section("machines", "machines/"),
  section("traces", "iterations/"),
];
const OTHER = section("other");

function placed(verdict: Verdict) {
  return placeEvidence(verdict, verdict.findings, [STORY], SECTIONS, OTHER);
}

describe("evidence", () => {
  const { verdict } = reasonedSlowGpu();

  test("that decided comes first and open, then who disagrees, then by weight", () => {
    const { sections } = placed(verdict);
    expect(sections.map(({ id, isOpen }) => [id, isOpen])).toEqual([
      ["machines", true],
      ["other", false],
      ["iterations", false],
      ["traces", false],
      ["waits", false],
    ]);
  });

  test("stands in one place each, story ones in the story", () => {
    const { sections, story, placeOf } = placed(verdict);
    const all = [...[...story.values()].flat(), ...sections.flatMap(({ findings }) => findings)];
    expect(all.map(({ id }) => id).toSorted()).toEqual(["f1", "f2", "f3", "f4", "f5"]);
    expect(placeOf.get("f1")!.id).toBe("story");
    expect(placeOf.get("f4")!.id).toBe("iterations");
    expect(placeOf.get("f5")!.id).toBe("other");
  });

  test("of another verdict is in another order", () => {
    const reasoning = { ...verdict.reasoning!, decidedBy: [{ finding: "f4", times: 9 }] };
    const open = placed({ ...verdict, reasoning }).sections.filter(({ isOpen }) => isOpen);
    expect(open.map(({ id }) => id)).toEqual(["iterations", "traces"]);
  });

  test("opens what weighs most where nobody is accused", () => {
    const { reasoning: _, ...older } = verdict;
    const [first, ...rest] = placed({ ...older, kind: "healthy", suspects: [] }).sections;
    expect([first!.id, first!.isOpen]).toEqual(["iterations", true]);
    expect(rest.some(({ isOpen }) => isOpen)).toBe(false);
  });

  test("has no place for others where there are none", () => {
    const findings = verdict.findings.filter(({ id }) => id === "f2");
    const { sections } = placed({ ...verdict, findings });
    expect(sections.map(({ id }) => id)).not.toContain("other");
  });
});
