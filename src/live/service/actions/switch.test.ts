import { expect, it } from "vitest";
import type { SwitchState } from "../view.ts";
import { ActionsSwitch } from "./switch.ts";

function open(store: Map<string, unknown>, enabled = true) {
  const says: string[] = [];
  const shown: SwitchState[] = [];
  const broken = { read: false, write: false, audit: false };
  const failIf = (isBroken: boolean): void => {
    if (isBroken) throw new Error("the store is down");
  };
  const one = new ActionsSwitch({
    enabled,
    canRun: true,
    nowMs: () => Date.UTC(2026, 10, 18),
    history: {
      async document(key) {
        failIf(broken.read);
        return store.get(key) ?? null;
      },
      async putDocument(key, document) {
        failIf(broken.write);
        store.set(key, document);
      },
    },
    async audit(who, what) {
      failIf(broken.audit);
      says.push(`${who} ${what}`);
    },
    changed: (state) => void shown.push(state),
    log: () => undefined,
  });
  return { one, says, shown, broken };
}

it("holds at once, after a restart, and for other services that share the store", async () => {
  const store = new Map<string, unknown>();
  const { one, says, shown } = open(store);
  const other = open(store);
  expect(await one.off()).toBeNull();
  const words = "actions were switched off by alice at 2026-11-18T00:00:00.000Z";
  expect(await one.switch(false, "alice")).toEqual({ isOn: false, says: words, canRun: true });
  expect(await one.off()).toBe(words);
  expect(await other.one.off()).toBe(words);
  const later = open(store);
  expect(await later.one.off()).toBe(words);
  expect(await later.one.switch(true, "bob")).toEqual({ isOn: true, says: "", canRun: true });
  expect(await one.off()).toBeNull();
  expect([says, later.says]).toEqual([["alice off"], ["bob on"]]);
  expect(shown.map(({ isOn }) => isOn)).toEqual([false, true]);
  expect(other.shown.map(({ isOn }) => isOn)).toEqual([false]);
});

it("is off though nothing can be written, and says that it is not kept; on needs the store", async () => {
  const { one, broken } = open(new Map());
  Object.assign(broken, { read: true, write: true, audit: true });
  expect((await one.switch(false, "alice")).says).toMatch(
    /not kept over a restart: the store is down$/,
  );
  broken.read = false;
  expect(await one.off()).toMatch(/switched off by alice/);
  await expect(one.switch(true, "alice")).rejects.toMatchObject({ status: 503 });
  expect(one.state.isOn).toBe(false);
  Object.assign(broken, { write: false, audit: false });
  expect(await one.switch(true, "alice")).toEqual({ isOn: true, says: "", canRun: true });
});

it("stays off where the configuration says so", async () => {
  const { one } = open(new Map(), false);
  expect(await one.off()).toMatch(/in the configuration/);
  await expect(one.switch(true, "alice")).rejects.toMatchObject({ status: 409 });
});
