/** Inputs from where they are: pipes, process substitution, other machines over a real ssh; and `faultline collect`. */
import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Verdict } from "../../src/model/verdict.ts";
import { faultlineProcess, ROOT, type Ran } from "../support/cli.ts";
import { freePort } from "../support/free-port.ts";
import { programPath, unlessThere } from "../support/lacking.ts";
import { until } from "../support/until.ts";
import { few } from "../support/cases.ts";

const RECORDING = `${ROOT}fixtures/recordings/hang3.tar.gz`;
const OUT_OF_MEMORY = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
const folder = mkdtempSync(join(tmpdir(), "faultline-pipes-"));
const dumps = join(folder, "dumps");
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

beforeAll(() => {
  mkdirSync(dumps);
  spawnSync("tar", ["xzf", RECORDING, "-C", dumps]);
});

/** A line of a shell, as a user types it; `faultline` is on the path. */
async function shell(line: string, more: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const env = { ...process.env, PATH: `${ROOT}:${process.env["PATH"]}`, ...more };
  return await new Promise((resolve) => {
    execFile(
      "bash",
      ["-c", line],
      { env, cwd: folder, maxBuffer: 1 << 26 },
      (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    );
  });
}

const answer = ({ stdout, stderr }: Ran): unknown => {
  if (!stdout.startsWith("{")) throw new Error(stderr);
  const { kind, suspects } = JSON.parse(stdout) as Verdict;
  return [kind, suspects[0]?.ranks];
};

describe("a pipe", () => {
  const WAYS = [
    ["an archive", `cat ${RECORDING} | faultline diagnose - --json`],
    ["a tar stream", `tar c -C ${dumps} . | faultline diagnose - --json`],
    ["a compressed tar stream", `tar cz ${dumps} 2>/dev/null | faultline diagnose - --json`],
    ["process substitution", `faultline diagnose <(cat ${RECORDING}) --json`],
    ["/dev/stdin", `cat ${RECORDING} | faultline diagnose /dev/stdin --json`],
    ["standard input that is a file", `faultline diagnose - --json < ${RECORDING}`],
  ] as const;
  it.each(few(WAYS, 4))("is read: %s", async (_name, line) => {
    expect(answer(await shell(line))).toEqual(["hang", [3]]);
  });

  it("is read from a web server or an object store, whole or by its end", async () => {
    const whole = readFileSync(RECORDING);
    const log = `${"epoch 1\n".repeat(10_000)}${OUT_OF_MEMORY}\n`;
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      const bytes = request.url === "/train.log" ? Buffer.from(log) : whole;
      asked.push(request.headers.range);
      const last = /^bytes=-(\d+)$/.exec(request.headers.range ?? "")?.[1];
      if (last === undefined) response.end(bytes);
      else response.writeHead(206).end(bytes.subarray(-Number(last)));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const job = await shell(`curl -s ${url}/job.tar.gz | faultline diagnose - --json`);
      expect(answer(job)).toEqual(["hang", [3]]);
      const end = await shell(`curl -s -r -1000 ${url}/train.log | faultline logs - --json`);
      expect(end.stdout).toContain(OUT_OF_MEMORY);
      expect(asked).toEqual([undefined, "bytes=-1000"]);
    } finally {
      server.close();
    }
  });

  it("is named as - where nothing in it can be used", async () => {
    const empty = await shell("faultline diagnose - --json < /dev/null");
    expect([empty.status, empty.stderr]).toEqual([
      3,
      expect.stringMatching(/^faultline: -: is empty;/),
    ]);
    const cut = await shell(`head -c 3000 ${RECORDING} | faultline diagnose - --json --quiet`);
    expect(cut.stdout + cut.stderr).toMatch(/damaged or cut off|cut off/);
  });

  it("inside a folder is somebody else's, and not read", async () => {
    const trap = join(dumps, "fr_pipe_0.pipe");
    spawnSync("mkfifo", [trap]);
    try {
      expect(answer(await shell(`faultline diagnose ${dumps} --json`))).toEqual(["hang", [3]]);
    } finally {
      rmSync(trap);
    }
  });
});

