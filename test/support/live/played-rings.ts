/** Recorded rings, played again: their records come to be, one after the other, as they did while the job ran. */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { HEADER, RECORD, RECORD_BYTES } from "../../../src/ingest/probe-ring/layout.ts";
import { type IterationMark, RingFollower } from "../../../src/live/agent/rings/follow-ring.ts";
import { inspectRing } from "../../../src/live/agent/rings/ring-file.ts";
import { RankTrack } from "../../../src/live/agent/iterations/rank-track.ts";

const LIMITS = { keepNs: 1e15, mostRecords: 1 << 16 };

export interface PlayedRank {
  readonly rank: number;
  readonly track: RankTrack;
  /** What the Python probe marked: the truth. */
  readonly marks: readonly IterationMark[];
}

export class PlayedRings {
  readonly ranks: readonly PlayedRank[];
  readonly #rings: {
    readonly fd: number;
    readonly issuedNs: Float64Array;
    follower: RingFollower;
  }[] = [];
  readonly firstNs: number;
  readonly lastNs: number;

  /** Unpacks the archive into the folder. The rings are empty until they are played. */
  constructor(archive: string, folder: string) {
    execFileSync("tar", ["xzf", archive, "-C", folder]);
    const rings = join(folder, "rings");
    const ranks: PlayedRank[] = [];
    for (const name of readdirSync(rings)
      .filter((one) => one.endsWith(".native.ring"))
      .sort()) {
      const python = follow(join(rings, name.replace(".native.", ".python.")));
      python.poll(1);
      const marks = python.takeMarks();
      python.close();
      const path = join(rings, name);
      const issuedNs = issueTimes(readFileSync(path));
      const fd = openSync(path, "r+");
      writeHead(fd, 0);
      const follower = follow(path);
      this.#rings.push({ fd, issuedNs, follower });
      const track = new RankTrack(follower.ring.header.rank);
      track.attach(null, follower);
      ranks.push({ rank: track.rank, track, marks });
    }
    this.ranks = ranks;
    this.firstNs = Math.min(...this.#rings.map(({ issuedNs }) => issuedNs[0]!));
    this.lastNs = Math.max(...this.#rings.map(({ issuedNs }) => issuedNs.at(-1)!));
  }

  /** All that was called before this moment is there. */
  playTo(ns: number): void {
    for (const { fd, issuedNs, follower } of this.#rings) {
      const head = issuedNs.findIndex((issued) => issued >= ns);
      writeHead(fd, head < 0 ? issuedNs.length : head);
      follower.poll(ns);
    }
  }

  close(): void {
    for (const { fd, follower } of this.#rings) {
      closeSync(fd);
      follower.close();
    }
  }
}

function follow(path: string): RingFollower {
  const ring = inspectRing(path);
  if (typeof ring === "string") throw new Error(ring);
  return new RingFollower(ring, LIMITS);
}

function writeHead(fd: number, head: number): void {
  const word = Buffer.alloc(8);
  word.writeBigUInt64LE(BigInt(head));
  writeSync(fd, word, 0, 8, HEADER.head);
}

/** By ticket; the recordings' rings were not full. */
function issueTimes(bytes: Buffer): Float64Array {
  const from = Number(bytes.readBigUInt64LE(HEADER.recordsOffset));
  const head = Number(bytes.readBigUInt64LE(HEADER.head));
  return Float64Array.from({ length: head }, (_, ticket) =>
    Number(bytes.readBigUInt64LE(from + ticket * RECORD_BYTES + RECORD.issuedNs)),
  );
}
