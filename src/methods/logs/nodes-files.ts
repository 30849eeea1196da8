/** What the names of files tell of whose they are: what differs between them, less what says what is written. */
import type { LogFile } from "../../model/log-digest.ts";

interface FileOwner {
  /** Of a machine, or of a writer; undefined where it is a rank's or nobody's. */
  readonly name: string | undefined;
  readonly rank: number | undefined;
}

/** Parts of a path that name a machine or a process. */
const NAMED = /(?:^|[^a-z])((?:node|host|worker|machine|server|pod|agent)[-_.]?\d+)(?![a-z])/i;
const RANKED = /(?:^|[^a-z])(?:rank|global_rank)[-_.]?(\d+)(?![a-z\d])/i;
/** Parts that say what is written, not who writes. */
const WHAT = /^(?:stdout|stderr|std|out|err|log|logs|txt|gz|console|attempt|output)$/i;
const SEPARATORS = /[/\\._\s]+/;
const NOBODY: FileOwner = { name: undefined, rank: undefined };

export function namesOfFiles(
  files: readonly LogFile[],
  hosts: ReadonlySet<string>,
): readonly FileOwner[] {
  if (files.length < 2) return files.map(() => NOBODY);
  const names = withoutCommonFolders(files.map(({ name }) => name));
  const owners = names.map((name): FileOwner | null => {
    const parts = name.split(/[/\\]/).flatMap((part) => [part, ...part.split(".")]);
    const host = parts.find((part) => hosts.has(part)) ?? NAMED.exec(name)?.[1];
    if (host !== undefined) return { name: host, rank: undefined };
    const rank = RANKED.exec(name)?.[1];
    return rank === undefined ? null : { name: undefined, rank: Number(rank) };
  });
  const varying = varyingParts(names);
  const all = owners.map((owner, f) => owner ?? { name: varying[f], rank: undefined });
  // One name for all tells nothing apart.
  return new Set(all.map(({ name, rank }) => `${name}|${rank}`)).size > 1
    ? all
    : all.map(() => NOBODY);
}

/** A folder that all files lie in names none of them, whatever its name. */
function withoutCommonFolders(names: readonly string[]): string[] {
  const folders = names.map((name) => name.split(/[/\\]/));
  let common = 0;
  const [first = []] = folders;
  while (
    common < first.length - 1 &&
    folders.every((one) => common < one.length - 1 && one[common] === first[common])
  )
    common++;
  return folders.map((one) => one.slice(common).join("/"));
}

/** What of the names differs, among names of the same make: one "scheduler.out" beside logs of nodes is nobody's. */
function varyingParts(names: readonly string[]): (string | undefined)[] {
  const parts = names.map((name) => name.split(SEPARATORS).filter((part) => part !== ""));
  const makes = new Map<string, number[]>();
  parts.forEach((one, i) => {
    const make = `${one.length}|${one.map((part) => (/\d/.test(part) ? "#" : "a")).join("")}`;
    const list = makes.get(make);
    if (list) list.push(i);
    else makes.set(make, [i]);
  });
  const found: (string | undefined)[] = names.map(() => undefined);
  for (const list of makes.values()) {
    if (list.length < 2) continue;
    const first = parts[list[0]!]!;
    const isName = first.map((part, at) => {
      const kinds = new Set(list.map((i) => parts[i]![at]));
      return kinds.size > 1 && /\d/.test(part) && !WHAT.test(part);
    });
    for (const i of list) {
      const name = parts[i]!.filter((_, at) => isName[at]).join(".");
      if (name !== "") found[i] = /^\d+$/.test(name) ? `writer ${Number(name)}` : name;
    }
  }
  return found;
}
