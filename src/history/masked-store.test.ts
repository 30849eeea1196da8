import { describe, expect, it } from "vitest";
import { processorMs } from "../../test/support/processor-time.ts";
import { EMPTY_STORE } from "../model/log-store.ts";
import { masker, withoutSecrets } from "./masked-store.ts";

/** What must not leave the site, in lines as programs write them. */
const HOSTILE: readonly (readonly [line: string, secret: RegExp])[] = [
  ["mount nfs01.corp.acme.com:/export failed", /acme|nfs01/],
  ["cannot open /home/ada.lovelace/run 7/x.pt", /ada|lovelace/],
  ["cannot open C:\\Users\\ada\\x", /ada/],
  ["ssh ada@10.1.2.3 refused", /ada|10\.1/],
  ["peer 10.31.4.159:4791 closed", /10\.31/],
  ["peer [fe80::1ff:fe23:4567:890a] closed", /fe23/],
  ["port 0c:42:a1:ff:00:12 down", /42:a1/],
  ["GPU-5c1a2b3c-0000-1111-2222-333344445555 lost", /5c1a2b3c/],
  ["export WANDB_API_KEY=0123456789abcdef", /abcdef/],
  ["password: hunter2!", /hunter2/],
  ['"token": "s3cr3t"', /s3cr3t/],
  ["Authorization: Bearer eyJhbGciOi", /eyJ/],
  ["using hf_abcdefghijklmnop", /abcdefgh/],
  ["AKIAIOSFODNN7EXAMPLE is no key", /AKIA/],
  ["hash 9f86d081884c7d659a2feaa0c55ad015", /9f86d/],
  ["started for user grace", /grace/],
  ["uid=1000 user=linus group=x", /linus|1000/],
  ["pulled https://registry.acme.io/x:1?sig=AbC", /acme|AbC/],
  ["acme-gpu017 is ready", /acme|017/],
  ["acme-gpu<NUM> is ready", /acme/],
  ["ACME-GPU003: on", /acme/i],
  ["job secret-llama-3 begins", /secret-llama/],
  ["client_secret=abc123", /abc123/],
  ["export DB_PASSWORD=hunter2", /hunter2/],
  ["dbPassword: 'hun ter2'", /hun|ter2/],
  ["PASSWORD: 'hunter2", /hunter2/],
  ["psql --password hunter2 -h x", /hunter2/],
  ["sshd: Accepted publickey for grace from 10.0.0.1 port 22", /grace/],
  ["sshd: Failed password for invalid user linus from x", /linus/],
  ["hostname: trainer-77 is up", /trainer/],
  ['"node": "cn-<NUM>"', /cn-/],
  ["nodelist=cn[001-004],x9 drained", /cn|x9/],
  ["pulling registry.corp.acme.com:5000/research/llama:v2", /acme|research|llama/],
  ["pulling registry.acme.io/research/llama:v2", /acme|research|llama/],
  // Known with its domain, logged without.
  ["connect to fsn1-h100-13 failed", /fsn1/],
  ["asked ada.lovelace about it", /ada|lovelace/],
];
const mask = masker([
  "acme-gpu017",
  "acme-gpu018",
  "secret-llama-3",
  "node003",
  "x",
  "fsn1-h100-12.dc1.acme.com",
  "ada.lovelace@acme.com",
  "max.weber@acme.com",
  "ray.kurz@acme.com",
]);

describe("an export", () => {
  it.each(HOSTILE)("masks %j", (line, secret) => {
    expect(mask(line)).not.toMatch(secret);
  });

  it("leaves what says nothing of the site", () => {
    for (const line of [
      "NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
      "node<NUM>: iteration <NUM> loss <NUM>",
      "torch.distributed.elastic exited with code 1",
      "no route to host: connection refused",
      "host: node<NUM> rank: 3",
      '"token": "<STR>" was read',
      "password: <STR>",
      "[rank1] lease of vault shard <NUM> was refused",
      "ray: max sequence length <NUM> reached",
    ])
      expect(mask(line)).toBe(line);
  });

  it("masks in time that grows with the text, whatever it is", () => {
    for (const part of ["a.", "a:", "/a", "a-", "user=", "@a"]) {
      expect(processorMs(() => void mask(part.repeat(2000)))).toBeLessThan(2000);
    }
  });

  it("leaves records with a name in their pattern here, drops notes and names of jobs", () => {
    const record = {
      id: "site.leaf",
      title: "leaf of acme-gpu017 flaps",
      layer: "framework",
      match: { all: ["port went down on purpose"], regex: "port went down on purpose" },
      meaning: "seen by ada@acme.com",
      component: "leaf",
      category: "hardware.network",
      role: "root",
      severity: "error",
      owner: "network",
      action: "see https://wiki.acme.com/leaf",
      falseFriends: [],
      certainty: 0.8,
      source: "people",
      example: "10.0.0.1 port went down on purpose",
    } as const;
    const named = { ...record, id: "site.n", match: { all: ["acme-gpu017 went away"] } };
    const store = withoutSecrets(
      {
        ...EMPTY_STORE,
        jobs: ["/runs/secret-llama-3"],
        records: [record, named],
        normal: { "acme-gpu<NUM>: ready": 1, "secret-llama: ready": 2 },
        votes: {
          "site.leaf": { confirmed: 1, disputed: 0, notes: ["ada said so"] },
          "site.n": { confirmed: 1, disputed: 0, notes: [] },
        },
      },
      ["acme-gpu017", "secret-llama-3"],
    );
    expect(JSON.stringify(store)).not.toMatch(/acme|ada|secret|10\.0/);
    expect(store.records.map(({ id }) => id)).toEqual(["site.leaf"]);
    expect(store.votes).toEqual({ "site.leaf": { confirmed: 1, disputed: 0, notes: [] } });
    expect(store.normal).toEqual({ "<HOST>: ready": 2 });
    expect(withoutSecrets(store, []).jobs).toEqual(store.jobs);
  });
});
