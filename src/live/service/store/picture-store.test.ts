import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import type { IncidentPicture } from "../../../model/picture.ts";
import { bounded, NO_PICTURE } from "./bounded-picture.ts";
import { PictureStore } from "./picture-store.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), "faultline-pictures-"));
  folders.push(folder);
  return folder;
}

function open(folder: string): PictureStore & { troubles: string[] } {
  const troubles: string[] = [];
  return Object.assign(new PictureStore({ folder, trouble: (line) => troubles.push(line) }), {
    troubles,
  });
}

const said = (lack: string): IncidentPicture => ({ ...NO_PICTURE, lacks: [lack] });
const METRIC: MachinePicture = {
  machine: "node0",
  metric: "gpu-temperature",
  title: "GPU temperature",
  unit: "°C",
  device: null,
  timeS: [1],
  value: [60],
  low: [50],
  middle: [55],
  high: [58],
  fromS: 1,
  toS: 2,
};

describe("PictureStore", () => {
  it("keeps the latest picture of an incident, also over a restart", async () => {
    const folder = place();
    const store = open(folder);
    store.put("a.r1.fail-slow.i3", said("first"));
    store.put("a.r1.fail-slow.i3", said("second"));
    await store.idle();
    expect((await store.picture("a.r1.fail-slow.i3"))?.lacks).toEqual(["second"]);
    expect((await open(folder).picture("a.r1.fail-slow.i3"))?.lacks).toEqual(["second"]);
    expect(await store.picture("another")).toBeNull();
    expect(readdirSync(join(folder, "pictures"))).toEqual(["a.r1.fail-slow.i3.json"]);
  });

  it("adds what monitoring tells later, and a second search does not take it away", async () => {
    const store = open(place());
    store.put("a", said("first"));
    store.putMetrics("a", [METRIC]);
    store.put("a", said("second"));
    store.putMetrics("machine", [METRIC]);
    await store.idle();
    expect(await store.picture("a")).toEqual({ ...said("second"), metrics: [METRIC] });
    expect(await store.picture("machine")).toEqual({ ...NO_PICTURE, metrics: [METRIC] });
  });

  it("finds the report beside the evidence, and no other file", async () => {
    const folder = place();
    const evidence = join(folder, "incidents", "2026-a-hang");
    mkdirSync(join(evidence, "report"), { recursive: true });
    writeFileSync(join(evidence, "report", "report.html"), "<p>report");
    const store = open(folder);
    store.put("a", null, evidence);
    store.put("a", said("a picture, later"));
    await store.idle();
    expect(await store.report("a")).toBe("<p>report");
    expect(await open(folder).report("a")).toBe("<p>report");
    expect(await store.report("b")).toBeNull();

    // Files that somebody else wrote: nothing above the evidence, no link, no file of another incident.
    mkdirSync(join(folder, "report"));
    writeFileSync(join(folder, "report", "report.html"), "secret");
    const file = join(folder, "pictures", "a.json");
    for (const odd of ["..", "../../..", ".", "x/../..", "", 7]) {
      writeFileSync(file, JSON.stringify({ id: "a", folder: odd, picture: null }));
      expect(await open(folder).report("a")).toBeNull();
    }
    const linked = join(folder, "incidents", "linked", "report");
    mkdirSync(linked, { recursive: true });
    symlinkSync(join(folder, "report", "report.html"), join(linked, "report.html"));
    writeFileSync(file, JSON.stringify({ id: "a", folder: "linked", picture: null }));
    expect(await open(folder).report("a")).toBeNull();
    writeFileSync(file, JSON.stringify({ id: "b", folder: "2026-a-hang", picture: said("x") }));
    expect(await open(folder).picture("a")).toBeNull();
    for (const broken of ["", "{", "null", '{"id":"a","picture":{"schema":"x"}}']) {
      writeFileSync(file, broken);
      expect(await open(folder).picture("a")).toBeNull();
    }
  });

  it("reads and writes nothing outside of its folder, whatever an incident is called", async () => {
    const folder = place();
    const store = open(folder);
    for (const id of ["../../evil", "..", "", "a/b", ".hidden", "x".repeat(5000), "a\u0000b"]) {
      store.put(id, said(id.slice(0, 10)));
      await store.idle();
      expect((await open(folder).picture(id))?.lacks).toEqual([id.slice(0, 10)]);
    }
    expect(readdirSync(folder)).toEqual(["pictures"]);
    expect(
      readdirSync(join(folder, "pictures")).every((name) => /^h-[0-9a-f]{64}\.json$/.test(name)),
    ).toBe(true);
    expect(store.troubles).toEqual([]);
  });

  it("keeps the newest 500, and says where nothing can be written", async () => {
    const folder = place();
    const pictures = join(folder, "pictures");
    mkdirSync(pictures);
    for (let i = 0; i < 520; i++) {
      writeFileSync(join(pictures, `old${i}.json`), "{}");
      utimesSync(join(pictures, `old${i}.json`), i + 1, i + 1);
    }
    const store = open(folder);
    store.put("new", said("x"));
    await store.idle();
    const names = readdirSync(pictures);
    expect(names).toHaveLength(500);
    expect(names).toContain("new.json");
    expect(names).not.toContain("old0.json");
    expect(names).toContain("old519.json");
    const blocked = place();
    writeFileSync(join(blocked, "pictures"), "a file");
    const other = open(blocked);
    other.put("a", said("x"));
    await other.idle();
    expect(other.troubles).toHaveLength(1);
    // It is shown all the same.
    expect((await other.picture("a"))?.lacks).toEqual(["x"]);
  });

  it("leaves no half of a file behind", async () => {
    const folder = place();
    const store = open(folder);
    for (let i = 0; i < 20; i++) store.put("a", said("x".repeat(1000 * i)));
    await store.idle();
    expect(readdirSync(join(folder, "pictures"))).toEqual(["a.json"]);
    const read = JSON.parse(readFileSync(join(folder, "pictures", "a.json"), "utf8")) as {
      picture: IncidentPicture;
    };
    expect(read.picture.lacks[0]).toHaveLength(19_000);
  });
});

describe("bounded", () => {
  const share = new Float32Array(100).fill(0.5);
  const timeline = { lanes: [{ communication: share }] } as unknown as IncidentPicture["timeline"];
  const line = { line: 1, text: "x".repeat(1000), isKey: true, timeMs: null, count: 1 };
  const logs = [{ file: "f", rank: 0, node: null, lines: [line] }];
  const whole: IncidentPicture = { ...NO_PICTURE, timeline, logs, metrics: [METRIC] };

  it("makes lists of columns", () => {
    expect(bounded(whole).timeline).toEqual({ lanes: [{ communication: Array.from(share) }] });
  });

  it("leaves out kernels, then log lines, then metrics, and says so", () => {
    const bytes = JSON.stringify({ ...whole, timeline: null }).length;
    const cut = bounded(whole, bytes + 60);
    expect([cut.timeline, cut.logs.length, cut.metrics.length]).toEqual([null, 1, 1]);
    expect(cut.lacks).toEqual(["The kernels are too large to be kept."]);
    const more = bounded(whole, 600);
    expect([more.logs.length, more.metrics.length]).toEqual([0, 1]);
    expect(bounded(whole, 350)).toMatchObject({ metrics: [], logs: [] });
    expect(bounded(said("x".repeat(1000)), 350)).toEqual(NO_PICTURE);
  });
});
