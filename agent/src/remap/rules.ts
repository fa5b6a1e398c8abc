// The limits and reach of programs, by their owner. The operator and the agent compile programs of namespaced resources by the same
// rules, so a program that one of them would refuse never runs in the other.

/**
 * How far calls reach beyond the event: to files that arguments name, and to what a function declares in `reaches`.
 *  - `everything`: programs of the platform, and of a user on their own machine.
 *  - `unopened`: calls that name files compile, but open nothing, and fail when they run. The operator compiles programs of the
 *    platform so: their files are on the agent, and a file of the same name in the operator's own pod is another one.
 *  - `nothing`: calls that reach beyond the event do not compile (E710), whatever their arguments are.
 */
export type ProgramReach = 'everything' | 'unopened' | 'nothing'

/** The limits of one run of a program. */
export interface ProgramBudget {
  /** Turns of loops, and work of about the same time. */
  readonly turns: number
  /** Bytes of the values that it makes. */
  readonly bytes: number
}

export interface ProgramRules {
  readonly reach: ProgramReach
  /** Without limits if not given. */
  readonly budget?: ProgramBudget
}

/** Of namespaced resources, unless a TenantPolicy says otherwise: about a second of work. */
export const defaultBudget: ProgramBudget = { turns: 1_000_000, bytes: 64 * 1024 * 1024 }

/** The highest that a TenantPolicy may set. */
export const maxBudget: ProgramBudget = { turns: 100_000_000, bytes: 256 * 1024 * 1024 }

export const platformRules: ProgramRules = { reach: 'everything' }
export const unopenedRules: ProgramRules = { reach: 'unopened' }
/** Of namespaced resources. */
export const restrictedRules: ProgramRules = { reach: 'nothing', budget: defaultBudget }

/** Of namespaced resources, where a TenantPolicy sets the budget or a part of it. */
export function restrictedBy(budget: Partial<ProgramBudget> | undefined): ProgramRules {
  return budget === undefined ? restrictedRules : { reach: 'nothing', budget: { ...defaultBudget, ...budget } }
}
