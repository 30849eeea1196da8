/** The Grafana dashboard and Prometheus' rules: every metric and label in them is one that the service really exports. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countRequests, metricsText } from "../src/live/service/http/metrics.ts";
import { openStore } from "./support/open-store.ts";
import { JOB, testView } from "./support/serve-view.ts";
import { ROOT } from "./support/cli.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}
interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: unknown }[];
  };
}

const text = readFileSync(join(ROOT, "deploy/grafana/faultline.json"), "utf8");
const dashboard = JSON.parse(text) as Dashboard;
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const rules = readFileSync(join(ROOT, "deploy/prometheus/faultline-rules.yaml"), "utf8");

/** Labels by metric, as a real service writes them: a job is there, and incidents. */
const exported = new Map<string, Set<string>>();
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "faultline-grafana-"));
  execFileSync("tar", ["xf", join(ROOT, "fixtures/stores/version-1.tar.gz"), "-C", folder]);
  const service = await openStore(join(folder, "duckdb"));
  await service.get("/healthz");
  const { text: real } = await service.get("/metrics");
  await service.close();
  for (const [, name, type] of real.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    exported.set(name!, new Set(type === "summary" ? ["quantile"] : []));
  // Its job has not been heard since, so that it has no level: the same text of a job that has all.
  const job = { ...JOB, baselineMs: 1000 };
  const whole = metricsText(testView().view.stats(), [job], {
    version: "1",
    cpuSeconds: 0,
    residentBytes: 0,
    heapBytes: 0,
    eventStreams: 0,
    droppedStreams: 0,
    requests: countRequests(),
  });
  for (const [, name, labels] of `${real}${whole}`.matchAll(/^(\w+)\{(.*)\} /gm))
    for (const [, label] of labels!.matchAll(/(\w+)="/g)) exported.get(name!)!.add(label!);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Prometheus calls a label of the service that it has itself `exported_…`, and adds its own. */
const asScraped = (label: string): string => (label === "job" ? "exported_job" : label);
const ADDED = ["instance", "job"];

describe("the dashboard", () => {
  it("asks for metrics and labels that the service exports", () => {
    const variables = dashboard.templating.list.map(({ query }) => JSON.stringify(query));
    const asked = [...expressions, ...variables].flatMap((expression) => [
      ...expression.matchAll(/(faultline_\w+)(?:\{([^}]*)\})?/g),
    ]);
    expect(asked.length).toBeGreaterThan(25);
    for (const [, name, selector = ""] of asked) {
      const labels = [...(exported.get(name!) ?? ["missing"])].map(asScraped);
      expect([name, labels]).not.toEqual([name, ["missing"]]);
      for (const [, label] of selector.matchAll(/(\w+)=~?\\?"/g))
        expect([...labels, ...ADDED], `${name} has no ${label}`).toContain(label);
    }
    for (const expression of expressions)
      for (const [, list] of expression.matchAll(/by \((\w+)\)/g))
        expect(["instance", "exported_job", "status"]).toContain(list);
  });

  it("names every state of a job, and nothing else", () => {
    const states = new Set(
      expressions.flatMap((one) => [...one.matchAll(/health="(\w+)"/g)].map(([, state]) => state)),
    );
    expect([...states]).toEqual([
      "learning",
      "healthy",
      "slow",
      "hung",
      "failed",
      "silent",
      "ended",
    ]);
  });

  it("is one that Grafana can load: ids once, panels beside each other, variables that are there", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = new Set<string>();
    for (const {
      gridPos: { x, y, w, h },
      title,
    } of panels) {
      expect(x + w, title).toBeLessThanOrEqual(24);
      for (let i = x; i < x + w; i++)
        for (let j = y; j < y + h; j++) {
          expect(cells.has(`${i} ${j}`), `${title} lies over another`).toBe(false);
          cells.add(`${i} ${j}`);
        }
    }
    const names = dashboard.templating.list.map(({ name }) => name);
    for (const [, name] of text.matchAll(/\$\{?(\w+)/g))
      expect([...names, "__field", "__all"]).toContain(name);
    for (const { targets = [], type, title } of panels) {
      if (type !== "row") expect(targets.length, title).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      for (const { datasource } of targets) expect(datasource.uid).toBe("${datasource}");
    }
  });
});

it("rules ask for metrics that the service exports", () => {
  const names = [...rules.matchAll(/faultline_\w+/g)].map(([name]) => name);
  expect(names.length).toBeGreaterThan(2);
  for (const name of names) expect([...exported.keys()]).toContain(name);
});
