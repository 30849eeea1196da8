import { expect, test } from "vitest";
import { METHOD_IDS } from "../model/method.ts";
import { METHODS } from "./methods.ts";

test("every method that there is is asked, in the order in which they are named", () => {
  expect(METHODS.map(({ id }) => id)).toEqual([...METHOD_IDS]);
});
