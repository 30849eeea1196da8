/** Which machines a job runs on, and the words that start a shell on each. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { errorText, UserError } from "../base/errors.ts";

export interface CollectMachine {
  readonly name: string;
  /** Starts a program there that reads a shell script from its standard input. */
  readonly words: readonly [string, ...string[]];
}

export interface WhichMachines {
  readonly host?: readonly string[];
  readonly hostfile?: string;
  readonly slurm?: string;
  readonly pods?: string;
  readonly namespace?: string;
  readonly container?: string;
  readonly ssh: string;
  /** Seconds for each machine. */
  readonly limit: number;
}

/** A shell that reads the script, with its words; the script ends before the limit and says what it left out. */
function script({ limit }: WhichMachines): readonly [string, ...string[]] {
  return ["sh", "-s", "--", "-", String(Math.max(1, Math.floor(0.9 * limit)))];
}

const ASK_MS = 30_000;
const MOST_MACHINES = 20_000;

export async function machinesToAsk(which: WhichMachines): Promise<readonly CollectMachine[]> {
  if (which.slurm !== undefined) return await slurmMachines(which.slurm, which);
  if (which.pods !== undefined) return await podMachines(which.pods, which);
  const named = [...(which.host ?? []), ...(which.hostfile ? await linesOf(which.hostfile) : [])]
    .flatMap((list) => list.split(","))
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (named.length === 0 && which.host === undefined && which.hostfile === undefined)
    return [{ name: "this machine", words: script(which) }];
  const [ssh = "ssh", ...options] = which.ssh.split(/\s+/).filter((word) => word !== "");
  // No question can be answered here, and a machine that is down must not take all the time.
  const always = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];
  return checked(named).map((name) => ({
    name,
    words: [ssh, ...always, ...options, name, script(which).join(" ")],
  }));
}

async function slurmMachines(job: string, which: WhichMachines): Promise<CollectMachine[]> {
  if (!/^\d+(_\d+)?(\+\d+)?$/.test(job))
    throw new UserError(`${job}: not the number of a Slurm job`, "give --slurm 1234", 2);
  const nodes = (await said("squeue", ["--noheader", "--jobs", job, "--format=%N"])).trim();
  if (nodes === "")
    throw new UserError(`Slurm knows no running job ${job}`, "squeue --me lists yours", 3);
  const names = (await said("scontrol", ["show", "hostnames", nodes])).split(/\s+/).filter(Boolean);
  return checked(names).map((name) => ({
    name,
    words: [
      "srun",
      `--jobid=${job}`,
      `--nodelist=${name}`,
      "--nodes=1",
      "--ntasks=1",
      // The step shares what the job has, and takes no GPU.
      "--overlap",
      "--gres=none",
      "--mem=0",
      "--unbuffered",
      ...script(which),
    ],
  }));
}

async function podMachines(selector: string, which: WhichMachines): Promise<CollectMachine[]> {
  const { namespace, container } = which;
  const where = namespace === undefined ? [] : ["--namespace", namespace];
  const running = ["--field-selector", "status.phase=Running", "-o", "name"];
  const list = await said("kubectl", ["get", "pods", ...where, "-l", selector, ...running]);
  const names = list.split(/\s+/).filter(Boolean);
  if (names.length === 0)
    throw new UserError(`no running pod has ${selector}`, "kubectl get pods -l shows them", 3);
  const inside = container === undefined ? [] : ["--container", container];
  return checked(names.map((name) => name.replace(/^pod\//, ""))).map((name) => ({
    name,
    words: ["kubectl", "exec", "-i", ...where, name, ...inside, "--", ...script(which)],
  }));
}

/** A name becomes a word of a command and the name of a file. */
function checked(names: readonly string[]): readonly string[] {
  const bad = names.find((name) => !/^[A-Za-z0-9_[][A-Za-z0-9_.:@%[\]-]{0,252}$/.test(name));
  if (bad !== undefined)
    throw new UserError(`${bad}: not the name of a machine`, "give host or user@host", 2);
  if (names.length === 0)
    throw new UserError("no machine is named", "give --host or a --hostfile with one per line", 2);
  if (names.length > MOST_MACHINES)
    throw new UserError(`${names.length} machines are too many`, "collect from some of them", 2);
  return [...new Set(names)];
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new UserError(`${file}: ${errorText(error)}`, "give --hostfile a file to read", 3);
  });
  // As mpirun's: a name, perhaps with slots behind it.
  return text.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/)[0] ?? "");
}

async function said(program: string, words: readonly string[]): Promise<string> {
  return await new Promise((resolve, reject) => {
    const options = { timeout: ASK_MS, maxBuffer: 1 << 24 };
    execFile(program, words, options, (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else {
        const why = stderr.trim().split("\n").at(-1) || error.message.split("\n", 1)[0];
        reject(new UserError(`${program}: ${why}`, "run it where the job was submitted"));
      }
    });
  });
}
