/** `faultline doctor` on set-ups that work, that are bare, and that are broken in one way each. */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UserError } from "../src/base/errors.ts";
import { judgeService } from "../src/cli/doctor/service.ts";
import { machineName } from "../src/cli/agent-live.ts";
import { HEADER } from "../src/ingest/probe-ring/layout.ts";
import { TestRing } from "./support/live/ring.ts";
import { TEST_CERTIFICATE } from "./support/live/tls.ts";
import { faultlineIn } from "./support/cli.ts";
import { PlayedMachine } from "./support/played-machine.ts";

let machine: PlayedMachine;
let holder: ChildProcess | null = null;
beforeEach(() => (machine = new PlayedMachine()));
afterEach(() => {
  holder?.kill("SIGKILL");
  holder = null;
  machine.close();
});

/** A lock of a file keeps other processes out, and not this one. */
async function held(path: string): Promise<void> {
  const words = `import("@duckdb/node-api").then(({ DuckDBInstance }) => DuckDBInstance.create(process.argv[1]))
    .then((file) => { console.log("open"); setInterval(() => file, 1000); })`;
  holder = spawn(process.execPath, ["-e", words, path], { stdio: ["ignore", "pipe", "inherit"] });
  await once(holder.stdout!, "data");
}

/** As the probes write them. */
function ring(rank: number, writer: "native" | "python" = "python"): TestRing {
  return new TestRing({ folder: machine.rings, rank, pid: 100 + rank, startTicks: 4242, writer });
}

function library(name: string, change: (bytes: Buffer) => void = () => undefined): string {
  const bytes = Buffer.alloc(256);
  bytes.write("\x7fELF\x02", 0, "latin1");
  bytes.writeUInt16LE(process.arch === "arm64" ? 183 : 62, 18);
  bytes.write("ncclProfiler_v5", 128, "latin1");
  change(bytes);
  const path = join(machine.folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** A configuration of a service that is not started yet. */
function configured(said: object): { readonly config: string } {
  const config = join(machine.folder, "serve.json");
  writeFileSync(config, JSON.stringify({ port: 0, data: machine.data, ...said }));
  return { config };
}

describe("a machine where all is well", () => {
  it("has nothing that is broken or to be warned of", async () => {
    machine.rank(0, { NCCL_PROFILER_PLUGIN: library("libfaultline.so") });
    for (const writer of ["native", "python"] as const) ring(0, writer);
    // A loader worker inherits all of it, and writes nothing.
    machine.process(500, "pt_data_worker", { RANK: "0", WORLD_SIZE: "8" }, ["python"], 100);
    machine.process(600, "node", {}, [
      "node",
      "/opt/faultline/dist/cli/main.js",
      "agent",
      "--server",
      "ws://x:1",
    ]);
    const agent = { agent: machineName(undefined), machine: "m", version: "0.0.0-source" };
    const server = await machine.service(
      { version: "0.0.0-source" },
      { agents: [200, { agents: [{ ...agent, clockOffsetMs: 0 }] }] },
    );
    const { lines, status } = await machine.examine({ server });
    expect(lines.filter(({ state }) => state === "broken")).toEqual([]);
    expect(lines.filter(({ state }) => state === "warning")).toEqual([]);
    expect(lines.filter(({ state }) => state === "ok").map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        "versions",
        "probe",
        "plug-in",
        "agent",
        "rings",
        "service",
        "store",
        "clocks",
        "disk",
        "permissions",
      ]),
    );
    expect(status).toBe(0);
  });

  it("that is bare has nothing that is broken: what is not set up is said", async () => {
    rmSync(machine.data, { recursive: true });
    rmSync(machine.rings, { recursive: true });
    const { lines, text, status } = await machine.examine();
    expect([...new Set(lines.map(({ state }) => state))].sort()).toEqual(["none", "ok"]);
    expect(text.trim().split("\n")).toHaveLength(lines.length);
    expect(status).toBe(0);
  });
});

interface Case {
  readonly state: "broken" | "warning";
  readonly check: string;
  readonly says: RegExp;
  readonly fix: RegExp;
  /** Flags for the doctor. */
  play(): Promise<object> | object;
}

