// Conditions: the observed state of an object, in the form of the API conventions. Types and reasons are API constants.

import { integer, keyedList, object, oneOf, required, text, time, type ValueOf } from './schema.ts'

export const conditionTypes = [
  'Accepted',
  'ResolvedRefs',
  'Programmed',
  'Flowing',
  'Reachable',
  'Available',
  'Contended',
  'Narrowed',
  'Ready',
  'Reconciling',
  'Stalled',
] as const
export type ConditionType = (typeof conditionTypes)[number]

export type ConditionStatus = 'True' | 'False' | 'Unknown'

/** Every reason of every condition. */
export const reasons = [
  // Accepted
  'Valid',
  'InvalidConfig',
  'CompileFailed',
  'TestsFailed',
  'ForbiddenOption',
  'QuotaExceeded',
  'NoMatchingAgent',
  'NameConflict',
  'AuthorNotAllowed',
  'InternalError',
  // ResolvedRefs
  'Resolved',
  'SourceNotFound',
  'SinkNotFound',
  'RefNotPermitted',
  'SecretNotFound',
  'SecretKeyNotFound',
  // Programmed
  'Programmed',
  'PreviousGeneration',
  'Pending',
  'RollingOut',
  'NodesFailed',
  'RolledBack',
  'Undone',
  'BundleTooLarge',
  'Suspended',
  'Stopped',
  // Flowing
  'Flowing',
  'AllEventsDropped',
  'SomeEventsDropped',
  'NoEventsDelivered',
  'BufferFillingUp',
  'Lagging',
  'NoData',
  // Reachable
  'Reachable',
  'Unauthorized',
  'ConnectFailed',
  'TLSFailed',
  'Rejecting',
  'Unreachable',
  // Available
  'Available',
  'PodsNotReady',
  'Unschedulable',
  // Contended
  'ForeignManager',
  // Ready, Reconciling, Stalled
  'Ready',
  'Unmanaged',
  'NamespaceNotAllowed',
  'Progressing',
] as const
export type Reason = (typeof reasons)[number]

export const conditions = keyedList(
  'type',
  object(
    {
      type: required(text('Type of the condition.', { maxLength: 316 })),
      status: required(oneOf(['True', 'False', 'Unknown'], 'Whether it holds.')),
      reason: required(text('A constant for programs.', { maxLength: 1024 })),
      message: required(text('One sentence for people.', { maxLength: 32768 })),
      observedGeneration: integer('The generation for which the condition was determined.'),
      lastTransitionTime: required(time('When the status last changed.')),
    },
    'The observed state of one aspect.',
  ),
  'Conditions of the object.',
)

export type Condition = ValueOf<typeof conditions>[number]

/** A condition as a controller determines it; the time of the change is added on write. */
export interface Finding {
  readonly type: ConditionType
  readonly status: ConditionStatus
  readonly reason: Reason
  readonly message: string
}

export function conditionOf(list: readonly Condition[] | undefined, type: ConditionType): Condition | undefined {
  return list?.find((condition) => condition.type === type)
}
