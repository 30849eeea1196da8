/** The files of deploy/, as far as they can be checked without a cluster and without root. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { readServeConfig } from "../../src/live/service/config/config.ts";
import { CATALOG } from "../../src/model/metric-catalog.ts";
import { root } from "../support/docs-surroundings.ts";

const deploy = join(root, "deploy");
const folder = mkdtempSync(join(tmpdir(), "faultline-deploy-"));
const children: ChildProcess[] = [];
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await pause(100);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

const has = (program: string, ...words: string[]): boolean =>
  spawnSync(program, words, { stdio: "ignore" }).status === 0;
/** PyYAML is no dependency of ours; where Python lacks it these tests are skipped. */
const hasYaml = has("python3", "-c", "import yaml");
const yamlFiles = readdirSync(join(deploy, "prometheus")).filter((file) => file.endsWith(".yaml"));

function documents(name: string): unknown[] {
  const script = "import json,sys,yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
  const input = readFileSync(join(deploy, name));
  return JSON.parse(
    execFileSync("python3", ["-c", script], { input, encoding: "utf8" }),
  ) as unknown[];
}

function unit(name: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of readFileSync(join(deploy, "systemd", name), "utf8").split("\n")) {
    const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), value!]);
  }
  return found;
}

function flagsOf(...command: string[]): ReadonlySet<string> {
  const help = execFileSync(join(root, "faultline"), [...command, "--help"], { encoding: "utf8" });
  return new Set([...help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map((match) => match[1]!));
}

const flagsIn = (words: readonly string[]): string[] =>
  words.flatMap((word) => /^--[a-z-]+/.exec(word)?.[0] ?? []);

describe("deploy/systemd", () => {
  const units = ["faultline-serve.service", "faultline-agent.service"];

  it.skipIf(!has("systemd-analyze", "--version")).each(units)("%s is a unit", (name) => {
    // Programs and users of another machine: what it says of those is no fault of the unit.
    const text = readFileSync(join(deploy, "systemd", name), "utf8");
    const copy = join(folder, name);
    writeFileSync(copy, text.replaceAll("/usr/bin/node", process.execPath));
    const { stderr } = spawnSync("systemd-analyze", ["verify", copy], { encoding: "utf8" });
    const said = stderr.split("\n").filter((line) => line.includes(name) || line.includes(copy));
    expect(said.filter((line) => !/user|chdir|not found/i.test(line))).toEqual([]);
  });

  it("calls what exists, and lets the compiler of JavaScript work", () => {
    for (const name of units) {
      const [command] = unit(name).get("ExecStart")!;
      const [program, main, ...words] = command!.split(" ");
      expect([program, main]).toEqual(["/usr/bin/node", "/opt/faultline/dist/cli/main.js"]);
      const sub = words[1]!.startsWith("--") ? [words[0]!] : words.slice(0, 2);
      expect([...flagsOf(...sub)]).toEqual(expect.arrayContaining(flagsIn(words)));
      expect(unit(name).get("MemoryDenyWriteExecute")).toBeUndefined();
      expect(unit(name).get("NoNewPrivileges")).toEqual(["yes"]);
      expect(unit(name).get("ProtectSystem")).toEqual(["strict"]);
    }
    expect(unit(units[0]!).get("User")).toEqual(["faultline"]);
    expect(unit(units[0]!).get("CapabilityBoundingSet")).toEqual([""]);
    expect(unit(units[1]!).get("ReadWritePaths")).toEqual(["/dev/shm"]);
  });

  it("has a configuration that the service accepts", () => {
    const text = readFileSync(join(deploy, "systemd/serve.json"), "utf8");
    const path = join(folder, "serve.json");
    certificate();
    writeFileSync(path, text.replaceAll("/etc/faultline", folder));
    const names = [...text.matchAll(/env:(\w+)/g)].map((match) => match[1]!);
    const env = Object.fromEntries(names.map((name) => [name, `${name}-0123456789abcdef`]));
    const config = readServeConfig(path, {}, env);
    expect(config.tokens.map(({ scopes }) => scopes)).toEqual([
      ["agent"],
      ["read"],
      ["read", "act"],
    ]);
    expect(() => readServeConfig(path, {}, {})).toThrow(/environment/);
  });

  it.skipIf(!has("openssl", "version"))(
    "has a service that starts, and an agent that connects over TLS with its token, and nobody without",
    async () => {
      certificate();
      const text = readFileSync(join(deploy, "systemd/serve.json"), "utf8");
      const config = JSON.parse(
        text
          .replaceAll("/etc/faultline", folder)
          .replaceAll("/var/lib/faultline", join(folder, "data"))
          .replaceAll("faultline.example.org", "localhost"),
      ) as Record<string, unknown>;
      delete config["prometheus"];
      delete config["alerts"];
      writeFileSync(join(folder, "running.json"), JSON.stringify(config));
      const tokens = Object.fromEntries(
        ["AGENTS", "READ", "ACT"].map((name) => [
          `FAULTLINE_${name}_TOKEN`,
          `${name}-0123456789abcdef`,
        ]),
      );
      const words = (name: string): string[] =>
        unit(name).get("ExecStart")![0]!.split(" ").slice(2);
      const served = start(
        words(units[0]!).map((word) =>
          word.replace("/etc/faultline/serve.json", join(folder, "running.json")),
        ),
        ["--port", "0", "--host", "127.0.0.1", "--json"],
        tokens,
      );
      const url = (await served.says(/"event":"listening","url":"(https:[^"]+)"/))[1]!;
      const server = `wss://localhost:${new URL(url).port}`;
      const agent = (role: string): Started => {
        const file = join(folder, `${role}.token`);
        writeFileSync(file, tokens[`FAULTLINE_${role}_TOKEN`]!);
        return start(
          words(units[1]!).map((word) =>
            word.replace("${FAULTLINE_SERVER}", server).replace("%d/token", file),
          ),
          ["--dir", folder, "--ca", join(folder, "tls.crt"), "--machine", "node003", "--json"],
        );
      };
      await agent("AGENTS").says(/"event":"connected"/);
      await agent("READ").says(/"event":"trouble".*(401|403|token|scope)/i);
    },
  );
});

describe.skipIf(!hasYaml)("deploy/prometheus", () => {
  it.each(yamlFiles)("%s parses, and every document is something", (name) => {
    for (const one of documents(`prometheus/${name}`)) expect(one).toBeTypeOf("object");
  });

  it("names only figures that the service has", async () => {
    const { metricsText } = await import("../../src/live/service/http/metrics.ts");
    const source = metricsText.toString();
    const rules = readFileSync(join(deploy, "prometheus/faultline-rules.yaml"), "utf8");
    const names = [...rules.matchAll(/faultline_(\w+?)(?:_total)?(?=[\s[])/g)];
    expect(names.length).toBeGreaterThan(2);
    for (const [, name] of names) expect(source).toContain(`"${name}"`);
  });
});

describe("deploy/prometheus/dcgm-counters.csv", () => {
  it("has only fields that machines are compared by", () => {
    const known = new Set(CATALOG.flatMap(({ sources }) => sources.flatMap(({ names }) => names)));
    const lines = readFileSync(join(deploy, "prometheus/dcgm-counters.csv"), "utf8").split("\n");
    const rows = lines.filter((line) => line !== "" && !line.startsWith("#"));
    expect(rows.length).toBeGreaterThan(15);
    for (const row of rows) {
      const [field, type, help] = row.split(/, /);
      expect(known).toContain(field);
      expect(["gauge", "counter"]).toContain(type);
      expect(help).toBeTruthy();
    }
  });
});

/** What an image builder would refuse, or build wrongly, without one. */
describe("deploy/Containerfile", () => {
  const instructions = readFileSync(join(deploy, "Containerfile"), "utf8")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /^(\S+)\s+(.*)$/.exec(line)!.slice(1) as [string, string]);
  const lastStage = instructions.slice(instructions.findLastIndex(([word]) => word === "FROM"));
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8").trim().split("\n");
  const isSent = (path: string): boolean =>
    existsSync(join(root, path)) &&
    !ignored.some((name) => path === name || path.startsWith(`${name}/`));

  it("copies, compiles and installs what the builder gets", () => {
    const copied = instructions
      .filter(([word, rest]) => word === "COPY" && !rest.startsWith("--from"))
      .flatMap(([, rest]) => rest.split(/\s+/).slice(0, -1));
    const made = /^probe\/nccl\/build\//;
    const named = instructions
      .filter(([word]) => word === "RUN")
      .flatMap(([, rest]) => rest.match(/(?<![/\w])probe\/[\w./-]+/g) ?? [])
      .filter((path) => !made.test(path));
    const built = [
      "src",
      "web",
      "scripts",
      "tsconfig.build.json",
      "tsconfig.types.json",
      "LICENSE",
    ];
    expect(copied.length).toBeGreaterThan(3);
    expect(named.length).toBeGreaterThan(3);
    for (const path of [...copied, ...named, ...built])
      expect([path, path === "." || isSent(path)]).toEqual([path, true]);
    for (const path of [".git", "**/node_modules", "dist", "fixtures"])
      expect(ignored).toContain(path);
  });

  it("runs as another user than root, from images of one version", () => {
    expect(lastStage.at(-2)).toEqual(["USER", "10001:10001"]);
    const [word, entry] = lastStage.at(-1)!;
    const program = "/opt/faultline/node_modules/.bin/faultline";
    expect([word, JSON.parse(entry)]).toEqual(["ENTRYPOINT", [program]]);
    const copies = lastStage.filter(([one]) => one === "COPY").map(([, rest]) => rest);
    expect(copies).toEqual(["--from=build /opt/faultline /opt/faultline"]);
    for (const [, image] of instructions.filter(([one]) => one === "FROM"))
      expect(image).toMatch(/^docker\.io\/library\/node:\d+-bookworm(-slim)?( AS build)?$/);
  });
});

describe("deploy/collect-hang.sh", () => {
  it("finds a rank and not its children, takes a young dump and its logs, and says what it lacks", async () => {
    if (!has("python3", "--version")) return;
    const out = join(folder, "hang");
    const [log, errors, both] = ["rank.log", "rank.errors", "both.log"].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    const script = [
      "import os,sys,time",
      "if os.fork()==0: time.sleep(60)",
      "print('oh', file=sys.stderr, flush=True)",
      "print('up', flush=True)",
      "time.sleep(60)",
    ].join("\n");
    const rank = (number: number, to: string): ChildProcess =>
      spawn("sh", ["-c", `exec python3 -c "$1" ${to}`, "-", script], {
        env: {
          ...process.env,
          RANK: String(number),
          TORCH_FR_DUMP_TEMP_FILE: join(folder, "fr_"),
        },
        detached: true,
      });
    const ranks = [rank(7, `> ${log} 2> ${errors}`), rank(8, `> ${both} 2>&1`), rank(9, "")];
    try {
      await new Promise((resolve) => ranks[2]!.stdout!.once("data", resolve));
      for (const path of [log, both]) while (!readText(path).includes("up")) await pause(50);
      writeFileSync(join(folder, "fr_7"), "dump");
      const said = execFileSync("sh", [join(deploy, "collect-hang.sh"), out], { encoding: "utf8" });
      expect(said).toMatch(/done: \d+ ranks?/);
      expect(readText(join(out, "nccl_trace_rank_7"))).toBe("dump");
      expect(readText(join(out, "rank7.log"))).toBe("up\n");
      expect(readText(join(out, "rank7.stderr.log"))).toBe("oh\n");
      expect(readText(join(out, "rank8.log"))).toBe("oh\nup\n");
      const copied = readdirSync(out).filter((name) => /^rank[89]\./.test(name));
      expect(copied).toEqual(["rank8.log"]);
      expect(said).toMatch(/rank 9: its stdout goes into a pipe/);
      expect(said).toMatch(/rank 9: its stderr goes into a pipe/);
    } finally {
      for (const { pid } of ranks) process.kill(-pid!, "SIGKILL");
    }
  });
});

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function certificate(): void {
  const to = ["-keyout", join(folder, "tls.key"), "-out", join(folder, "tls.crt")];
  const names = ["-subj", "/CN=faultline", "-addext", "subjectAltName=DNS:localhost"];
  const how = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
  execFileSync("openssl", [...how, ...names, ...to], { stdio: "ignore" });
}

interface Started {
  says(pattern: RegExp): Promise<RegExpExecArray>;
}

function start(
  words: readonly string[],
  more: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Started {
  const child = spawn(join(root, "faultline"), [...words, ...more], {
    env: { ...process.env, ...env },
  });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return {
    says: async (pattern) => {
      for (;;) {
        const found = pattern.exec(text);
        if (found !== null) return found;
        if (child.exitCode !== null) throw new Error(`${words.join(" ")} ended: ${text}`);
        await pause(50);
      }
    },
  };
}
