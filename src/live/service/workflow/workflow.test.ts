import { beforeEach, describe, expect, it } from "vitest";
import { testIncident } from "../../../../test/support/live/incident.ts";
import type { AuditRow } from "../../../history/history.ts";
import type { Handling } from "../../../model/handling.ts";
import type { Incident } from "../../../model/incident.ts";
import { peopleIn } from "./deeds.ts";
import { Workflow } from "./workflow.ts";

const MINUTE_MS = 60_000;
const OPEN = testIncident();
const OTHER = testIncident({ id: "qwen.r1.hang.i120", job: "qwen" });
const OVER = testIncident({ id: "llama.r1.slow.i9", state: "resolved", resolvedMs: 1 });

let rows: AuditRow[];
let nowMs: number;
let told: { incident: string | null; handling: Handling | null }[];
let isAway: boolean;
/** What was read arrives after this. */
let read: Promise<void>;

beforeEach(() => {
  rows = [];
  nowMs = 1_700_000_000_000;
  told = [];
  isAway = false;
  read = Promise.resolve();
});

type Place = Pick<AuditRow, "atMs" | "id">;
const newestFirst = (a: Place, b: Place): number => b.atMs - a.atMs || (a.id < b.id ? 1 : -1);

/** Another process on the same trail, as after a restart or beside this one. */
function service(incidents: readonly Incident[] = [OPEN, OVER, OTHER]): Workflow {
  let ids = 0;
  const prefix = `s${told.length}-${rows.length}-`;
  return new Workflow({
    nowMs: () => nowMs,
    newId: () => `${prefix}${ids++}`,
    history: {
      audit: async ({ incident, before, most = 1000 }) => {
        const found = rows
          .filter((row) => incident === undefined || row.incident === incident)
          .filter((row) => !before || newestFirst(before, row) < 0)
          .sort(newestFirst)
          .slice(0, most);
        await read;
        return found;
      },
      putAudit: async (row) => {
        if (isAway) throw new Error("away");
        rows.push(row);
      },
    },
    incident: async (id) => incidents.find((one) => one.id === id) ?? null,
    machines: async () => ["node003", "node7.cluster.local", "node000", "x1.east", "x1.west"],
    changed: (incident, handling) => told.push({ incident: incident?.id ?? null, handling }),
  });
}

it("knows all people of the trail, however they signed in, and who was to look after an incident", () => {
  const row = (who: string, what: string, detail = ""): AuditRow => ({
    id: `${who} ${what}`,
    atMs: 1,
    incident: OPEN.id,
    action: "",
    who,
    what,
    detail,
  });
  const people = peopleIn([
    row("oidc:ada@acme.com", "comment"),
    row("slack:U12 (grace)", "acknowledge"),
    row("slack:U13", "acknowledge"),
    row("ops", "assign", "linus"),
    row("ops", "assign"),
    row("service", "run"),
  ]);
  expect([...people].sort()).toEqual(["U12", "U13", "ada@acme.com", "grace", "linus", "ops"]);
});

