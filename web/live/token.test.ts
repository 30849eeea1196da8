import { describe, expect, it } from "vitest";
import { headers, isToken, tokens, useToken } from "./token.ts";

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe("tokens", () => {
  it("hold without storage; the one that reads also acts until there is one for that", () => {
    expect(headers("read")).toEqual({});
    useToken("r", "read");
    expect(headers("act")).toEqual(bearer("r"));
    useToken("a", "act");
    expect(headers("act")).toEqual(bearer("a"));
    expect(headers("read")).toEqual(bearer("r"));
    expect(tokens.value).toBe(2);
  });

  it("are what a header can carry", () => {
    expect(isToken("fl_Az09~!")).toBe(true);
    for (const text of ["", "a b", "é", "a\nb", "\u200ba", "\x7f"])
      expect(isToken(text)).toBe(false);
  });
});