const CASES: Record<string, Case> = {
  "the probe's package is not installed": {
    state: "broken",
    check: "probe",
    says: /FAULTLINE_PROBE=1 is set in rank 3 \(process 103\), and no ring is written/,
    fix: /^python -m faultline_probe/,
    play: () => {
      machine.rank(3);
      return {};
    },
  },
  "a job runs without the probe": {
    state: "warning",
    check: "probe",
    says: /rank 2 \(process 102\) runs without the probe/,
    fix: /^export FAULTLINE_PROBE=1/,
    play: () => {
      machine.rank(2, { FAULTLINE_PROBE: "" });
      return {};
    },
  },
  "the plug-in is not where the job looks": {
    state: "broken",
    check: "plug-in",
    says: /NCCL cannot load NCCL_PROFILER_PLUGIN=\/opt\/gone\.so in rank 0 .*: there is no such file/,
    fix: /--library\)$/,
    play: () => {
      machine.rank(0, { NCCL_PROFILER_PLUGIN: "/opt/gone.so" });
      ring(0);
      return {};
    },
  },
  "the plug-in is of another processor": {
    state: "broken",
    check: "plug-in",
    says: /it is built for another processor/,
    fix: /--library\)$/,
    play: () => {
      machine.rank(0, {
        NCCL_PROFILER_PLUGIN: library("other.so", (bytes) => bytes.writeUInt16LE(21, 18)),
      });
      ring(0);
      return {};
    },
  },
  "others may write to the ring folder": {
    state: "broken",
    check: "rings",
    says: /others may write to .*faultline-7, so probes refuse it/,
    fix: /^chmod 700 '/,
    play: () => {
      chmodSync(machine.rings, 0o777);
      return {};
    },
  },
  "rings are of another version": {
    state: "broken",
    check: "rings",
    says: /1 ring cannot be read: .*is a ring of version 2, and this faultline reads 1/,
    fix: /^faultline --version/,
    play: () => {
      machine.rank(0);
      const one = ring(0);
      one.bytes.writeUInt32LE(2, HEADER.version);
      writeFileSync(one.path, one.bytes);
      return {};
    },
  },
  "a ring stands still": {
    state: "warning",
    check: "rings",
    says: /1 ring of live processes stands still: rank 4 \(process 104\) for \d+ s/,
    fix: /^faultline agent rings/,
    play: () => {
      machine.rank(4);
      const one = ring(4);
      one.bytes.writeBigUInt64LE(1n, HEADER.heartbeatNs);
      writeFileSync(one.path, one.bytes);
      return {};
    },
  },
  "the agent cannot reach the service": {
    state: "broken",
    check: "agent",
    says: /the agent runs \(process 600\), and the service does not hear/,
    fix: /^journalctl -u faultline-agent/,
    play: async () => {
      machine.process(600, "node", {}, ["node", "faultline", "agent", "run", "--token-file", "x"]);
      return { server: await machine.service() };
    },
  },
  "the service is not there": {
    state: "broken",
    check: "service",
    says: /http:\/\/127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/,
    fix: /^faultline serve/,
    play: () => ({ server: "ws://127.0.0.1:1" }),
  },
  "the token is wrong": {
    state: "broken",
    check: "service",
    says: /wants a token, and there is none/,
    fix: /--token-file FILE/,
    play: async () => ({
      server: await machine.service({}, { agents: [401, { error: "a token is needed" }] }),
    }),
  },
  "the service speaks no TLS": {
    state: "broken",
    check: "service",
    says: /https:\/\/127\.0\.0\.1:\d+ speaks no TLS, as it seems/,
    fix: /^faultline doctor --server http:/,
    play: async () => ({ server: (await machine.service()).replace("http:", "https:") }),
  },
  "the service speaks nothing but TLS": {
    state: "broken",
    check: "service",
    says: /http:\/\/127\.0\.0\.1:\d+ speaks nothing but TLS, as it seems/,
    fix: /^faultline doctor --server https:/,
    play: async () => ({
      server: (await machine.serve({}, { isTls: true })).replace("https:", "http:"),
    }),
  },
  "nobody trusts the service's certificate": {
    state: "broken",
    check: "service",
    says: /does not answer: self-signed certificate/,
    fix: /^faultline doctor --ca FILE/,
    play: async () => ({ server: await machine.serve({}, { isTls: true }) }),
  },
  "the folder of the service cannot be made": {
    state: "broken",
    check: "disk",
    says: /data folder .*kmsg\/data is not there and cannot be made: ENOTDIR/,
    fix: /^sudo install -d/,
    play: () => ({ data: join(machine.kernelLog, "data") }),
  },
  "the configuration's ClickHouse is away": {
    state: "broken",
    check: "store",
    says: /the history does not answer: .*127\.0\.0\.1:1/,
    fix: /clickhouse-server/,
    play: () => {
      const config = join(machine.folder, "serve.json");
      const history = "clickhouse://a:secret@127.0.0.1:1/x";
      writeFileSync(config, JSON.stringify({ data: machine.data, history }));
      return { config };
    },
  },
  "something else listens there": {
    state: "broken",
    check: "service",
    says: /answers 200: it is something else than faultline serve/,
    fix: /^give --server/,
    play: async () => ({ server: await machine.serve({ "/healthz": [200, "OK"] }) }),
  },
  "the store does not answer": {
    state: "broken",
    check: "store",
    says: /the history cannot be reached/,
    fix: /ping/,
    play: async () => ({
      server: await machine.service(
        { error: "the history cannot be reached; see the service's log", store: "away" },
        { status: 503 },
      ),
    }),
  },
  "the service has lost its broker": {
    state: "broken",
    check: "broker",
    says: /the service cannot reach its broker/,
    fix: /nats/,
    play: async () => ({ server: await machine.service({ broker: "away" }) }),
  },
  "no broker answers": {
    state: "broken",
    check: "broker",
    says: /no broker answers: 127\.0\.0\.1:1 \(ECONNREFUSED\)/,
    fix: /^systemctl status nats/,
    play: () => ({ server: "nats://127.0.0.1:1" }),
  },
  "clocks are apart": {
    state: "warning",
    check: "clocks",
    says: /the service is 90 s ahead, node3 is 60 s ahead of this machine/,
    fix: /^sudo chronyc makestep/,
    play: async () => ({
      server: await machine.service(
        { nowMs: Date.now() + 90_000 },
        {
          agents: [
            200,
            {
              agents: [{ agent: "node3", machine: "node3", version: "0", clockOffsetMs: -30_000 }],
            },
          ],
        },
      ),
    }),
  },
  "versions are apart": {
    state: "warning",
    check: "versions",
    says: /the service is version 9\.9\.9, this program is/,
    fix: /faultline@9\.9\.9/,
    play: async () => ({ server: await machine.service({ version: "9.9.9" }) }),
  },
  "Prometheus does not answer": {
    state: "broken",
    check: "prometheus",
    says: /http:\/\/127\.0\.0\.1:1 does not answer/,
    fix: /^curl/,
    play: () => ({ prometheus: "http://127.0.0.1:1" }),
  },
  "Prometheus scrapes no machine": {
    state: "broken",
    check: "prometheus",
    says: /answers, and has no metric of machines under job="dcgm"/,
    fix: /^curl -sG .*match\[\]=\{job="dcgm"\}/,
    play: async () => ({
      prometheus: await machine.serve({
        "/api/v1/status/buildinfo": [200, { status: "success", data: { version: "2.42.0" } }],
        "/api/v1/label/__name__/values": [200, { status: "success", data: ["up"] }],
      }),
      match: 'job="dcgm"',
    }),
  },
  "the configuration of the service has a wrong key": {
    state: "broken",
    check: "configuration",
    says: /serve\.json: .*prot/,
    fix: /serve\.md/,
    play: () => {
      const config = join(machine.folder, "serve.json");
      writeFileSync(config, '{"prot": 7077}');
      return { config };
    },
  },
  "the service would be open to everybody": {
    state: "broken",
    check: "configuration",
    says: /0\.0\.0\.0 can be reached from other machines, and no tokens are configured/,
    fix: /^configure tokens/,
    play: () => configured({ host: "0.0.0.0" }),
  },
  "the key is of another certificate": {
    state: "broken",
    check: "configuration",
    says: /the certificate and its key cannot be used: .*key values mismatch/,
    fix: /belong together$/,
    play: () => {
      writeFileSync(join(machine.folder, "cert.pem"), TEST_CERTIFICATE);
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const key = privateKey.export({ type: "pkcs8", format: "pem" });
      writeFileSync(join(machine.folder, "key.pem"), key);
      return configured({ tls: { cert: "cert.pem", key: "key.pem" } });
    },
  },
  "a file of the fabric is not there": {
    state: "broken",
    check: "configuration",
    says: /nofabric\.txt/,
    fix: /./,
    play: () => configured({ fabric: ["nofabric.txt"] }),
  },
  "the file of a job is not there": {
    state: "broken",
    check: "configuration",
    says: /nojob\.json: cannot be read as a job file/,
    fix: /./,
    play: () => configured({ jobs: [{ name: "l", jobFile: "nojob.json" }] }),
  },
  "another program holds the port": {
    state: "broken",
    check: "configuration",
    says: /cannot listen on 127\.0\.0\.1 port \d+: .*EADDRINUSE/,
    fix: /--port/,
    play: async () => {
      const url = await machine.serve({ "/healthz": [200, "OK"] });
      return configured({ port: Number(url.split(":")[2]) });
    },
  },
  "the data folder is a file": {
    state: "broken",
    check: "disk",
    says: /data folder .*kmsg is no folder/,
    fix: /^ls -l '.*kmsg'/,
    play: () => ({ data: machine.kernelLog }),
  },
  "the history is damaged": {
    state: "broken",
    check: "store",
    says: /history .*history\.duckdb cannot be read: .*not a valid DuckDB database/,
    fix: /^if nothing else reads it either, move it away/,
    play: () => {
      writeFileSync(join(machine.data, "history.duckdb"), Buffer.alloc(50_000, "x"));
      return configured({});
    },
  },
  "the history is of a newer version": {
    state: "broken",
    check: "store",
    says: /history .*history\.duckdb was written by a newer Faultline/,
    fix: /^use that version/,
    play: async () => {
      const { DuckDBInstance } = await import("@duckdb/node-api");
      const file = await DuckDBInstance.create(join(machine.data, "history.duckdb"));
      const connection = await file.connect();
      await connection.run("CREATE TABLE faultline_schema AS SELECT 99::DOUBLE AS version");
      connection.closeSync();
      file.closeSync();
      return { data: machine.data };
    },
  },
  "another process has the history": {
    state: "broken",
    check: "store",
    says: /history .*history\.duckdb is in use by process \d+/,
    fix: /^stop it/,
    play: async () => {
      await held(join(machine.data, "history.duckdb"));
      return configured({});
    },
  },
  "nobody listens where people sign in": {
    state: "broken",
    check: "sign-in",
    says: /provider http:\/\/127\.0\.0\.1:1: ECONNREFUSED/,
    fix: /^curl -sS http:.*oidc\.issuer/,
    play: () =>
      configured({
        oidc: {
          issuer: "http://127.0.0.1:1/realm",
          clientId: "x",
          groups: [{ group: "*", scopes: ["read"] }],
        },
      }),
  },
  "nobody listens where alerts go": {
    state: "broken",
    check: "alerts",
    says: /Alertmanager http:\/\/127\.0\.0\.1:1: ECONNREFUSED, webhook http:\/\/127\.0\.0\.1:1: ECONN/,
    fix: /^curl/,
    play: () => {
      const url = "http://127.0.0.1:1";
      return configured({ alerts: { alertmanager: [url], webhooks: [{ url: `${url}/secret` }] } });
    },
  },
  "the command of a hook is not there": {
    state: "broken",
    check: "actions",
    says: /cordon-node: \/no\/such\/cmd: there is no such program/,
    fix: /^command -v .\/no\/such\/cmd/,
    play: () =>
      configured({
        actions: { hooks: [{ do: "cordon-node", command: ["/no/such/cmd", "{machine}"] }] },
      }),
  },
  "Slurm's programs are not there": {
    state: "broken",
    check: "actions",
    says: /Slurm \/no\/such\/scontrol: there is no such program/,
    fix: /^command -v .\/no\/such\/scontrol/,
    play: () => configured({ actions: { drivers: { slurm: { scontrol: "/no/such/scontrol" } } } }),
  },
  "the scheme of the service is missing": {
    state: "broken",
    check: "service",
    says: /--server 127\.0\.0\.1:7411 has no scheme/,
    fix: /--server http:\/\/127\.0\.0\.1:7411$/,
    play: () => ({ server: "127.0.0.1:7411" }),
  },
  "the scheme of the service is another one": {
    state: "broken",
    check: "service",
    says: /--server ftp:\/\/x begins with ftp:\/\//,
    fix: /--server http:\/\/x$/,
    play: () => ({ server: "ftp://x" }),
  },
  "the user's own settings are not JSON": {
    state: "broken",
    check: "configuration",
    says: /config\.json is not JSON/,
    fix: /docs\/commands\.md/,
    play: () => {
      machine.settingsFault = new UserError(
        "/home/a/config.json is not JSON: x",
        "see docs/commands.md",
        2,
      );
      return {};
    },
  },
  "the kernel's log may not be read": {
    state: "warning",
    check: "permissions",
    says: /the kernel's log cannot be read, so Xid and PCIe errors are not seen/,
    fix: /dmesg_restrict/,
    play: () => {
      rmSync(machine.kernelLog);
      return {};
    },
  },
  "processes of others are hidden": {
    state: "warning",
    check: "permissions",
    says: /\/proc hides processes of other users/,
    fix: /hidepid=0/,
    play: () => {
      rmSync(join(machine.proc, "1"), { recursive: true });
      return {};
    },
  },
};

