/** Signing in and out over HTTP, and who one is. */
import type { IncomingMessage } from "node:http";
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { Caller, Scope } from "../access/grants.ts";
import { SignInError } from "../access/oidc.ts";
import { type SignIn, UnknownGroup } from "../access/sign-in.ts";
import { Refusal, type ServiceView } from "../view.ts";
import { linkOf, openLink } from "./admit.ts";
import { type Authorizer, Denial } from "./authorize.ts";

export interface SignInDoor {
  readonly signIn: SignIn;
  readonly auth: Authorizer;
  readonly view: ServiceView;
  readonly scheme: "http" | "https";
  log(this: void, line: string): void;
}

/** "#/incidents/x": a place on our own page, and nothing else. */
const PLACE = /^#\/[\w.~%:@+=,!/-]{0,500}$/;

export async function beginSignIn(door: SignInDoor, request: IncomingMessage): Promise<Response> {
  const { signIn, scheme } = door;
  const to = paramsOf(request).get("to") ?? "";
  try {
    const origin = `${scheme}://${request.headers.host ?? ""}`;
    const { url, cookie } = await signIn.begin(PLACE.test(to) ? to : "", origin);
    return redirect(url, [cookie]);
  } catch (error) {
    return failed(door, error);
  }
}

export async function finishSignIn(door: SignInDoor, request: IncomingMessage): Promise<Response> {
  const { signIn, view } = door;
  try {
    const { person, detail, to, cookies } = await signIn.finish(paramsOf(request), request.headers);
    await view.note(`oidc:${person.name}`, "sign-in", "", detail).catch(() => {
      throw new SignInError(502, "the audit trail cannot be written at the moment");
    });
    return redirect(`/${to}`, cookies);
  } catch (error) {
    if (error instanceof UnknownGroup)
      await view.note(`oidc:${error.person}`, "refuse", "", error.message).catch(() => undefined);
    return failed(door, error);
  }
}

export async function signOut(door: SignInDoor, request: IncomingMessage): Promise<Response> {
  const { signIn, view } = door;
  const person = signIn.personOf(request.headers);
  const cookie = signIn.end(request.headers);
  if (person) await view.note(`oidc:${person.name}`, "sign-out", "", "").catch(() => undefined);
  return new Response(JSON.stringify({ signedOut: true }), {
    headers: {
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "set-cookie": cookie,
    },
  });
}

/** Who asks and what they may: for the page, which shows it. */
export async function whoAsks(door: SignInDoor, request: IncomingMessage): Promise<unknown> {
  const { signIn, auth, view } = door;
  const nobody = { canSignIn: signIn.isOffered, name: null, scopes: [], jobs: null, link: null };
  const text = linkOf(request);
  if (text !== null) return { ...nobody, link: await openLink(view, text) };
  const scopes: Scope[] = [];
  let caller: Caller | null = null;
  for (const scope of ["read", "act"] as const)
    try {
      caller = auth.authorize({ ...asking(request), method: "GET" }, scope);
      scopes.push(scope);
    } catch (error) {
      if (!(error instanceof Denial) || error.status === 429) throw error;
      if (error.status === 401) break;
    }
  const person = signIn.personOf(request.headers);
  if (caller === null) return { ...nobody, name: person && `oidc:${person.name}` };
  return { ...nobody, name: caller.name, scopes, jobs: caller.jobs };
}

function asking({ headers, socket }: IncomingMessage) {
  return { headers, socket };
}

function paramsOf({ url = "" }: IncomingMessage): URLSearchParams {
  return new URLSearchParams(url.split("?").slice(1).join("?"));
}

function redirect(url: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location: url, "cache-control": "no-store" });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}

/** A person reads this in a browser: a page of one sentence, without scripts. */
function failed({ log }: SignInDoor, error: unknown): Response {
  const known = error instanceof SignInError ? error : null;
  log(`sign-in: ${harmless(errorText(error)).slice(0, 500)}`);
  if (!known) throw new Refusal(500, "internal error");
  const why = known.message.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sign-in failed: Faultline</title>
<h1>Sign-in failed</h1>
<p>${why}.</p>
<p><a href="/auth/login">Try again</a> or <a href="/">go to the page</a>.</p>
</html>
`;
  return new Response(body, {
    status: known.status,
    headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" },
  });
}
