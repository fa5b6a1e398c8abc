// The limits and permissions of programs, by their owner. The operator and the agent compile programs of namespaced resources with
// the same rules, so a program that one of them rejects never runs in the other.

/**
 * The resources that calls may access besides the event: files named by arguments, and the resources that a function declares in `reaches`.
 * - `everything`: for programs of the platform, and for users on their own machine.
 * - `unopened`: calls that name files compile but do not open them, and fail at run time. The operator compiles programs of the
 *   platform this way: their files are on the agent, and a file of the same name in the operator's own pod is a different one.
 * - `nothing`: calls that access anything besides the event do not compile (E710), whatever their arguments are.
 */
export type ProgramReach = 'everything' | 'unopened' | 'nothing'

/** The limits of one run of a program. */
export interface ProgramBudget {
  /** Turns of loops, and work that takes about as long. */
  readonly turns: number
  /** Bytes of the values that it creates. */
  readonly bytes: number
}

export interface ProgramRules {
  readonly reach: ProgramReach
  /** Unlimited if not given. */
  readonly budget?: ProgramBudget
}

/** Budget of namespaced resources, unless a TenantPolicy sets another: about a second of work. */
export const defaultBudget: ProgramBudget = { turns: 1_000_000, bytes: 64 * 1024 * 1024 }

/** The maximum that a TenantPolicy may set. */
export const maxBudget: ProgramBudget = { turns: 100_000_000, bytes: 256 * 1024 * 1024 }

export const platformRules: ProgramRules = { reach: 'everything' }
export const unopenedRules: ProgramRules = { reach: 'unopened' }
/** Rules for namespaced resources. */
export const restrictedRules: ProgramRules = { reach: 'nothing', budget: defaultBudget }

/** Rules for namespaced resources if a TenantPolicy sets all or part of the budget. */
export function restrictedBy(budget: Partial<ProgramBudget> | undefined): ProgramRules {
  return budget === undefined ? restrictedRules : { reach: 'nothing', budget: { ...defaultBudget, ...budget } }
}
