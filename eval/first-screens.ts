/**
 * The first screens of eight answers, for people who see each for ten seconds and say who is at fault, why, and what to do
 * first: `node --import tsx eval/first-screens.ts [folder]` writes 1.png … 8.png and truth.md (default: out/first-screens).
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { startChromium } from "../test/system/browser/chromium.ts";

interface Case {
  /** What to diagnose: options of `simulate`, or an archive of fixtures/. */
  readonly simulate?: string;
  readonly recorded?: string;
  /** Traces of a healthy run: then the question is what became slower. */
  readonly baseline?: string;
  readonly who: string;
  readonly why: string;
  readonly first: string;
}

const CASES: readonly Case[] = [
  {
    simulate:
      "--gpus 16 --tp 2 --pp 2 --iterations 700 --fault gpu-slow:rank=13:from=300:severity=2 --emit flight-recorder,logs,metrics",
    who: "GPU 5 of node001 (rank 13)",
    why: "the GPU computes slowly because it is throttled (low clock, hot)",
    first: "check this GPU's clocks, temperature and power (nvidia-smi on node001)",
  },
  {
    simulate:
      "--gpus 32 --tp 4 --pp 2 --iterations 24 --fault network-slow:rank=6:from=9:severity=6 --emit flight-recorder,logs,operators",
    who: "the NIC of rank 6 (node000)",
    why: "communication over this network device is slow",
    first: "check the error and congestion counters of this NIC and its switch port",
  },
  {
    recorded: "fixtures/rings/wire-slow.tar.gz",
    who: "the link between rank 4 (node004) and rank 6 (node006)",
    why: "the link transfers data slowly",
    first: "check the network between these machines (counters of NICs and switch ports)",
  },
  {
    recorded: "fixtures/rings/data.tar.gz",
    who: "rank 1 on node001",
    why: "its data loader is slow",
    first: "look at loader workers, prefetching and storage of this rank",
  },
  {
    recorded: "fixtures/recordings/gpuhang4-tp4.tar.gz",
    who: "GPU 0 of node004 (rank 4)",
    why: "the GPU stopped working, so the job hangs",
    first: "check this GPU's state and Xid errors (nvidia-smi, dmesg on node004)",
  },
  {
    recorded: "fixtures/rings/fsdp-stop.tar.gz",
    who: "rank 5 on node-005",
    why: "its process is stopped, so the job hangs",
    first: "look at the state of process 873 on node-005 and let it continue (kill -CONT)",
  },
  {
    recorded: "fixtures/recordings/raise1.tar.gz",
    who: "rank 1 on node001",
    why: "its code raised ValueError at train.py:150 (shape mismatch), which ended the job",
    first: "fix the code at this line",
  },
  {
    recorded: "fixtures/traces/reg-sync.tar.gz",
    baseline: "fixtures/traces/reg-none.tar.gz",
    who: "the training code of all ranks (no device)",
    why: "torch.cuda.synchronize() in every layer makes the step slower",
    first: "remove the synchronisation call",
  },
];

const WIDTH = 1440;
const HEIGHT = 900;

function faultline(...words: string[]): void {
  execFileSync("./faultline", [...words, "--quiet"], { stdio: ["ignore", "ignore", "inherit"] });
}

/** The report of a case, as a file. */
function reportOf({ simulate, recorded, baseline }: Case, folder: string): string {
  const out = join(folder, "report");
  const input = recorded ?? join(folder, "job");
  if (simulate !== undefined) {
    faultline("simulate", "--out", input, ...simulate.split(" "));
    // Nobody may look the answer up.
    rmSync(join(input, "truth.json"));
  }
  const healthy = baseline === undefined ? [] : ["--baseline", baseline];
  faultline("diagnose", input, "--out", out, ...healthy);
  return join(out, "report.html");
}

const target = resolve(process.argv[2] ?? "out/first-screens");
mkdirSync(target, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "faultline-first-screens-"));
const browser = await startChromium();
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT } });
  const truth: string[] = [];
  for (const [i, one] of CASES.entries()) {
    const folder = join(work, String(i + 1));
    mkdirSync(folder);
    await page.goto(pathToFileURL(reportOf(one, folder)).href);
    await page.screenshot({ path: join(target, `${i + 1}.png`) });
    const input = one.simulate ?? one.recorded!;
    truth.push(
      `## ${i + 1}.png`,
      "",
      `- who: ${one.who}`,
      `- why: ${one.why}`,
      `- first: ${one.first}`,
      `- from: \`${input}\``,
      "",
    );
  }
  writeFileSync(join(target, "truth.md"), truth.join("\n"));
} finally {
  await browser.close();
  rmSync(work, { recursive: true });
}
console.log(target);
