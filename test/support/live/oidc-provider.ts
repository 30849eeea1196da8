/** An OpenID Connect provider for tests: discovery, a page that signs everybody in at once, tokens, and keys. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface OidcProvider {
  readonly issuer: string;
  /** Who signs in next: claims beside those that every token has. */
  person: Record<string, unknown>;
  /** Changes the claims of the next token. */
  forge: (claims: Record<string, unknown>) => Record<string, unknown>;
  /** "key": signed with a key that is not published; "none": not signed at all. */
  broken: "key" | "none" | null;
  /** Form fields of the last request for a token. */
  asked: Record<string, string>;
  readonly clientSecret: string;
  close(): Promise<void>;
}

interface Granted {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUri: string;
  readonly clientId: string;
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const pair = (alg: "RS256" | "ES256") =>
  alg === "RS256"
    ? generateKeyPairSync("rsa", { modulusLength: 2048 })
    : generateKeyPairSync("ec", { namedCurve: "P-256" });
/** Made once: those of RSA take a second. */
const known = new Map<string, ReturnType<typeof pair>>();
const keysOf = (alg: "RS256" | "ES256", which: string): ReturnType<typeof pair> => {
  const found = known.get(alg + which) ?? pair(alg);
  known.set(alg + which, found);
  return found;
};

export async function startOidcProvider(
  alg: "RS256" | "ES256" = "ES256",
  port = 0,
): Promise<OidcProvider> {
  const { privateKey, publicKey } = keysOf(alg, "published");
  const codes = new Map<string, Granted>();
  const server = createServer((request, response) => void answer(request, response));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider: OidcProvider = {
    issuer,
    person: {},
    forge: (claims) => claims,
    broken: null,
    asked: {},
    clientSecret: "s3cret/with:signs",
    async close() {
      server.closeAllConnections();
      server.close();
      if (server.listening) await once(server, "close");
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", issuer);
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (url.pathname === "/.well-known/openid-configuration")
      return send(200, {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: [alg],
      });
    if (url.pathname === "/keys")
      return send(200, {
        keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg, use: "sig" }],
      });
    if (url.pathname === "/authorize") {
      const said = Object.fromEntries(url.searchParams);
      const code = randomBytes(16).toString("hex");
      codes.set(code, {
        challenge: said["code_challenge"] ?? "",
        nonce: said["nonce"] ?? "",
        redirectUri: said["redirect_uri"] ?? "",
        clientId: said["client_id"] ?? "",
      });
      const back = new URL(said["redirect_uri"]!);
      back.searchParams.set("code", code);
      back.searchParams.set("state", said["state"] ?? "");
      response.writeHead(302, { location: back.href });
      return void response.end();
    }
    if (url.pathname === "/token") return await token(request, send);
    send(404, { error: "not_found" });
  }

  async function token(
    request: IncomingMessage,
    send: (status: number, body: unknown) => void,
  ): Promise<void> {
    let body = "";
    for await (const piece of request) body += String(piece);
    const form = Object.fromEntries(new URLSearchParams(body));
    provider.asked = form;
    const granted = codes.get(form["code"] ?? "");
    // Each code once.
    codes.delete(form["code"] ?? "");
    const challenge = createHash("sha256")
      .update(form["code_verifier"] ?? "")
      .digest("base64url");
    const [, basic = ""] = (request.headers.authorization ?? "").split(" ");
    const [id, secret] = Buffer.from(basic, "base64").toString().split(":").map(decodeURIComponent);
    if (!granted) return send(400, { error: "invalid_grant" });
    if (id !== granted.clientId || secret !== provider.clientSecret)
      return send(400, { error: "invalid_client" });
    if (challenge !== granted.challenge || form["redirect_uri"] !== granted.redirectUri)
      return send(400, { error: "invalid_grant" });
    const nowS = Math.floor(Date.now() / 1000);
    const claims = provider.forge({
      iss: issuer,
      sub: "u-1",
      aud: granted.clientId,
      nonce: granted.nonce,
      iat: nowS,
      exp: nowS + 300,
      ...provider.person,
    });
    send(200, {
      access_token: randomBytes(16).toString("hex"),
      token_type: "Bearer",
      expires_in: 300,
      id_token: signed(claims),
    });
  }

  function signed(claims: Record<string, unknown>): string {
    const header = provider.broken === "none" ? { alg: "none" } : { alg, kid: "k1" };
    const text = `${part(header)}.${part(claims)}`;
    if (provider.broken === "none") return `${text}.`;
    const key: KeyObject = provider.broken === "key" ? keysOf(alg, "other").privateKey : privateKey;
    const signature = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }

  return provider;
}
