/**
 * What incidents are drawn from, and where their evidence lies: the newest in memory, all of them as files, so that a
 * service that is started again can still show them. Of one service: another that takes over a job has none of them.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorText } from "../../../base/errors.ts";
import type { MachinePicture } from "../../../model/machine-picture.ts";
import type { IncidentPicture } from "../../../model/picture.ts";
import { bounded, isPicture, NO_PICTURE } from "./bounded-picture.ts";

const MOST_HELD = 64;
const MOST_FILES = 500;
const REPORT_BYTES = 16 << 20;
/** What our own file may hold: a picture is smaller. */
const FILE_BYTES = 4 << 20;
/** Names of evidence folders are made by us (diagnose-incident.ts); no dot first, so none leads elsewhere. */
const FOLDER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;

interface Kept {
  readonly id: string;
  /** Name of the folder of evidence. */
  readonly folder: string | null;
  readonly picture: IncidentPicture | null;
}

export interface PictureStoreOptions {
  /** The service's: pictures/ and incidents/ are in it. */
  readonly folder: string;
  trouble(this: void, line: string): void;
}

export class PictureStore {
  readonly #folder: string;
  readonly #evidence: string;
  readonly #trouble: (line: string) => void;
  readonly #held = new Map<string, Kept>();
  /** Pictures that are being drawn, by incident. */
  readonly #drawing = new Map<string, Promise<IncidentPicture>>();
  /** Files are written one after the other. */
  #writing: Promise<void> = Promise.resolve();

  constructor({ folder, trouble }: PictureStoreOptions) {
    this.#folder = join(folder, "pictures");
    this.#evidence = join(folder, "incidents");
    this.#trouble = trouble;
  }

  /** Replaces what was there; a folder that is not given stays, and so do metrics that came from monitoring. */
  put(id: string, picture: IncidentPicture | null, folder?: string): void {
    void this.#change(id, (known) => {
      const metrics = picture && picture.metrics.length > 0 ? picture.metrics : null;
      const kept = picture && {
        ...picture,
        metrics: metrics ?? known?.picture?.metrics ?? [],
      };
      return {
        id,
        folder: folder === undefined ? (known?.folder ?? null) : basename(folder),
        picture: kept ?? known?.picture ?? null,
      };
    });
  }

  /** One that is still being drawn: of two the later counts, whichever is drawn first. */
  async putLater(id: string, picture: Promise<IncidentPicture>): Promise<void> {
    this.#drawing.set(id, picture);
    try {
      const drawn = await picture;
      if (this.#drawing.get(id) === picture) this.put(id, drawn);
    } catch (error) {
      this.#trouble(`incident ${id} has no picture: ${errorText(error)}`);
    } finally {
      if (this.#drawing.get(id) === picture) this.#drawing.delete(id);
    }
  }

  /** What monitoring shows of the suspects' machines, which is known later than the verdict. */
  putMetrics(id: string, metrics: readonly MachinePicture[]): void {
    void this.#change(id, (known) => ({
      id,
      folder: known?.folder ?? null,
      picture: { ...(known?.picture ?? NO_PICTURE), metrics },
    }));
  }

  async picture(id: string): Promise<IncidentPicture | null> {
    return (await this.#known(id))?.picture ?? null;
  }

  /** The report that was made of the evidence; null where there is none, or one that cannot be ours. */
  async report(id: string): Promise<string | null> {
    const folder = (await this.#known(id))?.folder ?? null;
    if (folder === null || !FOLDER.test(folder)) return null;
    const path = join(this.#evidence, folder, "report", "report.html");
    try {
      const file = await lstat(path);
      if (!file.isFile() || file.size > REPORT_BYTES) return null;
      return await readFile(path, "utf8");
    } catch {
      return null;
    }
  }

  /** Resolves when all that was put is written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  async #known(id: string): Promise<Kept | null> {
    const held = this.#held.get(id);
    if (held) {
      this.#hold(held);
      return held;
    }
    const read = await readKept(this.#path(id), id);
    if (read) this.#hold(read);
    return read;
  }

  /** The latest used is last; the first goes where there are too many. */
  #hold(kept: Kept): void {
    this.#held.delete(kept.id);
    this.#held.set(kept.id, kept);
    const [first] = this.#held.keys();
    if (this.#held.size > MOST_HELD) this.#held.delete(first!);
  }

  #change(id: string, change: (known: Kept | null) => Kept): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        const changed = change(await this.#known(id));
        const kept = { ...changed, picture: changed.picture && bounded(changed.picture) };
        this.#hold(kept);
        await this.#write(kept);
      } catch (error) {
        const why = errorText(error);
        this.#trouble(`the picture of incident ${id} is not kept: ${why}`);
      }
    });
    return this.#writing;
  }

  async #write(kept: Kept): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#path(kept.id);
    const part = `${path}.${randomBytes(6).toString("hex")}.part`;
    try {
      await writeFile(part, JSON.stringify({ schema: 1, ...kept }), { mode: 0o600 });
      await rename(part, path);
    } finally {
      await rm(part, { force: true });
    }
    await this.#removeOld();
  }

  async #removeOld(): Promise<void> {
    const names = await readdir(this.#folder);
    if (names.length <= MOST_FILES) return;
    const aged = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#folder, name);
        return { path, ms: (await stat(path).catch(() => null))?.mtimeMs ?? 0 };
      }),
    );
    aged.sort((a, b) => a.ms - b.ms);
    for (const { path } of aged.slice(0, aged.length - MOST_FILES)) await rm(path, { force: true });
  }

  /** Ids come from the address bar, too: what is no plain name stands under its hash. */
  #path(id: string): string {
    const isPlain = /^[A-Za-z0-9][A-Za-z0-9._-]{0,180}$/.test(id);
    const name = isPlain ? id : `h-${createHash("sha256").update(id).digest("hex")}`;
    return join(this.#folder, `${name}.json`);
  }
}

/** null where there is none, or it is damaged, or another incident's. */
async function readKept(path: string, id: string): Promise<Kept | null> {
  try {
    const file = await lstat(path);
    if (!file.isFile() || file.size > FILE_BYTES) return null;
    const read = JSON.parse(await readFile(path, "utf8")) as Partial<Kept> | null;
    if (read?.id !== id) return null;
    const { folder, picture } = read;
    return {
      id,
      folder: typeof folder === "string" ? folder : null,
      picture: isPicture(picture) ? picture : null,
    };
  } catch {
    return null;
  }
}
