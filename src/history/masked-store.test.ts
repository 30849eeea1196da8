import { describe, expect, it } from "vitest";
import { processorMs } from "../../test/support/processor-time.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { EMPTY_STORE } from "../model/log-store.ts";
import { parseLogStore, storeText } from "./log-store-file.ts";
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
  ["HF_TOKEN hf_AbCdEf and eyJhbGciOi.eyJzdWIi.abc-_", /AbCdEf|eyJ/],
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
  ["token abcdef123456 was refused", /abcdef/],
  ["authorization header Basic dXNlcjpwYXNz", /dXNl/],
  ["export PASS=hunter", /hunter/],
  ["the password is hunter", /hunter/],
  ["passphrase hunter", /hunter/],
  ["sshpass -p hunter ssh x", /hunter/],
  ["Bearer: abcdefgh", /abcdefgh/],
  ["azure sv=2020&sig=abcd%3D", /abcd/],
  ["open /home/алиса/x", /алиса/],
  ["open C:\\My Files\\ada project\\a.py", /Files|ada|project/],
  ["open C:/Users/ada/x", /ada/],
  ["open ~ada/x or $HOME/ada/x or ../ada/x", /ada/],
  ["key %2Fhome%2Fada%2Fx is gone", /ada/],
  ["mount filer:/vol/proj_x is stale", /filer|vol|proj/],
  ["dgxa100-c03n07: ECC error", /dgx|c03/],
  ["dgxa<NUM>-c<NUM>n<NUM>: ECC error", /dgx/],
  ["ip-10-1-2-3 is lost", /ip-10/],
  ["slurm cancelled it on cn[001-004]", /cn/],
  ["gpu_b300_017 and gpu-b<NUM>-<NUM> are lost", /b300|_b|gpu-b/],
  ["addr 2001:db8:: is gone", /db8/],
  ["port guid 0xb83fd20300a1b2c3 or b83f:d203:00a1:b2c3", /b83f/],
  ["clone git@host:org/repo", /org|repo/],
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
  "gpu-b300-017",
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
      "mlx5_0 port 1: link down after 300s, fp16 of 8x gpu0, layer12",
      "12 tokens of 400: token index out of range",
      "[rank1] lease of vault shard <NUM> was refused",
      "ray: max sequence length <NUM> reached",
    ])
      expect(mask(line)).toBe(line);
  });

  it("masks in time that grows with the text, whatever it is", () => {
    for (const part of [
      "a.",
      "a:",
      "/a",
      "a-",
      "user=",
      "@a",
      "token ",
      "a1",
      "%2F",
      "C:\\",
      "::",
    ]) {
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
      true,
    );
    expect(JSON.stringify(store)).not.toMatch(/acme|ada|secret|10\.0/);
    expect(store.records.map(({ id }) => id)).toEqual(["site.leaf"]);
    expect(store.votes).toEqual({ "site.leaf": { confirmed: 1, disputed: 0, notes: [] } });
    expect(store.normal).toEqual({ "<HOST>: ready": 2 });
    expect(withoutSecrets(store, [], true).jobs).toEqual(store.jobs);
  });

  it("holds no free text unless somebody asks for it", () => {
    const texts = ["title", "meaning", "component", "action", "source"] as const;
    const record = {
      ...Object.fromEntries(texts.map((field) => [field, `${field} of zorbl`])),
      id: "site.lease",
      layer: "framework",
      role: "root",
      severity: "error",
      category: "hardware.storage",
      owner: "storage",
      certainty: 0.8,
      match: { all: ["the lease was refused"], regex: "the lease was refused" },
      falseFriends: ["zorbl"],
      example: "zorbl: the lease was refused",
    } as unknown as FaultRecord;
    const votes = { "site.lease": { confirmed: 2, disputed: 1, notes: ["zorbl"] } };
    const known = { ...EMPTY_STORE, jobs: ["zorbl"], normal: { "zorbl runs": 1 } };
    const store = withoutSecrets({ ...known, records: [record], votes }, [], false);
    expect(JSON.stringify(store)).not.toMatch(/zorbl/);
    expect(store.votes["site.lease"]).toMatchObject({ confirmed: 2, disputed: 1 });
    const [sent] = parseLogStore(storeText(store), "the export").records;
    const { match, category, owner, certainty } = record;
    expect(sent).toMatchObject({ match, category, owner, certainty, id: "site.lease" });
  });
});
