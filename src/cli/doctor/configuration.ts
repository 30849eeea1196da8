/** Can the configuration files be read? */
import { type Line, linesOf } from "./line.ts";

export interface ConfigurationSeen {
  /** Files that were read, in words. */
  readonly files: readonly string[];
  /** What is wrong, with what to do; null where nothing is. */
  readonly fault: { readonly says: string; readonly hint: string } | null;
}

const { ok, broken, none } = linesOf("configuration");

export function judgeConfiguration({ files, fault }: ConfigurationSeen): Line {
  if (fault) return broken(fault.says, fault.hint);
  if (files.length === 0) return none("no configuration file; every setting has a default");
  return ok(`${files.join(", ")} can be read`);
}
