import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { makeAuthorizer } from "./authorize.ts";

it("lets who is in stay while somebody at the same address guesses tokens", () => {
  const token = {
    name: "reader",
    scopes: ["read"],
    jobs: null,
    agent: null,
    sha256: createHash("sha256").update("right").digest("hex"),
  } as const;
  const rules = { tokens: [token], publicRead: false, allowedHosts: [] };
  const auth = makeAuthorizer({
    ...rules,
    host: "10.0.0.1",
    insecure: false,
    tls: true,
    nowMs: () => 0,
  });
  const asking = (secret: string) => ({
    headers: { authorization: `Bearer ${secret}` },
    socket: { remoteAddress: "10.0.0.9" },
  });
  const caller = auth.authorize(asking("right"), "read");
  for (let i = 0; i < 30; i++)
    expect(() => auth.authorize(asking(`guess-${i}`), "read")).toThrow(/token/);
  expect(() => auth.authorize(asking("right"), "read")).toThrow("too many wrong tokens");
  expect(auth.holds(asking("right"), "read", caller)).toBe(true);
  auth.reload({ ...rules, tokens: [{ ...token, jobs: ["a-*"] }] });
  expect(auth.holds(asking("right"), "read", caller)).toBe(false);
});
