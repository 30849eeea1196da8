import { describe, expect, test } from "vitest";
import { renderHtml } from "./html.ts";
import { renderMachinesPage } from "./machines-page.ts";
import {
  faultyMachine,
  machinePicture,
  machineReport,
  START_S,
} from "../../../test/support/report/machines.ts";
import { syntheticHang } from "../../../test/support/report/job.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";

const HOSTILE = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `' onmouseover='alert(1)`,
  `</title></style></script></svg></table><h1>owned</h1>`,
  `\u0000\u001b[31m\u202e\ud800 x`,
  `__proto__`,
];

const values = Array.from({ length: 20 }, (_, i) => (i < 10 ? 500 : 71));

/** Words of the markup, one space between them. */
function words(markup: string): string {
  return markup
    .slice(markup.indexOf("<header"))
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ");
}

function onePage(): string {
  return renderMachinesPage(machineReport({ faulty: [faultyMachine()] }), [machinePicture(values)]);
}

describe("the page of machines", () => {
  test("begins with who and since when, then shows why and the plot", () => {
    const text = words(onePage());
    expect(text).toMatch(/^ ?node007 has been unlike its peers since 2026-11-15 00:01:40 UTC/);
    expect(text).toContain("GPU power, gpu3 71 W, peers 500 W");
    for (const said of ["0.97", "stage 2", "still, at the end of the data"])
      expect(text).toContain(said);
    expect(text).toContain("Not recorded, so nothing could be seen in them: CPU usage.");
    expect(text).toContain("8 jitters");
  });

  test("has no id twice, and no link to nowhere", () => {
    const tags = readTags(onePage());
    const ids = tags.flatMap(({ attributes }) => attributes.get("id") ?? []);
    expect(ids).toEqual([
      "machines",
      "machine-1",
      "followers",
      "telemetry",
      "jitter",
      "phases",
      "coverage",
      "missing",
    ]);
    for (const link of tags.flatMap(({ attributes }) => attributes.get("href") ?? []))
      expect(ids).toContain(link.slice(1));
  });

  test("tells of several who was first, unless the sampling cannot tell", () => {
    const later = faultyMachine({ machine: "node020", sinceS: START_S + 160, order: 2 });
    const first = words(
      renderMachinesPage(machineReport({ faulty: [later, faultyMachine()] }), []),
    );
    expect(first).toMatch(/^ ?node020 and node007 are unlike their peers; node007 first, since/);
    expect(first).toContain("no. 2, 1 min after node007");
    const both = [faultyMachine(), faultyMachine({ machine: "node020" })];
    const atOnce = words(renderMachinesPage(machineReport({ faulty: both }), []));
    expect(atOnce).toMatch(/^ ?node007 and node020 are unlike their peers, since/);
    expect(atOnce).toContain("first, with 1 other");
  });

  test("speaks of what is over as over", () => {
    const over = faultyMachine({ untilS: START_S + 150 });
    expect(words(renderMachinesPage(machineReport({ faulty: [over] }), []))).toMatch(
      /^ ?node007 was unlike its peers 2026-11-15 00:01:40 to 00:02:30 UTC/,
    );
  });

  test("of a healthy job says so, without plots", () => {
    const nothing = {
      followers: [],
      telemetry: [],
      jitter: [],
      jittersLeftOut: 0,
      phases: [],
      missing: [],
    };
    const page = renderMachinesPage(machineReport(nothing), []);
    readTags(page);
    expect(page).toContain('class="fl-head fl-good"');
    expect(words(page)).toMatch(/^ ?No machine is unlike its peers Machines 64 machines/);
    expect(page).not.toMatch(/<svg\s+class="machine-plot/);
    const blind = renderMachinesPage(machineReport({ ...nothing, metrics: [] }), []);
    expect(blind).toContain('class="fl-head fl-open"');
    expect(words(blind)).toMatch(/^ ?Nothing to compare/);
  });

  test.each(HOSTILE)("keeps strangers' names as text: %j", (hostile) => {
    const faulty = [1, 2].map((order) =>
      faultyMachine({ machine: hostile, metric: hostile, role: hostile, why: hostile, order }),
    );
    const picture = {
      machine: hostile,
      metric: hostile,
      title: hostile,
      unit: hostile,
      device: hostile,
    };
    const deviations = faulty[0]!.deviations.map((one) => ({
      ...one,
      metric: hostile,
      device: hostile,
    }));
    const report = machineReport({ faulty: [{ ...faulty[0]!, deviations }, faulty[1]!] }, hostile);
    const page = renderMachinesPage(report, [machinePicture(values, picture)]);
    const tags = readTags(page);
    for (const name of ["script", "style", "h1"])
      expect(tags.filter((tag) => tag.name === name)).toHaveLength(1);
    expect(tags.some(({ name }) => name === "img")).toBe(false);
    for (const { attributes } of tags)
      for (const name of attributes.keys()) expect(name).not.toMatch(/^on|^style$|^src$/);
    expect(page).not.toMatch(/https?:|url\(/);
    // oxlint-disable-next-line no-control-regex
    expect(page).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]|\p{Cs}/u);
  });

  test("cuts long lists and names, and says so", () => {
    const report = machineReport();
    const many = <T>(list: readonly T[]): T[] => Array.from({ length: 1000 }, () => list[0]!);
    const faulty = many([faultyMachine({ machine: "n".repeat(10_000), why: "y".repeat(10_000) })]);
    const page = renderMachinesPage(
      {
        ...report,
        faulty,
        followers: many(report.followers),
        telemetry: many(report.telemetry),
        jitter: many(report.jitter),
        missing: many(report.missing),
        metrics: many(report.metrics),
      },
      [],
    );
    expect(words(page).match(/800 more, not shown here/g)).toHaveLength(5);
    expect(words(page)).toContain("807 more, not shown here");
    expect(Buffer.byteLength(page)).toBeLessThan(2_000_000);
  });

  test("survives figures that are none", () => {
    const broken = { score: NaN, sinceS: NaN, untilS: Infinity };
    const faulty = [faultyMachine(broken), faultyMachine({ ...broken, order: 2 })];
    const page = renderMachinesPage(
      machineReport({
        faulty,
        fromS: NaN,
        toS: Infinity,
        phases: [{ what: "halt", fromS: 1e300, toS: NaN }],
      }),
      [machinePicture(values, { timeS: values.map(() => NaN) })],
    );
    readTags(page);
    expect(page).not.toMatch(/NaN|Infinity/);
  });

  test("is the same for the same input", () => {
    expect(onePage()).toBe(onePage());
  });
});

describe("the section in a verdict's report", () => {
  const { job, verdict } = syntheticHang({ tp: 2, dp: 2, pp: 2, culprit: 3, silent: [6] });

  test("is there where there are metrics, and only then", () => {
    const machines = {
      report: machineReport({ faulty: [faultyMachine()] }),
      pictures: [machinePicture(values)],
    };
    const page = renderHtml(job, verdict, null, machines);
    const tags = readTags(page);
    const ids = tags.flatMap(({ attributes }) => attributes.get("id") ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("machines");
    expect(page).toContain('<a href="#machines">Machines</a>');
    expect(words(page)).toContain("node007 has been unlike its peers since");
    expect(renderHtml(job, verdict)).not.toContain('id="machines"');
  });
});