describe("a set-up that is broken in one way", () => {
  it.each(Object.keys(CASES))("%s: one line names it, and what to do", async (name) => {
    const one = CASES[name]!;
    const { state, check, says, fix } = one;
    const { lines, text, status } = await machine.examine(await one.play());
    const line = lines.find((found) => found.check === check)!;
    expect(line).toEqual({
      check,
      state,
      says: expect.stringMatching(says) as string,
      fix: expect.stringMatching(fix) as string,
    });
    expect(text.split("\n").filter((one) => says.test(one))).toHaveLength(1);
    if (state === "broken") expect(status).toBe(10);
    // Nobody is accused of what is not there: the store of a service that is not well, at most.
    const others = lines.filter((other) => other !== line && other.state === "broken");
    expect(
      others.map((one) => one.check).filter((one) => !["service", "store"].includes(one)),
    ).toEqual(name === "rings are of another version" ? ["probe"] : []);
  });
});

describe("the service of a configuration", () => {
  it("is asked at its own address; that it answers is enough where there is no token", async () => {
    const url = await machine.service({}, { agents: [401, { error: "a token is needed" }] });
    const config = join(machine.folder, "serve.json");
    const port = Number(url.split(":")[2]);
    const token = { name: "a", scopes: ["read"], token: `sha256:${"0".repeat(64)}` };
    const said = { host: "0.0.0.0", port, data: machine.data, tokens: [token] };
    writeFileSync(config, JSON.stringify(said));
    const { lines } = await machine.examine({ config });
    const of = (check: string) => lines.find((line) => line.check === check);
    expect(of("configuration")).toMatchObject({ state: "ok" });
    expect(of("service")).toMatchObject({
      state: "ok",
      says: expect.stringContaining(`${url} answers`) as string,
    });
    // Not started yet: nothing is broken.
    writeFileSync(config, JSON.stringify({ port: 1, data: machine.data }));
    const idle = (await machine.examine({ config })).lines;
    expect(idle.find((line) => line.check === "service")).toMatchObject({
      state: "none",
      says: expect.stringContaining("nothing answers at http://127.0.0.1:1,") as string,
    });
  });

  it("whose certificate has expired has to renew it: another CA would not help", () => {
    const seen = { url: "https://x", asked: "https://x", isGuessed: false, hasToken: false };
    const nothing = { status: 0, health: null, readStatus: 0, agents: null, clockOffsetMs: null };
    const line = judgeService({ ...seen, ...nothing, failure: "certificate has expired" });
    expect(line).toMatchObject({ state: "broken", fix: expect.stringMatching(/^renew/) as string });
  });
});

