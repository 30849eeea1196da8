/**
 * What a command sees of its process: two streams and the environment. Handed in, so that a test (or another program) can
 * call `main` without starting a process.
 */
export interface Screen {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Io {
  readonly out: Screen;
  readonly err: Screen;
  readonly env: Readonly<Record<string, string | undefined>>;
}
