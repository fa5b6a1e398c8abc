// Messages of commands when the API server refuses a request, or another program answers in its place.

import { expect, test } from 'vitest'
import { runAtDouble } from '../testing/command.ts'

const refusal = (code: number, reason: string, message: string) => ({
  status: code,
  body: { kind: 'Status', status: 'Failure', reason, message, code },
})
const forbidden =
  'pipelines.penstock.dev is forbidden: User "me" cannot list resource "pipelines" in the namespace "shop"'

test.each([
  {
    answer: refusal(403, 'Forbidden', forbidden),
    says: `The API server refuses this: ${forbidden}\nIn a namespace, the ClusterRole \`view\` allows reading`,
  },
  {
    answer: refusal(401, 'Unauthorized', 'Unauthorized'),
    says: 'The API server does not accept your credentials.\nThey may have expired',
  },
  {
    answer: refusal(404, 'NotFound', 'the server could not find the requested resource'),
    says: 'Is Penstock installed in this cluster?',
  },
])('status with an API server that responds with $answer.status prints $says', async ({ answer, says }) => {
  const { code, output } = await runAtDouble(
    () => ['status', '-n', 'shop'],
    () => answer,
  )
  expect(code).toBe(69)
  expect(output).toContain(says)
  expect(output.split('\n').length).toBeLessThanOrEqual(3)
})

test('a namespace without Pipelines may be the wrong one', async () => {
  const { code, output } = await runAtDouble(
    () => ['status', '-n', 'shp'],
    () => ({ status: 200, body: { metadata: { resourceVersion: '1' }, items: [] } }),
  )
  expect([code, output]).toEqual([
    0,
    'There is no Pipeline in namespace shp. `penstock status -A` shows those of all.\n',
  ])
})

const ofOperator = (status: number, error: string) => ({ status, body: { error } })
test.each([
  { what: 'knows no such Pipeline', answer: ofOperator(404, 'There is no Pipeline shop/web.'), expected: 1 },
  { what: 'has just started', answer: ofOperator(503, 'The operator has just started.'), expected: 69 },
  { what: 'denies access', answer: ofOperator(403, 'You may not.'), expected: 69 },
])('exit codes of commands whose operator $what', async ({ answer, expected }) => {
  for (const words of [
    ['tap', 'web'],
    ['top', 'web', '--once'],
  ]) {
    const { code, output } = await runAtDouble(
      ({ url }) => [...words, '-n', 'shop', '--operator-url', url, '--token', 'secret'],
      () => answer,
    )
    expect(code, output).toBe(expected)
    expect(output.trimEnd()).toBe(answer.body.error)
  }
})
