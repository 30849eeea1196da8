/**
 * Options that a user or a site sets once. Precedence, highest first: the command line, the environment
 * (FAULTLINE_DIAGNOSE_STORE), the configuration file (~/.config/faultline/config.json), the default.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CommanderError, type Command, type Option } from "commander";
import { fieldsOf } from "../base/json.ts";
import { errorText, UserError } from "../base/errors.ts";
import type { Io } from "./io.ts";

type Environment = Io["env"];
type Config = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const HINT = "see docs/commands.md, Configuration; FAULTLINE_CONFIG= leaves the file out";
/** Of one call, not of a site. */
const NEVER_SET: ReadonlySet<string> = new Set(["help", "version", "play"]);

/** Gives every command the values that the environment and the file hold for it. Before the command line is parsed. */
export function applySettings(program: Command, env: Environment): void {
  const file = configFile(env);
  const config = file === null ? {} : readConfig(file);
  const commands = commandsOf(program);
  for (const [path, values] of Object.entries(config)) {
    const command = commands.get(path);
    if (!command)
      throw new UserError(
        `${file}: there is no command "${path}"`,
        `${HINT}; "agent run" is one`,
        2,
      );
    for (const [name, value] of Object.entries(values)) {
      const option = optionsOf(command).find((one) => longName(one) === name);
      if (!option) throw new UserError(`${file}: "${path}" has no option "${name}"`, HINT, 2);
      set(command, option, value, `${file}: "${path}", "${name}"`);
    }
  }
  for (const [path, command] of commands)
    for (const option of optionsOf(command)) {
      const name = variableName(path, option);
      const value = env[name];
      if (value === undefined || value === "") continue;
      if (!isFlag(option)) set(command, option, value, name);
      else if (value === "0" || value === "false") unset(command, option);
      else set(command, option, true, name);
    }
}

/** null where there is none to read. */
export function configFile(env: Environment, mustExist = false): string | null {
  const named = env["FAULTLINE_CONFIG"];
  if (named === "") return null;
  if (named !== undefined) {
    if (!existsSync(named))
      throw new UserError(`FAULTLINE_CONFIG ${named}: there is no such file`, HINT, 2);
    return named;
  }
  const home = env["XDG_CONFIG_HOME"] || (env["HOME"] ? join(env["HOME"], ".config") : "");
  const file = home === "" ? null : join(home, "faultline", "config.json");
  return file === null || (mustExist && !existsSync(file)) ? null : file;
}

function readConfig(file: string): Config {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Nobody has to have one; one that may not be read is another user's home.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return {};
    throw new UserError(`${file}: ${errorText(error)}`, HINT, 2);
  }
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw new UserError(`${file} is not JSON: ${errorText(error)}`, HINT, 2);
  }
  if (!isObject(config) || !Object.values(config).every(isObject))
    throw new UserError(
      `${file} must hold one object per command: { "diagnose": { "store": "site.json" } }`,
      HINT,
      2,
    );
  return config as Config;
}

function isObject(value: unknown): value is object {
  return fieldsOf(value) !== null;
}

/** Commands by the words that call them: "diagnose", "agent run". Groups, which do nothing themselves, are left out. */
export function commandsOf(program: Command): Map<string, Command> {
  const found = new Map<string, Command>();
  const visit = (command: Command, words: readonly string[]): void => {
    if (words.length > 0 && optionsOf(command).length > 0) found.set(words.join(" "), command);
    for (const below of command.commands) visit(below, [...words, below.name()]);
  };
  visit(program, []);
  return found;
}

function optionsOf(command: Command): readonly Option[] {
  return command.options.filter(
    (option) => option.long !== undefined && !option.hidden && !NEVER_SET.has(longName(option)),
  );
}

function longName(option: Option): string {
  return (option.long ?? "").replace(/^--/, "");
}

function variableName(path: string, option: Option): string {
  return `FAULTLINE_${path} ${longName(option)}`.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
}

function isFlag(option: Option): boolean {
  return !option.required && !option.optional;
}

function set(command: Command, option: Option, given: unknown, where: string): void {
  const value = isFlag(option) ? flagValue(option, given, where) : valueOf(option, given, where);
  if (value === undefined) return;
  // The command line replaces what is a default, and adds to other lists.
  // Its value may be a secret, and help is pasted into tickets.
  option.default(value, `set by ${where}`);
  command.setOptionValueWithSource(option.attributeName(), value, "config");
}

/** The environment takes back a flag that the file sets. */
function unset(command: Command, option: Option): void {
  if (command.getOptionValueSource(option.attributeName()) !== "config") return;
  const value = option.negate ? true : undefined;
  option.default(value);
  command.setOptionValueWithSource(option.attributeName(), value, "default");
}

/** undefined: as it is without it. */
function flagValue(option: Option, given: unknown, where: string): boolean | undefined {
  if (typeof given !== "boolean") throw new UserError(`${where} must be true or false`, HINT, 2);
  if (!given) return undefined;
  return !option.negate;
}

function valueOf(option: Option, given: unknown, where: string): unknown {
  const values: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (values.length === 0 || !values.every((one) => ["string", "number"].includes(typeof one)))
    throw new UserError(`${where} must be a text or a number`, HINT, 2);
  if (values.length > 1 && !option.variadic && !option.parseArg)
    throw new UserError(`${where} takes one value`, HINT, 2);
  try {
    const texts = values.map(String);
    if (option.argChoices && texts.some((text) => !option.argChoices!.includes(text)))
      throw new Error(`it must be one of ${option.argChoices.join(", ")}`);
    if (!option.parseArg) return option.variadic ? texts : texts[0];
    // A choice's own parser refuses by itself; a parser of lists collects.
    const parse = option.parseArg as (text: string, before: unknown) => unknown;
    return texts.reduce<unknown>((before, text) => parse(text, before), undefined);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const why = error instanceof CommanderError || error instanceof Error ? error.message : "";
    throw new UserError(`${where}: ${why.replace(/\.$/, "")}`, HINT, 2);
  }
}
