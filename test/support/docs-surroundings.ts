/** What the commands of the documentation find around them: a folder with a stranger's files, a metrics server, a free port. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Names that the documentation gives to a stranger's folders → recordings that stand for them, and which files of it. */
const FOLDERS: Readonly<Record<string, readonly [archive: string, files: string]>> = {
  new: ["traces/reg-sync", "*rank0*"],
  "last-week": ["traces/reg-none", "*rank0*"],
  run1: ["traces/reg-none", "*rank0*"],
  run2: ["traces/reg-none", "*rank0*"],
  "job-1234": ["recordings/raise1", "*/rank*.log"],
  "crash-1234": ["recordings/raise1", "*/rank*.log"],
  "job-1230": ["recordings/slow-none", "*/rank[0-3].log"],
  "job-1231": ["recordings/slow-none-pp4", "*/rank[0-3].log"],
  "shared/job-1234": ["recordings/slow-gpu3-pp4", "*/[fr]*"],
  rings: ["rings/stuck", "*"],
};

/** Unpacked once for all guides. */
export function unpackAll(folder: string): void {
  for (const [name, [archive, files]] of Object.entries(FOLDERS)) {
    mkdirSync(join(folder, name), { recursive: true });
    const path = join(root, "fixtures", `${archive}.tar.gz`);
    const words = ["-xzf", path, "-C", join(folder, name), "--strip-components=1", "--wildcards"];
    execFileSync("tar", [...words, files]);
  }
  const dumps = readdirSync(join(folder, "shared/job-1234")).filter((name) =>
    name.startsWith("fr_"),
  );
  mkdirSync(join(folder, "dumps"));
  for (const name of dumps)
    cpSync(join(folder, "shared/job-1234", name), join(folder, "dumps", name));
  cpSync(join(folder, "shared/job-1234/rank7.log"), join(folder, "train.log"));
  const own = Array.from({ length: 60 }, (_, i) => `it ${i + 1} took ${i < 30 ? 1 : 1.5}.2s\n`);
  writeFileSync(join(folder, "my.log"), own.join(""));
  // A plan's own file (docs/guides/plan.md), which the same words name as the job's: it has what both need.
  const nodes = ["n0", "n1", "n2", { name: "n3", compute: 1.8 }];
  const places = { dp: 2, pp: 2, microBatches: 8, stageMs: [45, 50], gradientMs: 200, nodes };
  writeFileSync(join(folder, "places.json"), JSON.stringify(places));
  writeFileSync(join(folder, "job.json"), JSON.stringify({ name: "llama-70b", worldSize: 64 }));
  const metrics = ["# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"];
  for (const { name, gpu, values } of clocks(1_794_700_000, 600))
    for (const [time, value] of values)
      metrics.push(
        `DCGM_FI_DEV_SM_CLOCK{gpu="${gpu}",hostname="${name}",job="dcgm"} ${value} ${time}\n`,
      );
  writeFileSync(join(folder, "metrics.prom"), `${metrics.join("")}# EOF\n`);
  execFileSync("gzip", [join(folder, "metrics.prom")]);
}

/** A folder in which the commands of one guide run, empty at each try: copies of the small, links to the large. */
export function layOut(folder: string, prepared: string): void {
  rmSync(folder, { recursive: true, force: true });
  for (const name of ["bin", "tmp", "data", "home"])
    mkdirSync(join(folder, name), { recursive: true });
  for (const name of ["faultline", "fixtures", "deploy", "probe"])
    symlinkSync(join(root, name), join(folder, name));
  symlinkSync(join(root, "faultline"), join(folder, "bin/faultline"));
  for (const name of readdirSync(prepared)) symlinkSync(join(prepared, name), join(folder, name));
}

/** Eight machines of eight GPUs; the third GPU of node004 loses its clock half-way. */
function* clocks(
  fromS: number,
  seconds: number,
): Generator<{ name: string; gpu: number; values: [number, string][] }> {
  for (let machine = 0; machine < 8; machine++)
    for (let gpu = 0; gpu < 8; gpu++) {
      const values: [number, string][] = [];
      for (let s = 0; s < seconds; s += 15) {
        const isSlow = machine === 4 && gpu === 3 && s > seconds / 2;
        const wobble = 15 * ((machine * 7 + gpu * 3 + s / 15) % 3);
        values.push([fromS + s, String((isSlow ? 345 : 1935) + wobble)]);
      }
      yield { name: `node00${machine}`, gpu, values };
    }
}

export interface MetricsServer {
  readonly url: string;
  close(): void;
}

/** What Prometheus answers to raw ranges of one metric; whatever else is asked for is not there. */
export async function startMetricsServer(): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    request.resume();
    const url = new URL(request.url!, "http://localhost");
    const answer = (data: unknown): void =>
      void response.end(JSON.stringify({ status: "success", data }));
    if (url.pathname.endsWith("/buildinfo")) return answer({ version: "2.42.0" });
    if (url.pathname.endsWith("/__name__/values")) return answer(["DCGM_FI_DEV_SM_CLOCK"]);
    if (url.pathname.endsWith("/query")) {
      const end = Math.floor(Number(url.searchParams.get("time") ?? Date.now() / 1000));
      const result = [...clocks(end - 1800, 1800)].map(({ name, gpu, values }) => ({
        metric: { __name__: "DCGM_FI_DEV_SM_CLOCK", gpu: String(gpu), hostname: name, job: "dcgm" },
        values,
      }));
      return answer({ resultType: "matrix", result });
    }
    response.statusCode = 404;
    response.end("not found\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}
