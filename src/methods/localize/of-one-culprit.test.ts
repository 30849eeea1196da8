import { expect, it } from "vitest";
import type { Job } from "../../model/job.ts";
import type { Attribution } from "./attribute.ts";
import { ofOneCulprit } from "./of-one-culprit.ts";

type Found = Attribution["found"][number];

function network(iteration: number, ranks: number[], rate = 0.4): Found {
  return { iteration, what: { cause: "network", ranks, rate } as unknown as Found["what"] };
}

function compute(iteration: number, rank: number): Found {
  return {
    iteration,
    what: { cause: "compute", ranks: [rank], rate: 0.2 } as unknown as Found["what"],
  };
}

const group = (ranks: number[], carriesP2p = false): unknown => ({ ranks, carriesP2p });
/** Four stages of four replicas: ranks 0–3, 4–7, 8–11, 12–15. */
const JOB = {
  worldSize: 16,
  groups: [
    group([...Array(16).keys()]),
    ...[0, 4, 8, 12].map((first) => group([first, first + 1, first + 2, first + 3])),
    ...[0, 1, 2, 3].map((first) => group([first, first + 4, first + 8, first + 12], true)),
  ],
} as unknown as Job;

function picked(found: readonly Found[]): number[][] {
  const attribution = { devices: [], searched: 0, irregularities: 0, found };
  const numbers = [...new Set(found.map(({ iteration }) => iteration))];
  return ofOneCulprit([], new Map(), attribution, JOB, 3).map(({ isSlow }) =>
    numbers.filter(isSlow),
  );
}

it("takes together iterations whose searches come to different members of one slow ring", () => {
  // The ring itself once, then pipelines that wait for another member of it each time; after-effects and a hiccup beside it.
  const found = [
    compute(21, 2),
    network(56, [8, 9, 10, 11]),
    compute(57, 9),
    network(74, [5, 9]),
    compute(75, 11),
    network(77, [6, 10]),
  ];
  expect(picked(found)).toEqual([[56, 74, 77]]);
});

it("takes nothing together where searches come to several rings, or to fewer than three of one", () => {
  expect(picked([network(5, [0, 4]), network(9, [8, 12]), network(14, [1, 5])])).toEqual([]);
  expect(picked([network(5, [8, 12]), network(9, [9, 13]), compute(14, 10)])).toEqual([]);
});
