/** Secrets of a configuration: a file of its own, the environment, or only a hash. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { errorText, UserError } from "../../../base/errors.ts";
import type { Token } from "../http/authorize.ts";

export interface SecretSource {
  /** What paths in the configuration are relative to. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Begins every error: the configuration's file. */
  readonly file: string;
}

const LEAST_TOKEN = 16;
/** They stand in the audit trail for what no token did. */
const OWN_NAMES = ["service", "loopback", "anybody", "link"];
const MOST_BYTES = 1 << 20;
const HINT = "docs/guides/serve.md says how tokens are made";

/** The text of `file:PATH` or `env:NAME`; other text as it is. */
export function secret(text: string, where: string, source: SecretSource): string {
  if (text.startsWith("file:")) {
    const path = resolve(source.folder, text.slice("file:".length));
    const found = readText(path, `${source.file}: ${where}`).trim();
    if (found === "") throw new UserError(`${source.file}: ${where}: ${path} is empty`, HINT, 2);
    return found;
  }
  if (text.startsWith("env:")) {
    const name = text.slice("env:".length);
    const found = (Object.hasOwn(source.env, name) ? source.env[name] : "")?.trim();
    if (!found)
      throw new UserError(
        `${source.file}: ${where}: the environment has no ${name}`,
        `put it into ${name}`,
        2,
      );
    return found;
  }
  return text;
}

export function isReference(text: string): boolean {
  return text.startsWith("file:") || text.startsWith("env:");
}

export interface TokenEntry {
  readonly name: string;
  readonly scopes: Token["scopes"];
  readonly token: string;
  readonly plain: boolean;
  readonly agent?: string | undefined;
  readonly jobs?: readonly string[] | undefined;
}

export function readTokens(entries: readonly TokenEntry[], source: SecretSource): Token[] {
  const names = new Set<string>();
  const hashes = new Set<string>();
  return entries.map((entry, i) => {
    const wrong = (why: string): never => {
      throw new UserError(`${source.file}: tokens[${i}]${why}`, HINT, 2);
    };
    const { name, scopes, plain, agent = null, jobs = null } = entry;
    if (OWN_NAMES.includes(name)) wrong(`.name: "${name}" is a name of the service's own`);
    if (names.has(name)) wrong(`.name: there are two tokens "${name}"`);
    if (agent !== null && !scopes.includes("agent"))
      wrong(".agent: only a token with the scope agent can be bound to an agent");
    const isPlain = !isReference(entry.token) && !entry.token.startsWith("sha256:");
    if (isPlain && !plain)
      wrong('.token: must be sha256:…, file:… or env:…; a token in plain text needs "plain": true');
    const text = secret(entry.token, `tokens[${i}].token`, source);
    const sha256 = hashOf(text) ?? wrong(`.token: sha256: is followed by 64 hexadecimal digits`);
    if (!text.startsWith("sha256:") && text.length < LEAST_TOKEN)
      wrong(`.token: a token has ${LEAST_TOKEN} characters or more`);
    if (!/^[\x21-\x7e]+$/.test(text)) wrong(".token: a token is one word of ASCII");
    if (hashes.has(sha256)) wrong(".token: is the same as another's");
    names.add(name);
    hashes.add(sha256);
    return { name, scopes: [...new Set(scopes)], agent, jobs, sha256 };
  });
}

/** null where it says that it is a hash and is none. */
function hashOf(text: string): string | null {
  if (!text.startsWith("sha256:")) return createHash("sha256").update(text).digest("hex");
  const digits = text.slice("sha256:".length).toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? digits : null;
}

/** A file of the operator's, at most a megabyte. */
export function readText(path: string, whose: string): string {
  let size = 0;
  try {
    // Not a pipe, a device or a folder: reading could last for ever.
    const found = statSync(path);
    if (!found.isFile()) throw new Error("it is not a file");
    size = found.size;
    if (size <= MOST_BYTES) return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const why = errorText(error);
    throw new UserError(
      `${whose}: ${path} cannot be read: ${why}`,
      "check the path and its permissions",
      2,
    );
  }
  throw new UserError(`${whose}: ${path} has ${size} bytes`, `${MOST_BYTES} are the most`, 2);
}