describe("what people do about an incident", () => {
  it("is kept in the order in which it was done, and is the same after a restart", async () => {
    const first = service();
    await first.handle(OPEN.id, { do: "acknowledge" }, "ada");
    await first.handle(OPEN.id, { do: "acknowledge" }, "grace");
    await first.handle(OPEN.id, { do: "assign", to: "linus" }, "grace");
    await first.handle(OPEN.id, { do: "assign", to: null }, "grace");
    await first.handle(OPEN.id, { do: "assign", to: "grace" }, "ada");
    await first.handle(OPEN.id, { do: "comment", text: "one\n**two**" }, "ada");
    const done = await first.handle(
      OPEN.id,
      { do: "judge", isRight: false, machine: "NODE7", cause: "network-slow" },
      "ada",
    );
    // Who was first knows of it: the second is not in the way.
    expect(done.acknowledged?.who).toBe("ada");
    expect(done.assignee).toBe("grace");
    expect(done.commentCount).toBe(1);
    expect((await first.commented(OPEN.id)).comments.map(({ text }) => text)).toEqual([
      "one\n**two**",
    ]);
    expect(done.judgement).toMatchObject({
      isRight: false,
      machine: "node7.cluster.local",
      said: { confidence: OPEN.verdict!.confidence, machines: OPEN.machines },
    });
    const second = service();
    await second.refresh();
    expect(await second.handling(OPEN.id)).toEqual(done);
    expect(rows.map(({ what, who }) => `${who} ${what}`)).toEqual([
      "ada acknowledge",
      "grace acknowledge",
      "grace assign",
      "grace assign",
      "ada assign",
      "ada comment",
      "ada judge",
    ]);
  });

  it("of another service is seen at the next look, and told", async () => {
    const here = service();
    await here.refresh();
    await here.handle(OPEN.id, { do: "comment", text: "here" }, "ada");
    const there = service();
    await there.refresh();
    nowMs += 1000;
    await there.handle(OPEN.id, { do: "acknowledge" }, "grace");
    told = [];
    await here.refresh();
    expect(told).toHaveLength(1);
    expect((await here.handling(OPEN.id)).acknowledged?.who).toBe("grace");
    expect(await here.handling(OPEN.id)).toEqual(await there.handling(OPEN.id));
    told = [];
    await here.refresh();
    expect(told).toEqual([]);
  });

  it("is not lost where another service's deeds are read meanwhile", async () => {
    const here = service();
    await here.refresh();
    await service().handle(OPEN.id, { do: "acknowledge" }, "grace");
    let arrive: () => void = () => undefined;
    read = new Promise((resolve) => (arrive = resolve));
    const refreshed = here.refresh();
    const commented = here.handle(OPEN.id, { do: "comment", text: "here" }, "ada");
    // As far as it comes without the answer.
    await new Promise((resolve) => setImmediate(resolve));
    arrive();
    await Promise.all([refreshed, commented]);
    const { commentCount, acknowledged } = await here.handling(OPEN.id);
    expect([commentCount, acknowledged?.who]).toEqual([1, "grace"]);
  });

  it("is not done where it cannot be written down", async () => {
    const workflow = service();
    isAway = true;
    await expect(workflow.handle(OPEN.id, { do: "acknowledge" }, "ada")).rejects.toMatchObject({
      status: 503,
    });
    expect((await workflow.handling(OPEN.id)).acknowledged).toBeNull();
    expect(workflow.hush(OPEN)).toBeNull();
  });

  it("is refused where it makes no sense", async () => {
    const workflow = service();
    const refused = (id: string, asked: Parameters<Workflow["handle"]>[1]) =>
      workflow.handle(id, asked, "ada").then(
        () => 200,
        (error: { status: number }) => error.status,
      );
    expect(await refused("nobody", { do: "acknowledge" })).toBe(404);
    expect(await refused(OPEN.id, { do: "reopen", why: "still slow" })).toBe(409);
    expect(await refused(OVER.id, { do: "close" })).toBe(409);
    expect(await refused(OPEN.id, { do: "merge", into: "nobody" })).toBe(404);
    expect(await refused(OPEN.id, { do: "merge", into: OPEN.id })).toBe(409);
    expect(await refused(OPEN.id, { do: "merge", into: OVER.id })).toBe(200);
    expect(await refused(OVER.id, { do: "merge", into: OPEN.id })).toBe(409);
    expect(rows).toHaveLength(1);
  });

  it("that reopens incidents puts them among the open ones until somebody closes them", async () => {
    const workflow = service();
    await workflow.handle(OVER.id, { do: "reopen", why: "still slow" }, "ada");
    expect([...workflow.reopened()]).toEqual([OVER.id]);
    await workflow.handle(OVER.id, { do: "close" }, "ada");
    expect(workflow.reopened().size).toBe(0);
  });

  it("can take a resolved incident up again, and close it", async () => {
    const workflow = service();
    const again = await workflow.handle(OVER.id, { do: "reopen", why: "still slow" }, "ada");
    expect(again.reopened).toMatchObject({ who: "ada", why: "still slow" });
    expect((await workflow.handle(OVER.id, { do: "close" }, "ada")).reopened).toBeNull();
  });

  it("at once: each rests on the one before, and no circle of merges comes of it", async () => {
    const workflow = service();
    const said = await Promise.allSettled([
      workflow.handle(OPEN.id, { do: "merge", into: OVER.id }, "ada"),
      workflow.handle(OVER.id, { do: "merge", into: OPEN.id }, "grace"),
      ...Array.from({ length: 6 }, (_, i) =>
        workflow.handle(OPEN.id, { do: "comment", text: `${i}` }, "ada"),
      ),
    ]);
    expect(said.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      ...Array.from({ length: 6 }, () => "fulfilled"),
    ]);
    expect((await workflow.commented(OPEN.id)).comments).toHaveLength(6);
    // Two services at once may: neither incident is kept quiet then.
    rows.push({ ...rows[0]!, id: "z", incident: OVER.id, detail: OPEN.id, atMs: nowMs + 9 });
    const other = service();
    await other.refresh();
    expect(other.hush(OPEN)).toBeNull();
  });

  it("is known after a restart however much else is in the trail", async () => {
    const first = service();
    const untilMs = nowMs + 60 * MINUTE_MS;
    const mute = { kind: "mute", machine: null, cause: null, why: "known", untilMs } as const;
    await first.mute({ ...mute, job: "*", fromMs: nowMs }, "ada");
    await first.handle(OPEN.id, { do: "acknowledge" }, "ada");
    for (let i = 0; i < 25_000; i++)
      rows.push({
        id: `noise${i}`,
        atMs: nowMs + 10 + i,
        who: "r",
        what: "refuse",
        incident: `x${i}`,
        action: "",
        detail: "",
      });
    const later = service();
    await later.refresh();
    expect(later.mutes()).toHaveLength(1);
    expect(later.handlings.get(OPEN.id)?.acknowledged?.who).toBe("ada");
  });

  it("is forgotten in memory where much else was touched since, and read again where it is asked for", async () => {
    const many = Array.from({ length: 10_050 }, (_, i) =>
      testIncident({ id: `llama.r1.slow.n${i}` }),
    );
    rows = many.map(({ id }, i) => ({
      id: `r${i}`,
      atMs: i,
      who: "ada",
      what: "comment",
      action: "",
      detail: "x",
      incident: id,
    }));
    const workflow = service(many);
    await workflow.refresh();
    expect(workflow.handlings.size).toBe(10_000);
    expect((await workflow.commented(many[0]!.id)).comments).toHaveLength(1);
    await workflow.handle(many[0]!.id, { do: "assign", to: "ada" }, "ada");
    expect(workflow.handlings.size).toBe(10_000);
    expect(await workflow.handling(many[0]!.id)).toMatchObject({
      assignee: "ada",
      commentCount: 1,
    });
    // What others wrote is told with the count alone, however long it is.
    expect(JSON.stringify(told.at(-1)).length).toBeLessThan(500);
  });

  it("is acknowledged until the incident comes back: then somebody must hear of it again", async () => {
    let now = OPEN;
    const workflow = new Workflow({
      nowMs: () => nowMs,
      newId: () => `r${rows.length}`,
      history: {
        audit: async () => [...rows].reverse(),
        putAudit: async (row) => void rows.push(row),
      },
      incident: async () => now,
      machines: async () => [],
      changed: () => undefined,
    });
    await workflow.handle(OPEN.id, { do: "acknowledge" }, "ada");
    expect(workflow.hush(now)?.who).toBe("ada");
    now = { ...OPEN, state: "relapsed", relapses: OPEN.relapses + 1 };
    expect(workflow.hush(now)).toBeNull();
    await workflow.handle(OPEN.id, { do: "acknowledge" }, "grace");
    expect(workflow.hush(now)?.who).toBe("grace");
    const again = service([now]);
    await again.refresh();
    expect(again.hush(now)?.who).toBe("grace");
  });

  it("does not call a verdict right that named another machine or cause", async () => {
    const judge = (machine: string | null, cause: "gpu-hang" | "storage" | null) =>
      service().handle(OPEN.id, { do: "judge", isRight: true, machine, cause }, "ada");
    for (const [machine, cause] of [
      ["node000", null],
      [null, "storage"],
      ["node000", "storage"],
    ] as const)
      await expect(judge(machine, cause)).rejects.toMatchObject({ status: 400 });
    expect(rows).toEqual([]);
    expect((await judge("NODE003.cluster.local", "gpu-hang")).judgement).toMatchObject({
      isRight: true,
      machine: "node003",
    });
  });

  it("names machines as they are known, and refuses others with those that are near", async () => {
    const judge = (machine: string) =>
      service().handle(OPEN.id, { do: "judge", isRight: false, machine, cause: null }, "ada");
    expect((await judge("NODE000.cluster.local")).judgement?.machine).toBe("node000");
    for (const unknown of ["node777", "x1", "x1.north"])
      await expect(judge(unknown)).rejects.toMatchObject({ status: 400 });
    await expect(judge("node0777")).rejects.toThrow(
      "no machine node0777 is known; there are node000, node003, node7.cluster.local, x1.east, x1.west",
    );
    const limited = { do: "judge", isRight: false, machine: "node0777", cause: null } as const;
    await expect(service().handle(OPEN.id, limited, "team-l", ["llama"])).rejects.toThrow(
      /no machine node0777 is known; there are node003$/,
    );
  });

  it("by who sees some jobs replaces no judgement of anybody else", async () => {
    const workflow = service();
    const judge = (isRight: boolean) =>
      ({ do: "judge", isRight, machine: null, cause: null }) as const;
    const now = async () => (await workflow.handling(OPEN.id)).judgement;
    await workflow.handle(OPEN.id, judge(true), "team-l", ["llama"]);
    await workflow.handle(OPEN.id, judge(false), "team-l", ["llama"]);
    expect(await now()).toMatchObject({ who: "team-l", isRight: false, jobs: ["llama"] });
    const others = workflow.handle(OPEN.id, judge(true), "team-m", ["ll*"]);
    await expect(others).rejects.toMatchObject({ status: 409 });
    await workflow.handle(OPEN.id, judge(true), "ada");
    const again = workflow.handle(OPEN.id, judge(false), "team-l", ["llama"]);
    await expect(again).rejects.toMatchObject({ status: 409 });
    expect(await now()).toMatchObject({ who: "ada", isRight: true, jobs: null });
    // Two services at once: the trail has both, and the same counts for each of them.
    rows.push({ ...rows[1]!, id: "z", atMs: nowMs + 9 });
    const later = service();
    await later.refresh();
    expect((await later.handling(OPEN.id)).judgement).toMatchObject({ who: "ada" });
  });

  it("that was written in another way is left out", async () => {
    const strange = { id: "x", atMs: 1, who: "ada", action: "", incident: OPEN.id };
    rows.push({ ...strange, what: "judge", detail: "{" });
    rows.push({ ...strange, id: "y", what: "mute", detail: '"no"', incident: "" });
    const workflow = service();
    await workflow.refresh();
    expect((await workflow.handling(OPEN.id)).judgement).toBeNull();
    expect(workflow.mutes()).toEqual([]);
  });
});