/** A trainer as a scheduler starts it; only its environment and its log matter here. */
async function trainer(rank: number): Promise<ChildProcess> {
  const log = join(folder, `train.${rank}.log`);
  const code = "import time; print('iteration 1 loss 2.5', flush=True); time.sleep(300)";
  const child = spawn("sh", ["-c", `exec python3 -c "$1" > ${log}`, "-", code], {
    env: { ...process.env, RANK: String(rank), TORCH_FR_DUMP_TEMP_FILE: join(dumps, "none_") },
  });
  children.push(child);
  await until(() => spawnSync("grep", ["-q", "iteration", log]).status === 0);
  return child;
}

/** A folder with a py-spy that never answers, and does not listen to signals. */
function hangingPySpy(): string {
  const bin = mkdtempSync(join(folder, "bin-"));
  writeFileSync(join(bin, "py-spy"), "#!/bin/sh\ntrap '' TERM\nexec sleep 300\n");
  chmodSync(join(bin, "py-spy"), 0o755);
  return bin;
}

const noPython = unlessThere(programPath("python3") !== null, "Python", "python3");
describe.skipIf(noPython !== "")(`faultline collect${noPython}`, () => {
  it("takes what this machine has, and harms no process", async () => {
    const job = await trainer(41);
    const out = join(folder, "here.tar.gz");
    const ran = await faultlineProcess({}, "collect", "--out", out, "--json");
    expect(ran.status).toBe(0);
    const { machines } = JSON.parse(ran.stdout) as { machines: { isWhole: boolean }[] };
    expect(machines).toEqual([expect.objectContaining({ isWhole: true })]);
    expect(job.exitCode).toBeNull();
    const members = spawnSync("sh", ["-c", `tar xzOf ${out} | tar ti`], { encoding: "utf8" });
    expect(members.stdout).toContain("./rank41.log");
    job.kill();
    await once(job, "exit");
  });

  it("passes on what it has while a step hangs, and cleans up even when it is killed", async () => {
    const job = await trainer(42);
    const room = mkdtempSync(join(folder, "room-"));
    const script = spawn("sh", [join(ROOT, "src/cli/collect-hang.sh"), "-", "60"], {
      env: { ...process.env, TMPDIR: room, PATH: `${hangingPySpy()}:${process.env["PATH"]}` },
    });
    children.push(script);
    const came: Buffer[] = [];
    script.stdout.on("data", (chunk: Buffer) => came.push(chunk));
    const members = (): string =>
      spawnSync("tar", ["tzi"], { input: Buffer.concat(came), encoding: "utf8" }).stdout;
    await until(() => members().includes("./rank42.log"));
    expect(script.exitCode).toBeNull();
    script.kill("SIGKILL");
    await until(() => readdirSync(room).length === 0);
    job.kill();
  });

  it("ends within its limit, with what it has, and names the step that took too long", async () => {
    const job = await trainer(44);
    const out = join(folder, "hung-step.tar.gz");
    const env = { ...process.env, PATH: `${hangingPySpy()}:${process.env["PATH"]}` };
    const ran = await faultlineProcess({ env }, "collect", "--out", out, "--limit", "5s");
    expect([ran.status, ran.stderr]).toEqual([
      0,
      expect.stringContaining("rank 44: its stack: not done within 4 s, left out"),
    ]);
    const members = spawnSync("sh", ["-c", `tar xzOf ${out} | tar ti`], { encoding: "utf8" });
    expect(members.stdout).toContain("./rank44.log");
    expect(ran.stderr).not.toContain("cut off");
    job.kill();
  });

  it("asks Slurm for the machines, and names those that do not answer in time", async () => {
    const bin = join(folder, "slurm-bin");
    mkdirSync(bin);
    const program = (name: string, text: string): void => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    program("squeue", `[ "$*" = "--noheader --jobs 77 --format=%N" ] && echo 'n[1-2]'`);
    program("scontrol", `[ "$*" = "show hostnames n[1-2]" ] && printf 'n1\\nn2\\n'`);
    // One node runs the script; the other hangs.
    program("srun", `case "$*" in *--nodelist=n1*) exec sh -s -- - ;; *) exec sleep 300 ;; esac`);
    const PATH = `${bin}:${process.env["PATH"]}`;
    const out = join(folder, "slurm.tar.gz");
    const words = ["collect", "--slurm", "77", "--out", out, "--limit", "5s"];
    const ran = await faultlineProcess({ env: { ...process.env, PATH } }, ...words);
    expect([ran.status, ran.stdout]).toEqual([0, expect.stringContaining("from 1 of 2 machines")]);
    expect(ran.stderr).toContain("n2: not done within 5 s");
    const names = spawnSync("tar", ["tzf", out], { encoding: "utf8" });
    expect(names.stdout).toBe("n1.tar\n");
  });

  it.each([
    ["--host", "-oProxyCommand=touch"],
    ["--slurm", "1;id"],
  ])("refuses what is no name: %s %s", async (option, value) => {
    const out = join(folder, "never.tar.gz");
    const ran = await faultlineProcess({}, "collect", `${option}=${value}`, "--out", out);
    expect([ran.status, ran.stderr.trim().split("\n").length]).toEqual([2, 1]);
  });
});

