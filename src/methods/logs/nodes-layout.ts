/** How ranks lie on hosts, from those of which both are known: launchers number them host by host. */

/** What hosts have of GPUs. Of several that fit, the least: a host taken for two does less harm than two for one. */
const SIZES = [1, 2, 4, 6, 8, 16, 32, 36, 64, 72];

/** Ranks of a host; 0 where they do not lie in blocks. */
export function ranksPerHost(hostOf: ReadonlyMap<number, string>): number {
  const hosts = new Set(hostOf.values());
  if (hosts.size < 2) return 0;
  return SIZES.find((size) => blocksOf(hostOf, size)?.size === hosts.size) ?? 0;
}

/** Host by block; null where a block has two. */
export function blocksOf(
  hostOf: ReadonlyMap<number, string>,
  size: number,
): Map<number, string> | null {
  const blocks = new Map<number, string>();
  for (const [rank, host] of hostOf) {
    const block = Math.floor(rank / size);
    const known = blocks.get(block);
    if (known !== undefined && known !== host) return null;
    blocks.set(block, host);
  }
  return blocks;
}