describe("mutes", () => {
  const hour = { kind: "mute", job: null, machine: null, cause: null, why: "known" } as const;

  it("hold back alerts of what they name, until they are over", async () => {
    const workflow = service();
    const [machine] = OPEN.machines;
    const untilMs = nowMs + MINUTE_MS;
    await workflow.mute(
      { ...hour, machine: `${machine!.slice(0, 3)}*`, fromMs: nowMs, untilMs },
      "ada",
    );
    expect(workflow.hush(OPEN)).toEqual({ how: "muted", who: "ada", why: "known" });
    expect(workflow.hush(testIncident({ machines: ["other"] }))).toBeNull();
    nowMs = untilMs;
    expect(workflow.hush(OPEN)).toBeNull();
    expect(workflow.mutes()).toEqual([]);
  });

  it("need all that they name, and wait for their beginning", async () => {
    const workflow = service();
    const fromMs = nowMs + MINUTE_MS;
    const window = { ...hour, kind: "maintenance", fromMs, untilMs: fromMs + MINUTE_MS } as const;
    await workflow.mute({ ...window, job: OPEN.job, cause: "storage" }, "ada");
    const { id } = await workflow.mute({ ...window, job: OPEN.job }, "ada");
    expect(workflow.hush(OPEN)).toBeNull();
    nowMs = fromMs;
    expect(workflow.hush(OPEN)?.how).toBe("muted");
    await workflow.unmute(id, "grace");
    expect(workflow.hush(OPEN)).toBeNull();
    await expect(workflow.unmute(id, "grace")).rejects.toMatchObject({ status: 404 });
    const later = service();
    await later.refresh();
    expect(later.mutes()).toHaveLength(1);
  });

  it("without an object or an end are refused", async () => {
    const workflow = service();
    const at = { fromMs: nowMs, untilMs: nowMs + MINUTE_MS };
    await expect(workflow.mute({ ...hour, ...at }, "ada")).rejects.toMatchObject({ status: 400 });
    for (const untilMs of [nowMs, nowMs + 91 * 86_400_000])
      await expect(
        workflow.mute({ ...hour, job: "*", fromMs: nowMs, untilMs }, "ada"),
      ).rejects.toMatchObject({ status: 400 });
  });

  it("of times and causes that cannot be are refused", async () => {
    const workflow = service();
    const untilMs = nowMs + MINUTE_MS;
    const muted = (asked: object) =>
      workflow.mute({ ...hour, fromMs: nowMs, untilMs, ...asked }, "ada");
    for (const asked of [{ job: "*", fromMs: -1e300 }, { cause: "gpu-slwo" }, { cause: "x*" }])
      await expect(muted(asked)).rejects.toMatchObject({ status: 400 });
    expect(rows).toEqual([]);
    for (const cause of ["gpu-slow", "network-*"]) await muted({ cause });
    expect(workflow.mutes()).toHaveLength(2);
  });

  it("are weaker than nothing: an acknowledged incident is said, a merged one is not", async () => {
    const workflow = service();
    await workflow.handle(OPEN.id, { do: "acknowledge" }, "ada");
    expect(workflow.hush(OPEN)?.how).toBe("acknowledged");
    await workflow.handle(OPEN.id, { do: "merge", into: OTHER.id }, "ada");
    expect(workflow.hush(OPEN)?.how).toBe("muted");
  });

  it("are no merges into what is over: an incident that goes on is told of", async () => {
    const incidents = [OPEN, OVER, OTHER];
    const workflow = service(incidents);
    await workflow.handle(OPEN.id, { do: "merge", into: OVER.id }, "ada");
    expect(workflow.hush(OPEN)).toBeNull();
    await workflow.handle(OPEN.id, { do: "merge", into: OTHER.id }, "ada");
    expect(workflow.hush(OPEN)?.how).toBe("muted");
    incidents[2] = { ...OTHER, state: "resolved", resolvedMs: 2 };
    await workflow.refresh();
    expect(workflow.hush(OPEN)).toBeNull();
    // The same after a restart, as soon as it was looked at.
    const later = service(incidents);
    await later.refresh();
    later.hush(OPEN);
    await later.refresh();
    expect(later.hush(OPEN)).toBeNull();
  });
});