const sshd = programPath("sshd");
const noSsh = unlessThere(sshd !== null && programPath("ssh") !== null, "sshd", "openssh-server");
describe.skipIf(noSsh !== "")(`over a real ssh${noSsh}`, () => {
  let ssh = "";

  beforeAll(async () => {
    const port = await freePort();
    for (const name of ["host", "user"])
      spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, name)]);
    spawnSync("cp", [join(folder, "user.pub"), join(folder, "authorized")]);
    chmodSync(join(folder, "authorized"), 0o600);
    if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true });
    const config = [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${join(folder, "host")}`,
      `AuthorizedKeysFile ${join(folder, "authorized")}`,
      "PidFile none",
      "UsePAM no",
      "StrictModes no",
      "PermitRootLogin prohibit-password",
    ];
    writeFileSync(join(folder, "sshd_config"), `${config.join("\n")}\n`);
    children.push(spawn(sshd!, ["-D", "-e", "-f", join(folder, "sshd_config")]));
    const known = `-o UserKnownHostsFile=${join(folder, "known")} -o StrictHostKeyChecking=accept-new`;
    ssh = `ssh -q -p ${port} -i ${join(folder, "user")} ${known} -o IdentitiesOnly=yes`;
    await until(() => spawnSync("sh", ["-c", `${ssh} localhost true`]).status === 0);
  });

  it("reads a tar stream of another machine", async () => {
    const line = `${ssh} localhost tar cz -C ${dumps} . | faultline diagnose - --json`;
    expect(answer(await shell(line))).toEqual(["hang", [3]]);
  });

  it("reads several machines at once", async () => {
    const half = (which: string): string => `<(${ssh} localhost "cd ${dumps} && tar cz ${which}")`;
    const all = spawnSync("sh", ["-c", `cd ${dumps} && ls`], { encoding: "utf8" });
    const names = all.stdout.trim().split("\n");
    const [first, second] = [names.slice(0, names.length >> 1), names.slice(names.length >> 1)];
    const line = `faultline diagnose ${half(first.join(" "))} ${half(second.join(" "))} --json`;
    expect(answer(await shell(line))).toEqual(["hang", [3]]);
  });

  it("collects from machines in one archive that diagnose reads", async () => {
    const job = await trainer(43);
    const out = join(folder, "ssh.tar.gz");
    writeFileSync(join(folder, "hosts"), "localhost slots=8\n# none\nno-such-machine.invalid\n");
    const line = `faultline collect --hostfile hosts --ssh "${ssh}" --out ${out}`;
    const ran = await shell(line);
    expect([ran.status, ran.stdout]).toEqual([0, expect.stringContaining("from 1 of 2 machines")]);
    expect(ran.stderr).toContain("no-such-machine.invalid: nothing came from it");
    expect(job.exitCode).toBeNull();
    const read = await shell(`faultline diagnose ${out} --json --quiet`);
    const { inputs } = JSON.parse(read.stdout) as Verdict;
    expect(inputs.map(({ path }) => path)).toContainEqual(
      expect.stringMatching(/localhost\.tar\/\.\/rank43\.log$/),
    );
  });
});
