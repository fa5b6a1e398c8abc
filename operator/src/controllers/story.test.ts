import { expect, test } from 'vitest'
import type { Condition, ConditionType } from '../api/conditions.ts'
import { storyOf } from './story.ts'

type Known = readonly [status: Condition['status'], reason: string, message?: string, generation?: number]

const condition = (type: ConditionType, known: Known | undefined): Condition[] => {
  if (known === undefined) return []
  const [status, reason, message = '', observedGeneration = 1] = known
  return [{ type, status, reason, message, observedGeneration, lastTransitionTime: '' }]
}

const cases: readonly (readonly [ConditionType, Known | undefined, Known, string | undefined])[] = [
  ['Accepted', undefined, ['True', 'Valid'], 'Normal Accepted: Generation 1 is accepted.'],
  ['Accepted', ['True', 'Valid'], ['True', 'Valid'], undefined],
  ['Accepted', ['True', 'Valid'], ['True', 'Valid', '', 2], 'Normal Accepted: Generation 2 is accepted.'],
  ['Accepted', ['True', 'Valid'], ['False', 'CompileFailed', 'E103'], 'Warning Rejected: E103'],
  ['Accepted', ['False', 'CompileFailed', 'E103'], ['False', 'CompileFailed', 'E104'], undefined],
  ['Accepted', ['True', 'Valid'], ['False', 'QuotaExceeded', 'two'], 'Warning QuotaExceeded: two'],
  ['Accepted', ['True', 'Valid'], ['Unknown', 'InternalError', 'TypeError'], 'Warning InternalError: TypeError'],
  ['Accepted', ['Unknown', 'InternalError'], ['Unknown', 'InternalError'], undefined],
  [
    'ResolvedRefs',
    ['True', 'Resolved'],
    ['False', 'SecretNotFound', 'creds is not there'],
    'Warning SecretNotFound: creds is not there',
  ],
  ['ResolvedRefs', ['False', 'SecretNotFound'], ['True', 'Resolved'], undefined],
  ['Programmed', undefined, ['False', 'Pending', '0 of 2'], undefined],
  ['Programmed', ['False', 'Pending'], ['False', 'RollingOut', '1 of 2'], undefined],
  ['Programmed', ['False', 'RollingOut'], ['True', 'Programmed', '2 of 2'], 'Normal Programmed: 2 of 2'],
  ['Programmed', ['True', 'Programmed', '2 of 2'], ['True', 'Programmed', '3 of 3'], undefined],
  ['Programmed', ['True', 'Programmed'], ['True', 'Programmed', '2 of 2', 2], 'Normal Programmed: 2 of 2'],
  ['Programmed', ['True', 'Programmed'], ['True', 'PreviousGeneration', 'old'], undefined],
  ['Programmed', ['False', 'RollingOut'], ['False', 'RolledBack', 'EACCES'], 'Warning RolledBack: EACCES'],
  ['Programmed', ['True', 'Programmed'], ['False', 'NodesFailed', 'n1'], 'Warning NodesFailed: n1'],
  ['Programmed', ['True', 'Programmed'], ['Unknown', 'InternalError', 'oops'], 'Warning InternalError: oops'],
  ['Flowing', ['True', 'Flowing'], ['False', 'NoEventsDelivered', 'out: 401'], 'Warning NoEventsDelivered: out: 401'],
  [
    'Flowing',
    ['False', 'NoEventsDelivered'],
    ['False', 'BufferFillingUp', 'out is full'],
    'Warning BufferFillingUp: out is full',
  ],
  ['Flowing', ['False', 'NoEventsDelivered'], ['True', 'Flowing', 'again'], 'Normal Recovered: again'],
  ['Flowing', ['Unknown', 'NoData'], ['True', 'Flowing'], undefined],
  ['Reachable', ['True', 'Reachable'], ['False', 'Unauthorized', '401'], 'Warning SinkUnreachable: 401'],
  ['Reachable', ['False', 'Unauthorized'], ['True', 'Reachable', 'It answers.'], 'Normal SinkRecovered: It answers.'],
  ['Reachable', ['Unknown', 'Pending'], ['True', 'Reachable'], undefined],
  ['Ready', ['False', 'Pending'], ['True', 'Ready'], undefined],
]

test.each(cases)('%s from %j to %j', (type, before, after, reported) => {
  const [happening] = storyOf('Pipeline', condition(type, before), condition(type, after))
  expect(happening && `${happening.type} ${happening.reason}: ${happening.message}`).toBe(reported)
})

test('an Agent has events for its rollouts, but not for each start of a pod', () => {
  const after = [...condition('Programmed', ['True', 'Programmed']), ...condition('Accepted', ['True', 'Valid'])]
  expect(storyOf('Agent', undefined, after).map(({ reason }) => reason)).toEqual(['Accepted'])
})
