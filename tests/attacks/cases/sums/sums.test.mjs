import assert from "node:assert";
import { test } from "node:test";
import { add, mul } from "./sums.mjs";

test("add", () => assert.strictEqual(add(2, 3), 5));
test("mul", () => {
  assert.strictEqual(mul(2, 3), 6);
  assert.strictEqual(mul(0, 3), 0);
});
