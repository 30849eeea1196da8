/** What the program knows of its own build. A run from source has not been built. */
declare const FAULTLINE_BUILT: Built | undefined;

export interface Built {
  /** That of package.json. */
  readonly version: string;
  /** Twelve digits; "" where it is not known. */
  readonly commit: string;
  /** One executable with Node inside: the package's files are inside, too, not beside it. */
  readonly isSingle: boolean;
}

/** scripts/build/bundle.mjs puts the constant there. */
export const BUILT: Built =
  typeof FAULTLINE_BUILT === "undefined"
    ? { version: "0.0.0-source", commit: "", isSingle: false }
    : FAULTLINE_BUILT;
