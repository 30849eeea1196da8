/**
 * Which node wrote what: by the host that lines name, else by what differs between the names of files, else by rank.
 * Everything that compares nodes (L4 §5.3.1) rests on this.
 */
import { getOrInsert } from "../../base/group-by.ts";
import type { LogDigest, LogStream, LogFile } from "../../model/log-digest.ts";

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

/** What hosts have of GPUs. Of several that fit, the least: a host taken for two does less harm than two for one. */
const SIZES = [1, 2, 4, 6, 8, 16, 32, 36, 64, 72];

export interface LogNodes {
  readonly names: readonly string[];
  /** By stream; -1 where nobody knows. */
  readonly of: Int32Array;
  /** By node: its lowest rank, -1 where unknown. Some lines are written by the first or the last rank only. */
  readonly firstRank: Int32Array;
}

export interface NodeOptions {
  /** Where only ranks are known: how many make a node. */
  readonly gpusPerNode?: number;
}

const ADDRESS = /^\d+(?:\.\d+){3}$|:/;
/** "task 7", or "7" as srun writes before lines. */
const TASK = /^(?:task )?(\d+)$/;

export function nodesOf(digest: LogDigest, options: NodeOptions = {}): LogNodes {
  const { streams, files } = digest;
  const hosts = new Set(streams.flatMap(hostOf));
  const fileNames = namesOfFiles(files, hosts);
  const fileHost = hostsOfFiles(digest);
  const taskOf = tasksOf(streams);
  // A file is a rank's, a line is a rank's, or a task's of a launcher that numbers as ranks are.
  const ranks = streams.map(
    ({ file, rank, writer }) => rank ?? fileNames[file]!.rank ?? taskOf(writer) ?? -1,
  );
  const rankHosts = hostsOf(streams, (_, s) => (ranks[s]! < 0 ? "" : String(ranks[s])), fileHost);
  const writerHosts = hostsOf(streams, ({ file, writer }) => writerKey(file, writer), []);
  const hostOfRank = hostsByRank(rankHosts, options);
  const nameOf = (stream: LogStream, s: number): string | undefined => {
    const { file, writer } = stream;
    const rank = ranks[s]!;
    const ofWriter = writerHosts.get(writerKey(file, writer));
    const known = hostOf(stream)[0] ?? (rank < 0 ? undefined : rankHosts.get(String(rank)));
    if (known !== undefined && known !== null) return known;
    return (
      ofWriter ??
      fileHost[file] ??
      fileNames[file]!.name ??
      (rank < 0 ? undefined : hostOfRank(rank)) ??
      // A writer that lines of many hosts have in common tells none of them apart.
      (writer !== "" && ofWriter !== null && files.length === 1 ? writer : undefined)
    );
  };
  const names: string[] = [];
  const index = new Map<string, number>();
  const firstRank: number[] = [];
  const of = Int32Array.from(streams, (stream, s) => {
    const name = nameOf(stream, s);
    if (name === undefined) return -1;
    let node = index.get(name);
    if (node === undefined) {
      node = names.length;
      index.set(name, node);
      names.push(name);
      firstRank.push(-1);
    }
    const known = firstRank[node]!;
    if (ranks[s]! >= 0 && (known < 0 || ranks[s]! < known)) firstRank[node] = ranks[s]!;
    return node;
  });
  for (const host of mentioned(digest, names)) {
    names.push(host);
    firstRank.push(-1);
  }
  return { names, of, firstRank: Int32Array.from(firstRank) };
}

const WORD = /[a-z][\w-]*\d[\w-]*/gi;
const LEAST_ALIKE = 2;

/** Hosts that wrote nothing, but that lines of failures name, in the way that hosts are named here. */
function mentioned({ kept }: LogDigest, names: readonly string[]): Set<string> {
  const forms = new Map<string, number>();
  for (const name of names) forms.set(formOf(name), (forms.get(formOf(name)) ?? 0) + 1);
  const known = new Set(names);
  const found = new Set<string>();
  for (const { text } of kept) {
    for (const [word] of text.matchAll(WORD))
      if (!known.has(word) && (forms.get(formOf(word)) ?? 0) >= LEAST_ALIKE) found.add(word);
  }
  return found;
}

/** As many digits, or names of one cluster would take in anything with a number. */
function formOf(name: string): string {
  return name.replace(/\d/g, "0");
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}