describe("the command", () => {
  it("takes the address from the agent's settings, and its own options over them", async () => {
    const folder = join(machine.folder, "config", "faultline");
    mkdirSync(folder, { recursive: true });
    const url = await machine.service();
    writeFileSync(join(folder, "config.json"), JSON.stringify({ "agent run": { server: url } }));
    const env = { XDG_CONFIG_HOME: join(machine.folder, "config"), FAULTLINE_DIR: machine.rings };
    const set = await faultlineIn({ env }, "doctor", "--json");
    const { schema, checks } = JSON.parse(set.stdout) as {
      schema: string;
      checks: { check: string; state: string; says: string }[];
    };
    expect(schema).toBe("faultline.doctor/1");
    const of = (check: string) => checks.find((one) => one.check === check);
    expect(of("service")).toMatchObject({
      state: "ok",
      says: expect.stringContaining(url) as string,
    });
    expect(of("configuration")).toMatchObject({ state: "ok" });
    const other = await faultlineIn({ env }, "doctor", "--server", "http://127.0.0.1:1", "--quiet");
    expect(other.stdout).toMatch(/^broken +service +http:\/\/127\.0\.0\.1:1 does not answer/m);
    writeFileSync(join(folder, "config.json"), "{");
    const broken = await faultlineIn({ env }, "doctor", "--quiet", "--exit-code");
    expect(broken.stdout).toMatch(/^broken +configuration +.*config\.json is not JSON/m);
    expect(broken.status).toBe(10);
  });
});
