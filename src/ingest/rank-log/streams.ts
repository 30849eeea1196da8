/** The writers of one log, distinguished by their prefixes, and the ranks that they turn out to be. */
import type { Prefix } from "./prefixes.ts";
import { Stream } from "./stream.ts";
import type { Identity } from "./stream.ts";
import type { Raised } from "./tracebacks.ts";

/** Beyond this, prefixes are not prefixes. */
const MAX_STREAMS = 50_000;
/** "3: text" means srun's labels only where most lines have one. */
const LABELLED_SHARE = 0.5;
/** Two ranks for one local rank, task or writer. */
const CONFLICT = -2;
const NOBODY: Identity = { rank: -1, local: -1, task: -1, writer: "" };

/** Names that hold a rank without saying so: "3.log", "log_3.txt", "worker-3.out"; not "slurm-8812.out". */
const NUMBERED_NAME =
  /^(?:log|logs|out|err|stdout|stderr|output|worker|proc|process|train|trainer|task)?[-_.]?(\d{1,5})(?:\.(?:log|txt|out|err|stdout|stderr))*$/i;
const MARKED_NAME = /(?<!local[-_.]?)rank[-_.]?(\d{1,6})(?!\d)/i;

export class Streams {
  readonly #onRaised: (raised: Raised, by: Stream) => void;
  /** For lines without a prefix. */
  readonly plain: Stream;
  /** For statements about ranks that did not write them. */
  readonly #nobody: Stream;
  readonly #byRank = new Map<number, Stream>();
  readonly #byLocal = new Map<number, Stream>();
  readonly #byTask = new Map<number, Stream>();
  readonly #byWriter = new Map<string, Stream>();
  readonly #rankOfLocal = new Map<number, number>();
  readonly #rankOfTask = new Map<number, number>();
  readonly #rankOfWriter = new Map<string, number>();
  #count = 1;
  /** A line's writer is most often that of the line before. */
  #lastRank: Stream;
  #fileRank: number | null = null;
  #tasksAreRanks = false;

  constructor(onRaised: (raised: Raised, by: Stream) => void) {
    this.#onRaised = onRaised;
    this.#nobody = new Stream(NOBODY, onRaised);
    this.plain = new Stream(NOBODY, onRaised, this.#nobody);
    this.#lastRank = this.plain;
  }

  get all(): Stream[] {
    const maps = [this.#byRank, this.#byLocal, this.#byTask, this.#byWriter];
    return [this.plain, ...maps.flatMap((map) => [...map.values()])];
  }

  of({ rank, local, task, writer }: Prefix): Stream {
    if (rank >= 0) {
      if (local >= 0) learn(this.#rankOfLocal, local, rank);
      if (task >= 0) learn(this.#rankOfTask, task, rank);
      if (writer !== "") learn(this.#rankOfWriter, writer, rank);
      return this.ofRank(rank);
    }
    if (writer !== "") return this.#get(this.#byWriter, writer, { ...NOBODY, writer });
    if (local >= 0) return this.#get(this.#byLocal, local, { ...NOBODY, local });
    if (task >= 0) return this.#get(this.#byTask, task, { ...NOBODY, task });
    return this.plain;
  }

  ofRank(rank: number): Stream {
    if (this.#lastRank.is.rank !== rank) {
      this.#lastRank = this.#get(this.#byRank, rank, { ...NOBODY, rank });
    }
    return this.#lastRank;
  }

  learnLocal(local: number, rank: number): void {
    learn(this.#rankOfLocal, local, rank);
  }

  /** Once all lines are read: what the writers' ranks are. Gives the one rank of the whole file, or null. */
  settle(file: string, worldSize: number): number | null {
    // A file with as many local ranks as the job has ranks is that of its only machine.
    if (this.#byLocal.size === worldSize) {
      for (const local of this.#byLocal.keys()) {
        if (local < worldSize && !this.#rankOfLocal.has(local)) this.#rankOfLocal.set(local, local);
      }
    }
    this.#learnOffset();
    this.#tasksAreRanks =
      this.#byTask.size > 0 && (this.#rankOfTask.size > 0 || this.#mostAreLabelled());
    this.#fileRank = this.#rankOfAll() ?? this.#rankByName(file, worldSize);
    return this.#fileRank;
  }

  /** Launchers number a machine's ranks one after the other: one that is known tells the others of its file. */
  #learnOffset(): void {
    const offsets = new Set([...this.#rankOfLocal].map(([local, rank]) => rank - local));
    const [offset] = offsets;
    if (offsets.size !== 1 || offset === undefined || offset < 0) return;
    for (const local of this.#byLocal.keys())
      if (!this.#rankOfLocal.has(local)) this.#rankOfLocal.set(local, offset + local);
  }

  rankOfLocal(local: number): number | null {
    return known(this.#rankOfLocal.get(local));
  }

  /** After settle(). Null where nothing says. */
  rankOf(stream: Stream): number | null {
    const { rank, local, task, writer } = stream.is;
    if (rank >= 0) return rank;
    if (stream.globalRank >= 0) return stream.globalRank;
    if (stream === this.#nobody) return null;
    if (local >= 0) return this.rankOfLocal(local) ?? this.#fileRank;
    if (writer !== "") return known(this.#rankOfWriter.get(writer)) ?? this.#fileRank;
    if (task < 0 || !this.#tasksAreRanks) return this.#fileRank;
    const learnt = this.#rankOfTask.get(task);
    return learnt === undefined ? task : known(learnt);
  }

  /** The rank that every statement in the file agrees on. */
  #rankOfAll(): number | null {
    const ranks = new Set(this.#byRank.keys());
    for (const stream of this.all) if (stream.globalRank >= 0) ranks.add(stream.globalRank);
    const [only] = ranks;
    if (ranks.size === 1 && only !== undefined) return only;
    const [task] = this.#byTask.keys();
    return ranks.size === 0 && this.#tasksAreRanks && this.#byTask.size === 1
      ? (task ?? null)
      : null;
  }

  #rankByName(file: string, worldSize: number): number | null {
    const writers = this.#byRank.size + this.#byLocal.size + this.#byWriter.size;
    if (writers > 1 || this.#tasksAreRanks || this.plain.isAmbiguous) return null;
    const name = file.slice(file.lastIndexOf("/") + 1);
    const m = MARKED_NAME.exec(name) ?? NUMBERED_NAME.exec(name);
    const rank = m ? Number(m[1]) : -1;
    return rank >= 0 && (worldSize === 0 || rank < worldSize) ? rank : null;
  }

  #mostAreLabelled(): boolean {
    let all = 0;
    let labelled = 0;
    for (const stream of this.all) {
      all += stream.lines;
      if (stream.is.task >= 0) labelled += stream.lines;
    }
    return labelled >= LABELLED_SHARE * all;
  }

  #get<K>(map: Map<K, Stream>, key: K, is: Identity): Stream {
    let stream = map.get(key);
    if (stream) return stream;
    if (this.#count >= MAX_STREAMS) return this.plain;
    this.#count++;
    stream = new Stream(is, this.#onRaised, this.#nobody);
    map.set(key, stream);
    return stream;
  }
}

function learn<K>(map: Map<K, number>, key: K, rank: number): void {
  const before = map.get(key);
  if (before === undefined) map.set(key, rank);
  else if (before !== rank) map.set(key, CONFLICT);
}

function known(rank: number | undefined): number | null {
  return rank === undefined || rank === CONFLICT ? null : rank;
}
