/** Signing in with an OpenID Connect provider: authorization code with PKCE, state and nonce, through oauth4webapi. */
import type * as Library from "oauth4webapi";
import { errorText } from "../../../base/errors.ts";
import { harmless } from "../../../base/text.ts";
import type { GroupGrant } from "./grants.ts";
import type { Person } from "./sessions.ts";

export interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** null for a public client. */
  readonly clientSecret: string | null;
  /** Where the provider sends people back to; null: where the request came to. */
  readonly redirectUrl: string | null;
  /** OAuth scopes that are asked for. */
  readonly request: readonly string[];
  /** The claim of the id_token that holds the groups; parts of a nested one are separated by dots. */
  readonly groupsClaim: string;
  readonly nameClaim: string;
  readonly groups: readonly GroupGrant[];
  readonly sessionSeconds: number;
}

/** One sign-in under way: what must come back, and what only we know. */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUrl: string;
}

/** Why a sign-in failed, in one sentence for the person. */
export class SignInError extends Error {
  readonly status: 401 | 403 | 502;
  constructor(status: 401 | 403 | 502, message: string) {
    super(message);
    this.name = "SignInError";
    this.status = status;
  }
}

type OAuth = typeof Library;
type Provider = Library.AuthorizationServer;

const REQUEST_MS = 10_000;
/** Endpoints and keys of a provider change seldom. */
const PROVIDER_MS = 3600_000;
const CLOCK_TOLERANCE_S = 30;
const MOST_GROUPS = 1000;

export class OidcClient {
  readonly config: OidcConfig;
  readonly #nowMs: () => number;
  #provider: { readonly found: Promise<Provider>; readonly atMs: number } | null = null;

  constructor(config: OidcConfig, nowMs: () => number) {
    this.config = config;
    this.#nowMs = nowMs;
  }

  /** Where the person is sent, and what to remember of it. */
  async begin(redirectUrl: string): Promise<{ url: string; attempt: Attempt }> {
    // Not loaded where nobody signs in.
    const oauth = await import("oauth4webapi");
    const provider = await this.#discover(oauth);
    if (provider.authorization_endpoint === undefined)
      throw new SignInError(502, "the provider has no page to sign in");
    const attempt = {
      state: oauth.generateRandomState(),
      nonce: oauth.generateRandomNonce(),
      verifier: oauth.generateRandomCodeVerifier(),
      redirectUrl,
    };
    const url = new URL(provider.authorization_endpoint);
    for (const [name, value] of Object.entries({
      client_id: this.config.clientId,
      response_type: "code",
      redirect_uri: redirectUrl,
      scope: this.config.request.join(" "),
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: "S256",
    }))
      url.searchParams.set(name, value);
    return { url: url.href, attempt };
  }

  /** `answer`: what the provider sent the person back with. Rejects with SignInError. */
  async finish(answer: URLSearchParams, attempt: Attempt): Promise<Person & { subject: string }> {
    const oauth = await import("oauth4webapi");
    const provider = await this.#discover(oauth);
    try {
      return this.#person(await this.#claims(oauth, provider, answer, attempt));
    } catch (error) {
      throw refusalOf(oauth, error);
    }
  }

  async #claims(
    oauth: OAuth,
    provider: Provider,
    answer: URLSearchParams,
    { state, nonce, verifier, redirectUrl }: Attempt,
  ): Promise<Library.IDToken> {
    const client = { client_id: this.config.clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE_S };
    const checked = oauth.validateAuthResponse(provider, client, answer, state);
    const options = this.#requests(oauth);
    const response = await oauth.authorizationCodeGrantRequest(
      provider,
      client,
      this.#secret(oauth, provider),
      checked,
      redirectUrl,
      verifier,
      options,
    );
    const result = await oauth.processAuthorizationCodeResponse(provider, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(provider, response, options);
    return oauth.getValidatedIdTokenClaims(result)!;
  }

  #secret(oauth: OAuth, provider: Provider): Library.ClientAuth {
    const { clientSecret } = this.config;
    if (clientSecret === null) return oauth.None();
    // The default of the specification, where the provider does not say.
    const ways = provider.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    return ways.includes("client_secret_basic")
      ? oauth.ClientSecretBasic(clientSecret)
      : oauth.ClientSecretPost(clientSecret);
  }

  /** Without TLS only on this machine: the configuration says so (config-schema.ts). */
  #requests(oauth: OAuth) {
    return {
      signal: () => AbortSignal.timeout(REQUEST_MS),
      [oauth.allowInsecureRequests]: this.config.issuer.startsWith("http:"),
    };
  }

  /** A provider that is away is asked again by the next person. */
  async #discover(oauth: OAuth): Promise<Provider> {
    if (!this.#provider || this.#nowMs() - this.#provider.atMs > PROVIDER_MS) {
      const issuer = new URL(this.config.issuer);
      const found = oauth
        .discoveryRequest(issuer, this.#requests(oauth))
        .then((response) => oauth.processDiscoveryResponse(issuer, response));
      this.#provider = { found, atMs: this.#nowMs() };
    }
    const { found } = this.#provider;
    try {
      return await found;
    } catch (error) {
      if (this.#provider?.found === found) this.#provider = null;
      throw refusalOf(oauth, error);
    }
  }

  #person(claims: Library.IDToken): Person & { subject: string } {
    const { nameClaim, groupsClaim } = this.config;
    const named = claimAt(claims, nameClaim) ?? claims["preferred_username"] ?? claims.sub;
    const groups = claimAt(claims, groupsClaim);
    const list = (Array.isArray(groups) ? groups : [groups]).filter(
      (group): group is string => typeof group === "string" && group.length <= 256,
    );
    return {
      name: shortName(typeof named === "string" && named !== "" ? named : claims.sub),
      subject: shortName(claims.sub),
      groups: list.slice(0, MOST_GROUPS),
    };
  }
}

/** A claim by its name, or by the names on the way to it. */
function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let at: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function shortName(text: string): string {
  return harmless(text).slice(0, 128);
}

function refusalOf(oauth: OAuth, error: unknown): SignInError {
  if (error instanceof SignInError) return error;
  if (error instanceof oauth.AuthorizationResponseError)
    return new SignInError(401, `the provider refused: ${harmless(error.error).slice(0, 200)}`);
  if (error instanceof oauth.ResponseBodyError)
    return new SignInError(401, `the provider refused: ${harmless(error.error).slice(0, 200)}`);
  if (error instanceof oauth.WWWAuthenticateChallengeError)
    return new SignInError(502, "the provider refuses the service: see clientId and clientSecret");
  const says = harmless(errorText(error)).slice(0, 300);
  const { code } = error as { code?: unknown };
  if (code === oauth.RESPONSE_IS_NOT_CONFORM || code === oauth.RESPONSE_IS_NOT_JSON)
    return new SignInError(502, `the provider does not answer as it should: ${says}`);
  if (
    error instanceof oauth.OperationProcessingError ||
    error instanceof oauth.UnsupportedOperationError
  )
    return new SignInError(401, `the sign-in cannot be trusted: ${says}`);
  return new SignInError(502, "the provider cannot be reached");
}
