/** Files that a pattern names: "*" and "?" within a name, at any depth of the path that the pattern spells out. */
import { lstatSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** Names looked at in one go: a pattern over a whole disk must not keep the agent from its work. */
const MOST_NAMES = 65_536;

export interface GlobResult {
  readonly paths: readonly string[];
  /** Whether there was more than could be looked at. */
  readonly isCut: boolean;
}

export function expandPattern(pattern: string, most: number): GlobResult {
  const parts = resolve(pattern).split("/").slice(1);
  let folders = ["/"];
  let looked = 0;
  let isCut = false;
  for (const [depth, part] of parts.entries()) {
    const isLast = depth === parts.length - 1;
    const next: string[] = [];
    const wanted = /[*?]/.test(part) ? expressionOf(part) : null;
    for (const folder of folders) {
      if (wanted === null) {
        next.push(join(folder, part));
        continue;
      }
      for (const name of namesIn(folder)) {
        if (++looked > MOST_NAMES || next.length >= most) {
          isCut = true;
          break;
        }
        if (wanted.test(name)) next.push(join(folder, name));
      }
    }
    folders = isLast ? next.filter(isThere) : next;
  }
  return { paths: folders.sort(), isCut };
}

function expressionOf(part: string): RegExp {
  const source = part
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*+/g, "[^/]*")
    .replaceAll("?", "[^/]");
  // A leading dot is never meant by a star, as in a shell.
  return new RegExp(`^${part.startsWith("*") || part.startsWith("?") ? "(?!\\.)" : ""}${source}$`);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
