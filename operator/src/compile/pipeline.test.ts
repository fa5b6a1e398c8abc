import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { compilePipeline } from './pipeline.ts'
import { loadResources } from './resources.ts'

/** Compiles the first Pipeline of the text; problems as `line:column message`. */
function compile(text: string, ownMachine = false) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-compile-'))
  try {
    writeFileSync(join(folder, 'all.yaml'), text)
    const { resources, problems } = loadResources([folder])
    const pipeline = resources.find((resource) => resource.kind === 'Pipeline')
    const compiled = pipeline === undefined ? undefined : compilePipeline(pipeline, resources, { ownMachine })
    const all = [...problems, ...(compiled?.problems ?? [])]
    return {
      config: compiled?.config,
      problems: all.map((problem) => `${problem.line}:${problem.column} ${problem.message}`),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const pipeline = (spec: string) => `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: checkout, namespace: shop }
spec:
${spec.replace(/^/gm, '  ')}
`

test('inputs that are left out lead from the sources through each transform to the sinks', () => {
  const { config, problems } = compile(
    pipeline(`sources:
  - { name: app, type: orchestrator_logs }
  - { name: demo, type: demo_logs, config: { format: json } }
transforms:
  - { name: parse, type: remap, config: { source: '.a = 1' } }
  - { name: keep, type: filter, config: { condition: 'true' } }
sinks:
  - { name: out, type: http, config: { uri: 'http://x' } }
  - { name: raw, type: http, inputs: ['*'], config: { uri: 'http://y' } }`),
  )
  expect(problems).toEqual([])
  expect(config?.transforms['shop/checkout/parse']?.['inputs']).toEqual(['shop/checkout/app', 'shop/checkout/demo'])
  expect(config?.transforms['shop/checkout/keep']?.['inputs']).toEqual(['shop/checkout/parse'])
  expect(config?.sinks['shop/checkout/out']).toEqual({ type: 'http', uri: 'http://x', inputs: ['shop/checkout/keep'] })
  expect(config?.sinks['shop/checkout/raw']?.['inputs']).toEqual([
    'shop/checkout/app',
    'shop/checkout/demo',
    'shop/checkout/parse',
    'shop/checkout/keep',
  ])
})

test('pod logs are limited to the namespace of the Pipeline, selectors become label and path filters', () => {
  const { config, problems } = compile(
    pipeline(`sources:
  - name: app
    type: orchestrator_logs
    selector:
      pods:
        matchLabels: { part-of: checkout }
        matchExpressions: [{ key: logs, operator: NotIn, values: ["off", "never"] }]
      containers: { exclude: [proxy] }
    multiline: { preset: python }
sinks: [{ name: out, type: blackhole }]`),
  )
  expect(problems).toEqual([])
  expect(config?.sources['shop/checkout/app']).toEqual({
    type: 'orchestrator_logs',
    extra_field_selector: 'metadata.namespace=shop',
    extra_label_selector: 'logs notin (never,off),part-of=checkout',
    exclude_paths_glob_patterns: ['**/*.gz', '**/*.tmp', '**/proxy/**'],
    multiline: {
      start_pattern: '^Traceback \\(most recent call last\\):',
      condition_pattern: '^\\s',
      mode: 'continue_past',
      timeout_ms: 1000,
    },
  })
})

test('references, values of Secrets and aliases are resolved within the namespace', () => {
  const { config, problems } = compile(`${pipeline(`secrets: [{ alias: es, secretName: creds }]
sources: [{ name: app, ref: { kind: Source, name: java } }]
sinks: [{ name: out, ref: { kind: Sink, name: search } }]`)}---
apiVersion: penstock.dev/v1alpha1
kind: Source
metadata: { name: java, namespace: shop }
spec: { type: orchestrator_logs, config: { max_line_bytes: 65536 } }
---
apiVersion: penstock.dev/v1alpha1
kind: Sink
metadata: { name: search, namespace: shop }
spec:
  type: search_engine
  config:
    auth: { strategy: basic, user: 'SECRET[es.user]', password: { valueFrom: { secretKeyRef: { name: creds, key: pass } } } }
---
apiVersion: v1
kind: Secret
metadata: { name: creds, namespace: shop }
stringData: { user: 'a"$b' }
data: { pass: ${Buffer.from('p\n$w').toString('base64')} }
`)
  expect(problems).toEqual([])
  expect(config?.sinks['shop/checkout/out']?.['auth']).toEqual({ strategy: 'basic', user: 'a"$b', password: 'p\n$w' })
  expect(config?.sources['shop/checkout/app']?.['max_line_bytes']).toBe(65536)
})

test('tests of a Pipeline become unit tests of the configuration', () => {
  const { config } = compile(
    pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms: [{ name: parse, type: remap, config: { source: '.a = 1' } }]
sinks: [{ name: out, type: blackhole }]
tests:
  - { name: t, insertAt: parse, input: { raw: x }, expect: [{ at: parse, assert: '.a == 1' }, { at: parse, count: 0 }] }`),
  )
  expect(config?.tests).toEqual([
    {
      name: 'shop/checkout: t',
      inputs: [{ insert_at: 'shop/checkout/parse', type: 'raw', value: 'x' }],
      outputs: [{ extract_from: 'shop/checkout/parse', conditions: [{ type: 'vrl', source: '.a == 1' }] }],
      no_outputs_from: ['shop/checkout/parse'],
    },
  ])
})

test('every problem is told at its place', () => {
  const { problems } = compile(
    pipeline(`source: []
limits: { pipeline: { bytesPerSecond: 1Mi } }
sources:
  - { name: App, type: orchestrator_logs }
  - { name: two, type: orchestrator_logs, config: { logs_dir: /etc } }
  - { name: two, type: stdin }
sinks:
  - { name: out, ref: { kind: Sink, name: nowhere } }
  - { name: screen, type: console, inputs: [tow] }
  - { name: both, type: http, ref: { kind: Sink, name: x } }`),
  )
  expect(problems).toEqual([
    '5:3 unknown field `source`, expected `mode`, `suspend`, `secrets`, `sources`, `transforms`, `sinks`, `tests`, `limits`, `onError`',
    '6:3 `spec.limits` is not available in this version',
    '8:9 `name` must match ^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$; found "App"',
    '10:9 The name "two" is used twice',
    '9:55 `logs_dir` is not allowed in a namespaced resource',
    '12:39 Sink "nowhere" is not in namespace "shop"',
    '13:23 Type `console` is not allowed in a namespaced resource',
    '13:47 No source or transform of this Pipeline is named "tow"',
    '14:7 "both" needs either `type` with `config`, or `ref`',
  ])
})

test.each([
  [
    'apiVersion: v1\nkind: Pipelin\nmetadata: { name: x }',
    '2:1 `kind` must be one of Pipeline, Source, Sink, Secret, ConfigMap; found "Pipelin"',
  ],
  [
    'apiVersion: v1\nkind: Sink\nmetadata: { name: x }',
    '1:1 `apiVersion` of a Sink must be `penstock.dev/v1alpha1`; found "v1"',
  ],
  ['a: [', '1:5 Flow sequence in block collection must be sufficiently indented and end with a ]'],
])('%j is refused', (text, problem) => {
  expect(compile(text).problems).toContain(problem)
})
