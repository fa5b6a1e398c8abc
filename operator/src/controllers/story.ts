// The Events that `kubectl describe` shows for an object: each written change of a condition that matters to its owner. Pure.

import { type Condition, type ConditionType, conditionOf } from '../api/conditions.ts'

export interface Happening {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

type Reporter = (before: Condition | undefined, after: Condition) => Happening | undefined

const normal = (reason: string, message: string): Happening => ({ type: 'Normal', reason, message })
const warning = (reason: string, message: string): Happening => ({ type: 'Warning', reason, message })

/** Whether it is bad now, but was not, or was for another reason. */
const isNewTrouble = (before: Condition | undefined, { status, reason }: Condition) =>
  status === 'False' && (before?.status !== 'False' || before.reason !== reason)

/** Whether it is good now, but was not, or was for another generation. */
const isNewlyTrue = (before: Condition | undefined, { status, reason, observedGeneration }: Condition) =>
  status === 'True' &&
  (before?.status !== 'True' || before.reason !== reason || before.observedGeneration !== observedGeneration)

const reporters: Partial<Readonly<Record<ConditionType, Reporter>>> = {
  Accepted(before, after) {
    const { reason, message, observedGeneration } = after
    if (reason === 'InternalError') return before?.reason === reason ? undefined : warning(reason, message)
    if (isNewTrouble(before, after)) return warning(reason === 'QuotaExceeded' ? reason : 'Rejected', message)
    if (!isNewlyTrue(before, after)) return undefined
    return normal('Accepted', `Generation ${observedGeneration} is accepted.${message === '' ? '' : ` ${message}`}`)
  },
  ResolvedRefs: (before, after) => (isNewTrouble(before, after) ? warning(after.reason, after.message) : undefined),
  Programmed(before, after) {
    const { reason, message } = after
    if (reason === 'InternalError') return before?.reason === reason ? undefined : warning(reason, message)
    // Other conditions are intermediate steps.
    const isTrouble = reason === 'NodesFailed' || reason === 'RolledBack' || reason === 'BundleTooLarge'
    if (isTrouble && isNewTrouble(before, after)) return warning(reason, message)
    return reason === 'Programmed' && isNewlyTrue(before, after) ? normal(reason, message) : undefined
  },
  Flowing(before, after) {
    if (isNewTrouble(before, after)) return warning(after.reason, after.message)
    return before?.status === 'False' && after.status === 'True' ? normal('Recovered', after.message) : undefined
  },
  Reachable(before, after) {
    if (isNewTrouble(before, after)) return warning('SinkUnreachable', after.message)
    return before?.status === 'False' && after.status === 'True' ? normal('SinkRecovered', after.message) : undefined
  },
}

/** An Agent has events for its rollouts, and every pod start changes how many pods run its revision. */
const unreported: Readonly<Record<string, readonly ConditionType[]>> = { Agent: ['Programmed'] }

/** The events for a change of an object's status. */
export function storyOf(
  kind: string,
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
): Happening[] {
  return after.flatMap((condition) => {
    const type = condition.type as ConditionType
    if (unreported[kind]?.includes(type)) return []
    return reporters[type]?.(conditionOf(before, type), condition) ?? []
  })
}
