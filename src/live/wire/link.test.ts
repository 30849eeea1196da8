import { describe, expect, it } from "vitest";
import { openAgentLink } from "./link.ts";
import { natsAddress } from "./nats-connect.ts";
import { linkOptions } from "../../../test/support/live/bus.ts";
import { agentUrl } from "./ws-agent.ts";

describe("URLs of carriers", () => {
  it("of a service lead to /agent, whatever scheme they come with", () => {
    expect(agentUrl("http://host:8080")).toBe("ws://host:8080/agent");
    expect(agentUrl("https://host/base/")).toBe("wss://host/base/agent");
    expect(agentUrl("wss://host")).toBe("wss://host/agent");
  });

  it("of a cluster name its brokers, and may hold who we are", () => {
    expect(natsAddress("nats://a:1,nats://b,c:3")).toEqual({
      servers: ["a:1", "b:4222", "c:3"],
      isSecure: false,
      user: null,
      password: null,
    });
    expect(natsAddress("tls://me:p%40ss@a")).toMatchObject({
      isSecure: true,
      user: "me",
      password: "p@ss",
    });
  });

  it("that are none are the user's to mend, and no password is repeated", () => {
    for (const url of ["", "host", "ftp://host", "nats://", "nats://a,http://b"]) {
      expect(() => openAgentLink(linkOptions(url))).toThrow(/URL/);
    }
    expect(() => natsAddress("nats://me:secret@")).not.toThrow(/secret/);
  });
});
