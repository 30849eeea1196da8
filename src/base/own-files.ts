/** Files that come with the program: beside it, or inside the single executable. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BUILT } from "./built.ts";

/** Where modules of the single executable find themselves (scripts/build/single.mjs). */
const INSIDE = "/faultline-inside/dist/";
/** The names of all files inside, as JSON. */
const INDEX = "index.json";

/** Throws where there is none. */
export function readOwn(place: string | URL): Buffer {
  const path = pathOf(place);
  return isInside(path) ? asset(path.slice(INSIDE.length)) : readFileSync(path);
}

/** Names of what lies directly in a folder; throws where there is none. */
export function listOwn(folder: string | URL): string[] {
  const path = pathOf(folder);
  if (!isInside(path)) return readdirSync(path);
  const prefix = `${path.slice(INSIDE.length).replace(/\/$/, "")}/`;
  const names = JSON.parse(asset(INDEX).toString()) as string[];
  return names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
}

function pathOf(place: string | URL): string {
  return typeof place === "string" ? place : fileURLToPath(place);
}

function isInside(path: string): boolean {
  return BUILT.isSingle && path.startsWith(INSIDE);
}

/** Node's module for it is not in all versions that the package runs on. */
function asset(name: string): Buffer {
  const { getBuiltinModule } = process as unknown as {
    readonly getBuiltinModule: (id: string) => { getRawAsset(key: string): ArrayBuffer };
  };
  return Buffer.from(getBuiltinModule("node:sea").getRawAsset(name));
}
