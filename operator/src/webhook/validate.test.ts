import { expect, test } from 'vitest'
import type { Reason } from '../api/conditions.ts'
import { pipelineKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { CompileProblem } from '../compile/compiled.ts'
import { type Judge, validate } from './validate.ts'

interface Judged extends KubeObject {
  readonly spec: { readonly wrong?: readonly (readonly [Reason, string])[]; readonly more?: number }
}

const pipeline = (spec: Judged['spec'], metadata: Partial<KubeObject['metadata']> = {}): Judged => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'checkout', namespace: 'shop', ...metadata },
  spec,
})

/** Finds problems in the object itself. */
const judge: Judge = async (_, object) =>
  ((object as Judged).spec.wrong ?? []).map(
    ([reason, message]): CompileProblem => ({ severity: 'error', reason, path: 'spec.sinks[0]', message }),
  )

const ask = (object: Judged, previous?: Judged) => validate(pipelineKind, object, previous, judge)

test('all errors are reported at once, with their reasons', async () => {
  const verdict = await ask(
    pipeline({
      wrong: [
        ['InvalidConfig', 'unknown field'],
        ['ForbiddenOption', 'T4: no files'],
      ],
    }),
  )
  expect(verdict.allowed).toBe(false)
  expect(verdict.message).toBe(
    'Pipeline "checkout" has 2 problems:\n- InvalidConfig: sinks[0]: unknown field\n- ForbiddenOption: sinks[0]: T4: no files',
  )
})

test('a problem that another object may still fix is a warning', async () => {
  const verdict = await ask(pipeline({ wrong: [['SinkNotFound', 'there is no Sink "loki"']] }))
  expect(verdict).toEqual({ allowed: true, message: '', warnings: ['sinks[0]: there is no Sink "loki"'] })
})

test.each([
  ['only metadata changes', { labels: { a: 'b' } }, {}],
  ['a finalizer goes', { finalizers: [] }, { finalizers: ['x/y'] }],
  ['it is being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }, {}],
])('an invalid object passes if %s', async (_, now, before) => {
  const wrong: Judged['spec'] = { wrong: [['InvalidConfig', 'x']] }
  expect(await ask(pipeline(wrong, now), pipeline(wrong, before))).toMatchObject({ allowed: true })
})

test('an invalid object may be changed, but without new problems', async () => {
  const before = pipeline({ wrong: [['InvalidConfig', 'x']] })
  const same = await ask(pipeline({ wrong: [['InvalidConfig', 'y']], more: 1 }), before)
  expect(same).toEqual({ allowed: true, message: '', warnings: ['still wrong: sinks[0]: y'] })
  const worse: Judged['spec'] = {
    wrong: [
      ['InvalidConfig', 'x'],
      ['ForbiddenOption', 'z'],
    ],
  }
  expect((await ask(pipeline(worse), before)).allowed).toBe(false)
  expect((await ask(pipeline({ wrong: [['InvalidConfig', 'x']] }), pipeline({}))).allowed).toBe(false)
})

test('warnings stay within the limits of the API server', async () => {
  const many = Array.from({ length: 40 }, (_, n) => ['SinkNotFound', `${n} ${'x'.repeat(500)}`] as const)
  const { warnings } = await ask(pipeline({ wrong: many }))
  expect(warnings).toHaveLength(13)
  expect(warnings.at(-1)).toBe('and 28 more')
  expect(warnings.join('').length).toBeLessThan(4096)
})
