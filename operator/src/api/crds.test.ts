import { describe, expect, test } from 'vitest'
import { crdFiles } from '../tools/generate.ts'
import { customResourceDefinitions } from './crds.ts'
import { kinds, pipelineKind } from './kinds.ts'
import { PipelineModel } from './models.ts'
import { shapeProblems } from './shape.ts'

// `kubectl apply` stores the whole object in an annotation, which may have at most 256 KiB.
test.each([...crdFiles()])('%s stays below 100 KiB', (_, text) => {
  expect(Buffer.byteLength(text)).toBeLessThan(100 * 1024)
})

test.each(customResourceDefinitions().map((crd) => [crd.metadata.name, crd]))(
  '%s contains no internal keyword',
  (_, crd) => {
    expect(JSON.stringify(crd)).not.toMatch(/x-required|x-expected|x-meanwhile|~type/)
  },
)

test.each(customResourceDefinitions().map((crd) => [crd.metadata.name, crd.spec]))(
  '%s serves two versions that differ only in their names, and stores the version of the previous release',
  (_, spec) => {
    const versions = spec['versions'] as readonly { name: string; storage: boolean; served: boolean }[]
    expect(spec['conversion']).toEqual({ strategy: 'None' })
    expect(versions.map(({ name, served, storage }) => ({ name, served, storage }))).toEqual([
      { name: 'v1beta1', served: true, storage: false },
      { name: 'v1alpha1', served: true, storage: true },
    ])
    const [beta, alpha] = versions.map(({ name: _, storage: __, ...rest }) => rest)
    expect(beta).toEqual(alpha)
  },
)

test('messages of the rules of kinds contain no regular expression', () => {
  const messages: string[] = []
  JSON.stringify(customResourceDefinitions(), (key, value) => {
    if (key === 'x-kubernetes-validations') for (const { message } of value) messages.push(message)
    return value
  })
  expect(messages).toContainEqual(expect.stringMatching(/^metadata\.name must be at most 63 lower-case letters/))
  for (const message of messages) expect(message).not.toMatch(/[\^$[\]{}]/)
})

test('a pattern of a text becomes a rule with a message in words', () => {
  const patterns: unknown[] = []
  const rules: string[] = []
  JSON.stringify([customResourceDefinitions(), kinds.map(({ spec, status }) => [spec, status])], (_, node) => {
    if (typeof node?.pattern === 'string' && typeof node.type === 'string')
      patterns.push({ words: typeof node['x-expected'], length: typeof node.maxLength })
    for (const { rule, message } of node?.['x-kubernetes-validations'] ?? [])
      if (rule.startsWith('self.matches(')) rules.push(`${rule} ${message}`)
    return node
  })
  // Only declarations have them: each has words, and a maximum length, which limits the cost of its rule.
  expect(new Set(patterns.map((facts) => JSON.stringify(facts)))).toEqual(
    new Set(['{"words":"string","length":"number"}']),
  )
  expect(rules).toContain("self.matches('^([0-9]+(ms|s|m|h))+$') must be a time span such as 60s or 5m")
})

test('kinds, plurals and short names are each used once', () => {
  for (const member of ['kind', 'plural', 'shortName'] as const) {
    expect(new Set(kinds.map((kind) => kind[member])).size).toBe(kinds.length)
  }
  expect(customResourceDefinitions().map((crd) => crd.metadata.name)).toContain('tenantpolicies.penstock.dev')
})

describe('the shape of a spec', () => {
  const spec = {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: { anything: [1] } }],
    sinks: [{ name: 'out', type: 'blackhole' }],
  }
  const problems = (change: object) =>
    shapeProblems(pipelineKind, { spec: { ...spec, ...change } }).map(
      ({ path, message }) => `${path.join('.')}: ${message}`,
    )

  test.each([
    [{}, []],
    [{ mode: 'Nod' }, ['spec.mode: `spec.mode` must be one of `Auto`, `Node`, `Aggregator`, `Sidecar`; found "Nod"']],
    [{ sinks: [] }, ['spec.sinks: `spec.sinks` needs at least one entry']],
    [{ suspend: 'yes' }, ['spec.suspend: `spec.suspend` must be true or false; found "yes"']],
    [{ sinks: [{ type: 'http' }] }, ['spec.sinks.0.name: `spec.sinks[0].name` is missing']],
    [
      { limits: { pipeline: { bytesPerSecond: '20 Mi' } } },
      [
        'spec.limits.pipeline.bytesPerSecond: `spec.limits.pipeline.bytesPerSecond` must be a quantity such as 500, 20Mi or 1.5G; found "20 Mi"',
      ],
    ],
  ])('%j', (change, expected) => {
    expect(problems(change)).toEqual(expected)
  })

  test('a model knows its kind, and validates itself', () => {
    const model = new PipelineModel({ metadata: { name: 'a', namespace: 'b' }, spec })
    expect(model.toJSON()).toEqual({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'Pipeline',
      metadata: { name: 'a', namespace: 'b' },
      spec,
    })
    expect(() => model.validate()).not.toThrow()
    const broken = new PipelineModel({ metadata: { name: 'a' }, spec: { ...spec, sinks: [] } })
    expect(() => broken.validate()).toThrow('Pipeline: `spec.sinks` needs at least one entry.')
  })
})
