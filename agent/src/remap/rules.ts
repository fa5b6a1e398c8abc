// What programs may reach and use up, by whose they are. The operator and the agent compile the programs of namespaced resources
// by the same rules, so that a program that one of them would refuse never runs in the other.

/**
 * How far calls reach beyond the event: to files that arguments name, and to what a function declares in `reaches`.
 *  - `everything`: programs of the platform, and of a user on their own machine.
 *  - `unopened`: calls that name files compile, but open nothing, and fail when they run. The operator compiles programs of the
 *    platform so: their files are on the agent, and a file of the same name in the operator's own pod is another one.
 *  - `nothing`: calls that reach beyond the event do not compile (E710), whatever their arguments are.
 */
export type Reach = 'everything' | 'unopened' | 'nothing'

export interface ProgramRules {
  readonly reach: Reach
}

export const platformRules: ProgramRules = { reach: 'everything' }
export const unopenedRules: ProgramRules = { reach: 'unopened' }
/** Of namespaced resources. */
export const restrictedRules: ProgramRules = { reach: 'nothing' }
