/** Options and help of `faultline doctor`. */
import type { Command } from "commander";
import { UserError } from "../base/errors.ts";
import type { DoctorFlags } from "./doctor/doctor.ts";
import type { Io } from "./io.ts";
import { applySettings, configFile } from "./settings.ts";

export function addDoctor(io: Io, program: Command, setStatus: (status: number) => void): void {
  const doctor = program
    .command("doctor")
    .description(
      "is all of it set up: probe, rings, agent, service, Prometheus, clocks, disk, permissions",
    )
    .option(
      "--server <url>",
      "the service (default: the agent's --server, or http://127.0.0.1:7077)",
    )
    .option(
      "--token-file <file>",
      "file with a token of scope read or agent (default: FAULTLINE_TOKEN)",
    )
    .option("--ca <file>", "PEM of the CA that signed the service's certificate")
    .option("--dir <folder...>", "where the rings are (default: as for faultline agent)")
    .option("--config <file>", "also check this configuration of faultline serve")
    .option("--data <dir>", "data folder of faultline serve (default ~/.local/share/faultline)")
    .option("--prometheus <url>", "also ask this Prometheus (default: that of --config)")
    .option("--match <labels>", "which machines, as PromQL label matchers")
    .option("--json", "print one JSON document on stdout, nothing else")
    .option("--quiet", "print only what is wrong")
    .option("--exit-code", "exit with 10 when something is broken")
    .addHelpText("after", EXAMPLES)
    .action(async (options: DoctorFlags) => {
      // A copy: settings are put into the same object, and the command line goes over them.
      const given = { ...options };
      const settings = settingsOf(program, io);
      const { HERE, runDoctor } = await import("./doctor/doctor.ts");
      const flags = { ...usual(program), ...doctor.opts(), ...given };
      setStatus(await runDoctor(io, flags, { ...HERE, settings }));
    });
}

/** Settings were not applied before: what is wrong with them is a line like the others. */
function settingsOf(program: Command, io: Io) {
  try {
    applySettings(program, io.env);
    return { file: configFile(io.env, true), fault: null };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { file: null, fault: error };
  }
}

/** What the user has set for `faultline agent` and `faultline serve`. */
function usual(program: Command): DoctorFlags {
  const named = (command: Command | undefined, name: string): Command | undefined =>
    command?.commands.find((one) => one.name() === name);
  const agent = named(named(program, "agent"), "run")?.opts<DoctorFlags>() ?? {};
  const serve = named(program, "serve")?.opts<DoctorFlags>() ?? {};
  const { server, tokenFile, ca, dir } = agent;
  const { config, data, prometheus, match } = serve;
  const all = { server, tokenFile, ca, dir, config, data, prometheus, match, serve };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const EXAMPLES = `
One line each: ok, warning, broken, or - for what is not set up. It changes nothing, and needs no service, GPU or job. Run it on
a machine of the job as the job's user or as root, and on the machine of the service.

Examples:
  faultline doctor
  sudo faultline doctor --server wss://faultline.example:7077 --token-file /etc/faultline/agent.token
  faultline doctor --config /etc/faultline/serve.json --exit-code --quiet     only what is wrong; 10 where it is broken`;
