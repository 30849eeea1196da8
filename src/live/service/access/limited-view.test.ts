import { describe, expect, it } from "vitest";
import {
  COMMENTED,
  HANDLING,
  INCIDENT,
  MUTE,
  testView,
} from "../../../../test/support/serve-view.ts";
import type { AuditRow } from "../../../history/history.ts";
import type { Mute } from "../../../model/handling.ts";
import type { ServiceView } from "../view.ts";
import { eventFor, viewFor } from "./limited-view.ts";

const JOBS = ["llama*"];
const own = (changed: Partial<ServiceView> = {}) => {
  const { view, asked } = testView(changed);
  return { asked, seen: viewFor(view, { jobs: JOBS }) };
};
const mute = (id: string, job: string | null, who = "ada"): Mute => ({ ...MUTE, id, job, who });
const ask = { ...MUTE, job: "llama" };

describe("who sees some jobs only", () => {
  it("does not learn which incident of another job theirs was merged into", async () => {
    const foreign = { ...COMMENTED, mergedInto: "x-1.a1.hang.i3" };
    const row = { what: "merge", incident: INCIDENT.id, detail: foreign.mergedInto } as AuditRow;
    const { seen } = own({
      handling: async () => foreign,
      handlings: () => new Map([[INCIDENT.id, foreign]]),
      handle: async () => foreign,
      audit: async () => [row],
    });
    const event = { type: "handling", job: INCIDENT.job, handling: foreign } as const;
    const shown = [
      await seen.handling(INCIDENT.id),
      [...seen.handlings()],
      await seen.handle(INCIDENT.id, { do: "acknowledge" }, "ada"),
      await seen.audit({}),
      eventFor(event, JOBS),
    ];
    for (const one of shown) {
      expect(JSON.stringify(one)).not.toContain("x-1");
      expect(JSON.stringify(one)).toContain("hidden");
    }
    expect(eventFor(event, null)).toBe(event);
    const theirs = { ...HANDLING, mergedInto: "llama-2.a1.hang.i3" };
    const kept = eventFor({ ...event, handling: theirs }, JOBS);
    expect(kept).toMatchObject({ handling: { mergedInto: theirs.mergedInto } });
  });

  it("sees the mutes that can silence their jobs, and ends those that are about their jobs alone", async () => {
    const mutes = [
      mute("wide", null),
      mute("overlap", "ll*-7"),
      mute("other", "x-*"),
      mute("own", "llama*"),
    ];
    const { seen, asked } = own({ mutes: () => mutes });
    expect(seen.mutes().map(({ id }) => id)).toEqual(["wide", "overlap", "own"]);
    const event = eventFor({ type: "mutes", mutes }, JOBS);
    expect(event).toMatchObject({ mutes: [{ id: "wide" }, { id: "overlap" }, { id: "own" }] });
    for (const shown of [JSON.stringify(event), JSON.stringify(seen.mutes())]) {
      // Of wide ones nobody else's reason: it may name others' jobs and machines.
      expect(shown.match(/"who":"ada","why":"new firmware"/g)).toHaveLength(1);
      expect(shown.match(/"who":"hidden","why":"hidden"/g)).toHaveLength(2);
    }
    for (const id of ["wide", "overlap"])
      await expect(seen.unmute(id, "ada")).rejects.toMatchObject({ status: 403 });
    await expect(seen.unmute("other", "ada")).rejects.toMatchObject({ status: 404 });
    await seen.unmute("own", "ada");
    expect(asked).toEqual([{ what: "unmute", of: ["own", "ada"] }]);
  });

  it("has a share of the mutes, and leaves the others theirs", async () => {
    const mutes = Array.from({ length: 50 }, (_, i) => mute(`m${i}`, "llama", "team-l"));
    const { seen, asked } = own({ mutes: () => mutes });
    await expect(seen.mute(ask, "team-l")).rejects.toThrow("team-l has 50 mutes already");
    await seen.mute(ask, "team-m");
    expect(asked).toHaveLength(1);
  });

  it("judges for their jobs, and sees how right verdicts were in those", async () => {
    const judged: unknown[] = [];
    const { seen } = own({
      handle: async (...words) => (judged.push(words.at(-1)), HANDLING),
      site: async (jobs) => (judged.push(jobs), null as never),
    });
    const judge = { do: "judge", isRight: true, machine: null, cause: null } as const;
    await seen.handle(INCIDENT.id, judge, "team-l");
    await seen.site();
    expect(judged).toEqual([JOBS, JOBS]);
  });
});
