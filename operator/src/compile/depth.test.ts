// Excessively nested trees are rejected wherever the operator reads user input, before any recursion.

import { expect, test } from 'vitest'
import { maxDepth } from '../api/depth.ts'
import { pipelineKind, sinkKind } from '../api/kinds.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { shapeProblems } from '../api/shape.ts'
import { validate } from '../webhook/validate.ts'
import { CompilePool } from './pool.ts'
import { referredObjects } from './secrets.ts'

const nested = (levels: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = wrap(value)
  return value
}
const shapes = [
  (inner: unknown) => ({ a: inner }),
  (inner: unknown) => [inner],
  (inner: unknown) => ({ valueFrom: inner }),
]
const specOf = (config: unknown) => ({
  sources: [{ name: 'in', type: 'demo_logs' }],
  sinks: [{ name: 'out', type: 'http', config: { request: config } }],
})
const pipeline = (config: unknown) =>
  ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'p', namespace: 'shop', uid: 'u', generation: 1 },
    spec: specOf(config),
  }) as unknown as Pipeline

test.each([500, 5_000, 50_000])('%i levels are refused everywhere, with one clear sentence', async (levels) => {
  await using pool = new CompilePool()
  const refusal = `nested deeper than ${maxDepth} levels`
  for (const wrap of shapes) {
    const object = pipeline(nested(levels, wrap))
    expect(shapeProblems(pipelineKind, object)).toMatchObject([{ message: expect.stringContaining(refusal) }])
    expect(referredObjects(object.spec, 'shop')).toEqual([])
    const judged: unknown[] = []
    const judge = async (_: unknown, seen: unknown) => {
      judged.push(seen)
      return []
    }
    expect(await validate(pipelineKind, object, undefined, judge)).toMatchObject({ allowed: false })
    // Its owner may replace it with a readable value.
    expect(await validate(sinkKind, pipeline({}), object, judge)).toMatchObject({ allowed: true })
    expect(judged).toHaveLength(1)
    const job = {
      pipeline: object,
      resources: [],
      policy: undefined,
      apiHosts: [],
      secrets: {},
      configMaps: {},
    } as unknown as Parameters<CompilePool['compile']>[0]
    const { accepted } = await pool.compile(job)
    expect(accepted).toMatchObject({ status: 'False', message: expect.stringContaining(refusal) })
  }
})

test('accepts usual depths', () => {
  expect(shapeProblems(pipelineKind, pipeline(nested(60, (inner) => ({ a: inner }))))).toEqual([])
})
