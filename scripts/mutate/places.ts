/** Places of a source file that can be broken on purpose: each still compiles, and does something else. */
import { parseSync } from "vite";

export interface Place {
  /** Characters of the source that are replaced. */
  readonly start: number;
  readonly end: number;
  readonly by: string;
  /** From 1. */
  readonly line: number;
  /** "a < b → a >= b", in one line. */
  readonly what: string;
}

const OTHER: Readonly<Record<string, string>> = {
  "<": ">=",
  "<=": ">",
  ">": "<=",
  ">=": "<",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&&": "||",
  "||": "&&",
};
const SHOWN = 44;

interface Tree {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [part: string]: unknown;
}

/** Types, names and words are left alone; so is what is only said: the arguments of errors. */
const LEFT_ALONE = /^(TS(?!AsExpression|NonNull|Satisfies)|Import|ExportAll|TemplateElement)/;

export function placesIn(file: string, source: string): Place[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`);
  const places: Place[] = [];
  const textOf = ({ start, end }: Tree): string => source.slice(start, end);
  const change = (tree: Tree, by: string, shown: Tree = tree, shownBy = by): void => {
    const line = source.slice(0, tree.start).split("\n").length;
    const what = `${brief(textOf(shown))} → ${brief(shownBy)}`;
    places.push({ start: tree.start, end: tree.end, by, line, what });
  };
  const visit = (tree: Tree): void => {
    if (tree.type === "Property") return visitParts(tree, ["value"]);
    if (LEFT_ALONE.test(tree.type) || tree.type === "ThrowStatement") return;
    const part = (name: string): Tree => tree[name] as Tree;
    if (tree.type === "BinaryExpression" || tree.type === "LogicalExpression") {
      const by = OTHER[tree["operator"] as string];
      const isText = [part("left"), part("right")].some(
        ({ type, value }) => type === "TemplateLiteral" || typeof value === "string",
      );
      if (by !== undefined && !(isText && tree["operator"] === "+"))
        change(tree, `${textOf(part("left"))} ${by} (${textOf(part("right"))})`);
    } else if (tree.type === "IfStatement" || tree.type === "ConditionalExpression") {
      change(part("test"), `!(${textOf(part("test"))})`);
    } else if (tree.type === "ReturnStatement" && tree["argument"]) {
      const by = part("argument").type === "ArrayExpression" ? "[]" : "null";
      if (textOf(part("argument")) !== by) change(part("argument"), by, tree, `return ${by}`);
    } else if (tree.type === "Literal" && typeof tree["value"] === "number") {
      change(tree, String(tree["value"] + 1));
    } else if (tree.type === "Literal" && typeof tree["value"] === "boolean") {
      change(tree, String(!tree["value"]));
    }
    visitParts(tree, Object.keys(tree));
  };
  const visitParts = (tree: Tree, names: readonly string[]): void => {
    for (const name of names) for (const one of [tree[name]].flat()) if (isTree(one)) visit(one);
  };
  visit(program as unknown as Tree);
  return places;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function brief(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= SHOWN ? line : `${line.slice(0, SHOWN - 1)}…`;
}
