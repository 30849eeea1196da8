/** One question to a running service, with a token where it wants one. */
import { readFileSync } from "node:fs";
import { errorText, UserError } from "../base/errors.ts";
import { cutText, harmless } from "../base/text.ts";
import type { Io } from "./io.ts";

const PATIENCE_MS = 30_000;

/** The document of this schema. */
export async function askService<T extends { readonly schema: string }>(
  io: Io,
  service: string,
  path: string,
  schema: T["schema"],
  tokenFile: string | undefined,
): Promise<T> {
  const token = tokenOf(io, tokenFile);
  const name = service.replace(/\/\/[^/@]*@/, "//");
  let answer: Response;
  try {
    answer = await fetch(new URL(path, service), {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
      // A token goes to the service that was named, and nowhere else.
      redirect: "error",
    });
  } catch (error) {
    throw new UserError(
      `${name} does not answer: ${errorText(error)}`,
      "give the URL of a running faultline serve",
    );
  }
  const document = (await answer.json().catch(() => null)) as (T & { error?: unknown }) | null;
  const hint =
    answer.status === 401 || answer.status === 403
      ? "give a token of scope read with --token-file or FAULTLINE_TOKEN"
      : "is it a faultline serve of this version?";
  if (!answer.ok) {
    const why =
      typeof document?.error === "string" ? ` (${cutText(harmless(document.error), 200)})` : "";
    throw new UserError(`${name} answers with ${answer.status}${why}`, hint);
  }
  if (document?.schema !== schema) throw new UserError(`${name} answers with something else`, hint);
  return document;
}

function tokenOf(io: Io, tokenFile: string | undefined): string | null {
  if (tokenFile === undefined) return io.env["FAULTLINE_TOKEN"] || null;
  try {
    const token = readFileSync(tokenFile, "utf8").trim();
    // What is wrong with it is not said with it: it may be a secret, or another file.
    if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token;
    throw new UserError(
      `${tokenFile} holds no token: one line of letters, digits and signs`,
      "check the path",
      2,
    );
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${tokenFile} cannot be read: ${errorText(error)}`, "check the path", 2);
  }
}
