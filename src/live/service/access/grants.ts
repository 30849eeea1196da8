/** What somebody may do, and for which jobs: of a token, or of a person's group. */

export const SCOPES = ["agent", "read", "act"] as const;
export type Scope = (typeof SCOPES)[number];

export interface Grant {
  readonly scopes: readonly Scope[];
  /** Patterns of names (base/patterns.ts); null for all jobs. */
  readonly jobs: readonly string[] | null;
}

/** What people of a group may, as their provider names it in the claim. */
export interface GroupGrant extends Grant {
  readonly group: string;
}

/** Who asks, for what they have the right to do. */
export interface Caller {
  /** Stands in the audit trail: the token's name, "oidc:" and a person's, or how the caller came in without either. */
  readonly name: string;
  /** Only the agent of this name; null for any. */
  readonly agent: string | null;
  /** Of the jobs that this is for; null for all. */
  readonly jobs: readonly string[] | null;
}

/** Which jobs these grants give a scope for: patterns, null for all, undefined for none at all. */
export function jobsFor(
  grants: readonly Grant[],
  scope: Scope,
): readonly string[] | null | undefined {
  const having = grants.filter(({ scopes }) => scopes.includes(scope));
  if (having.length === 0) return undefined;
  const patterns = having.flatMap(({ jobs }) => jobs ?? []);
  return having.some(({ jobs }) => jobs === null) ? null : [...new Set(patterns)];
}