function writerKey(file: number, writer: string): string {
  return writer === "" ? "" : `${file}|${writer}`;
}

/** "node3" and "node3.cluster.local" are one machine. */
/** Smaller numbers are hardly a process's. */
const LEAST_PROCESS = 64;

/** Tasks are numbered from 0 without many gaps; other numbers before lines are processes. */
function tasksOf(streams: readonly LogStream[]): (writer: string) => number | undefined {
  const seen = new Set<number>();
  for (const { writer } of streams) {
    const task = numberOf(TASK.exec(writer)?.[1]);
    if (task !== undefined) seen.add(task);
  }
  let most = -1;
  for (const task of seen) most = Math.max(most, task);
  const isDense = most < Math.max(LEAST_PROCESS, 4 * seen.size);
  return (writer) =>
    isDense || writer.startsWith("task") ? numberOf(TASK.exec(writer)?.[1]) : undefined;
}

function hostOf({ host }: LogStream): [string] | [] {
  if (host === null || host === "") return [];
  const [short] = host.split(".");
  return [ADDRESS.test(host) || short === "" ? host : short!];
}

/** Some lines of a rank name its host, others do not. Null for one that moved after a restart, or is of many hosts. */
function hostsOf(
  streams: readonly LogStream[],
  keyOf: (stream: LogStream, s: number) => string,
  fileHost: readonly (string | undefined)[],
): Map<string, string | null> {
  const hosts = new Map<string, string | null>();
  streams.forEach((stream, s) => {
    const host = hostOf(stream)[0] ?? fileHost[stream.file];
    const key = keyOf(stream, s);
    if (host === undefined || key === "") return;
    const known = hosts.get(key);
    if (known === undefined) hosts.set(key, host);
    else if (known !== host) hosts.set(key, null);
  });
  return hosts;
}

/** A rank none of whose lines names a host: by its neighbours', by the layout given, or a node of its own. */
function hostsByRank(
  rankHosts: ReadonlyMap<string, string | null>,
  { gpusPerNode }: NodeOptions,
): (rank: number) => string {
  const known = new Map(
    [...rankHosts].flatMap(([rank, host]) => (host === null ? [] : [[Number(rank), host]])),
  );
  const size = gpusPerNode ?? ranksPerHost(known);
  if (size === 0) return (rank) => `rank ${rank}`;
  const blocks = blocksOf(known, size) ?? new Map<number, string>();
  return (rank) => {
    const block = Math.floor(rank / size);
    return blocks.get(block) ?? (size === 1 ? `rank ${rank}` : `node ${block}`);
  };
}

/** A file all of whose named lines name one host is that host's, if there are files of others. */
function hostsOfFiles({ files, streams }: LogDigest): (string | undefined)[] {
  const hosts = files.map(() => new Set<string>());
  for (const stream of streams) for (const host of hostOf(stream)) hosts[stream.file]!.add(host);
  const single = hosts.map((set) => (set.size === 1 ? [...set][0]! : undefined));
  const isOfMany = new Set(single.filter((host) => host !== undefined)).size > 1;
  return isOfMany ? single : single.map(() => undefined);
}

/**
 * How ranks lie on hosts, from those of which both are known: launchers number them host by host.
 * Ranks of a host; 0 where they do not lie in blocks.
 */
function ranksPerHost(hostOf: ReadonlyMap<number, string>): number {
  const hosts = new Set(hostOf.values());
  if (hosts.size < 2) return 0;
  return SIZES.find((size) => blocksOf(hostOf, size)?.size === hosts.size) ?? 0;
}

/** Host by block; null where a block has two. */
function blocksOf(hostOf: ReadonlyMap<number, string>, size: number): Map<number, string> | null {
  const blocks = new Map<number, string>();
  for (const [rank, host] of hostOf) {
    const block = Math.floor(rank / size);
    const known = blocks.get(block);
    if (known !== undefined && known !== host) return null;
    blocks.set(block, host);
  }
  return blocks;
}

/**
 * What the names of files tell of whose they are: what differs between them, less what says what is written.
 */
function namesOfFiles(files: readonly LogFile[], hosts: ReadonlySet<string>): readonly FileOwner[] {
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
    getOrInsert(makes, make, () => []).push(i);
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
