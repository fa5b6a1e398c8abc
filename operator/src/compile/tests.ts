// The tests in a Pipeline, in the form of an agent's configuration.

import { closest } from '@penstock/agent/errors'
import { isTable } from '@penstock/agent/schema'
import type { Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { PathKey } from './resources.ts'
import type { Scope } from './scope.ts'
import { callViolations } from './tenancy.ts'

export function testsOf(scope: Scope, spec: Table, report: CompileReport): Table[] {
  const tests = spec['tests']
  if (!Array.isArray(tests)) {
    const needed = scope.options.policy?.tests?.required === true && !scope.isCluster
    if (needed && Array.isArray(spec['transforms']) && spec['transforms'].length > 0) {
      report.error(scope.pipeline, ['spec', 'tests'], 'The TenantPolicy requires `tests` in Pipelines with transforms')
    }
    return []
  }
  const names = new Set<unknown>()
  return tests.flatMap((test, index) => {
    const path: PathKey[] = ['spec', 'tests', index]
    if (!isTable(test) || typeof test['name'] !== 'string') return []
    if (names.has(test['name']))
      report.error(scope.pipeline, [...path, 'name'], `The name "${test['name']}" is used twice`)
    names.add(test['name'])
    const known = transformsOf(spec)
    const unknown = unknownNames(test, known)
    for (const { path: below, name } of unknown) {
      const near = closest(name, known)
      const meant = near === undefined ? '' : ` Did you mean \`${near}\`?`
      const help = known.length === 0 ? 'A test needs a transform.' : `Transforms: ${known.join(', ')}.${meant}`
      report.error(scope.pipeline, [...path, ...below], `No transform of this Pipeline is named "${name}"`, help)
    }
    return unknown.length > 0 ? [] : testOf(scope, test, path, report)
  })
}

function transformsOf(spec: Table): string[] {
  const transforms = Array.isArray(spec['transforms']) ? spec['transforms'] : []
  return transforms.flatMap((each) => (isTable(each) && typeof each['name'] === 'string' ? [each['name']] : []))
}

/** The places of a test that name no transform. `at` may also name a port, such as `parse.dropped`. */
function unknownNames(test: Table, known: readonly string[]): { readonly path: PathKey[]; readonly name: string }[] {
  const checks = Array.isArray(test['expect']) ? test['expect'] : []
  const found = checks.flatMap((check, index) => {
    const at = isTable(check) ? check['at'] : undefined
    if (typeof at !== 'string' || known.includes(at.split('.')[0] ?? '')) return []
    return [{ path: ['expect', index, 'at'], name: at }]
  })
  const unknown = inputsOf(test).flatMap(({ event, place }) => {
    const name = String(event['insertAt'])
    return known.includes(name) ? [] : [{ path: [...place, 'insertAt'], name }]
  })
  return [...unknown, ...found]
}

/** The events of a test with their transforms, and the place of each in the test. */
function inputsOf(
  test: Table,
): readonly { readonly event: Table; readonly place: PathKey[]; readonly at: PathKey[] }[] {
  const { inputs, input, insertAt } = test
  if (!Array.isArray(inputs))
    return typeof insertAt === 'string'
      ? [{ event: { ...(isTable(input) ? input : {}), insertAt }, place: [], at: ['input'] }]
      : []
  return inputs.map((event, index) => {
    const place = ['inputs', index]
    return { event: isTable(event) ? event : {}, place, at: place }
  })
}

/** The forms of an event in a test. */
const forms = ['raw', 'log', 'program']

function testOf(scope: Scope, test: Table, path: PathKey[], report: CompileReport): Table[] {
  const { input, insertAt: place } = test
  const isSingle = input !== undefined && place !== undefined
  if ((test['inputs'] === undefined) !== isSingle || (input !== undefined) !== (place !== undefined)) {
    report.error(scope.pipeline, path, 'A test needs either `insertAt` and `input`, or `inputs`')
    return []
  }
  const forbidCalls = (program: unknown, below: PathKey[]) => {
    if (typeof program === 'string' && !scope.isCluster && !scope.options.ownMachine)
      report.forbid(scope.pipeline, [...path, ...below], callViolations(program, []))
  }
  const inputs = inputsOf(test)
  const [wrong] = inputs.filter(({ event }) => forms.filter((form) => event[form] !== undefined).length !== 1)
  if (wrong !== undefined) {
    report.error(scope.pipeline, [...path, ...wrong.at], 'An input needs one of `raw`, `log` and `program`')
    return []
  }
  if (inputs.length === 0) return []
  const events = inputs.map(({ event, at }): Table => {
    const insertAt = scope.idOf(String(event['insertAt']))
    const { raw, log, program } = event
    if (raw !== undefined) return { insert_at: insertAt, type: 'raw', value: raw }
    if (log !== undefined) return { insert_at: insertAt, type: 'log', log_fields: log }
    forbidCalls(program, [...at, 'program'])
    return { insert_at: insertAt, type: 'vrl', source: program }
  })
  const outputs: Table[] = []
  const silent: string[] = []
  const checks = Array.isArray(test['expect']) ? test['expect'] : []
  for (const [index, check] of checks.entries()) {
    if (!isTable(check) || typeof check['at'] !== 'string') continue
    const { count, assert } = check
    forbidCalls(assert, ['expect', index, 'assert'])
    if (count === 0) {
      silent.push(scope.idOf(check['at']))
      continue
    }
    outputs.push({
      extract_from: scope.idOf(check['at']),
      ...(assert === undefined ? {} : { conditions: [{ type: 'vrl', source: assert }] }),
      ...(count === undefined ? {} : { expected_event_count: count }),
    })
  }
  const name = `${scope.id}: ${test['name']}`
  return [{ name, inputs: events, outputs, ...(silent.length === 0 ? {} : { no_outputs_from: silent }) }]
}
