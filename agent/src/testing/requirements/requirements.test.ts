// Compares the requirement documents, which `documents` contains verbatim, with the declarations of components: each row of their tables
// must match, or be in deviations.json with a reason. text.json contains options that only a sentence states. errors.json names a test,
// and the metric that counts the error, for each row of the error table.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { exitCodes } from '../../command-line/exit-codes.ts'
import type { ComponentKind } from '../../component.ts'
import { optionsOf } from '../../config/component-options.ts'
import { findComponent } from '../../registry.ts'
import { isRequired, type Option } from '../../schema/options.ts'
import { type Schema, schemaBelow, variantsOf } from '../../schema/walk.ts'
import { type MetricDefinition, metricTable } from '../../telemetry/metric-table.ts'
import {
  documents,
  namesOf,
  notShown,
  rowsOf,
  type StatedOption,
  statedComponents,
  statedCredentials,
  text,
  unusedDefaults,
  wordsOf,
} from './stated-options.ts'

interface Deviation {
  /** Type of the component, or `*`. */
  readonly component: string
  readonly option: string
  readonly differs: 'missing' | 'type' | 'required' | 'default'
  readonly reason: string
}

const here = fileURLToPath(new URL('.', import.meta.url))
const read = <T>(name: string): T => JSON.parse(readFileSync(join(here, name), 'utf8')) as T
const deviations = read<readonly Deviation[]>('deviations.json')

test('all options of the tables are declared as specified, or are deviations with a reason', () => {
  const differences: string[] = []
  const used = new Set<Deviation>()
  for (const { type: component, kind, options } of statedComponents()) {
    const declaration = findComponent(kind, component)
    if (declaration === undefined) throw new Error(`There is no ${kind} ${component}.`)
    const { schema } = optionsOf(declaration)
    for (const row of options) {
      for (const [differs, found] of differencesOf(row, schema)) {
        const deviation = deviations.find(
          (one) =>
            (one.component === '*' || one.component === component) &&
            one.option === row.option &&
            one.differs === differs,
        )
        if (deviation === undefined) differences.push(`${component}.${row.option}: ${differs}, found ${found}`)
        else used.add(deviation)
      }
    }
  }
  expect(differences).toEqual([])
  // The list must not contain obsolete deviations.
  expect(deviations.filter((one) => !used.has(one))).toEqual([])
  expect(deviations.filter(({ reason }) => reason.length < 20)).toEqual([])
})

function* differencesOf(row: StatedOption, root: Schema): Generator<[Deviation['differs'], string]> {
  let schema: Schema | undefined = root
  for (const segment of row.option.split('.')) schema = schema === undefined ? undefined : schemaBelow(schema, segment)
  if (schema === undefined) {
    yield ['missing', 'nothing']
    return
  }
  const option = schema
  if (row.type?.split(' | ').every((type) => fits(option, type)) === false)
    yield ['type', JSON.stringify(shape(option))]
  const required = isRequired(option as Option<unknown>)
  if (required !== row.required) yield ['required', String(required)]
  if (row.type === 'object') return
  const expected = row.default
  const given = option['default']
  // The tables do not show the default, or refer to the vendor's own.
  if (expected === notShown) return
  if (JSON.stringify(given) !== JSON.stringify(expected)) yield ['default', JSON.stringify(given) ?? 'none']
}

/** Whether the option, or an alternative of it, has the type in the table. */
function fits(schema: Schema, type: string): boolean {
  const [word, ...rest] = type.split(' ')
  if (word === 'object' && schema['discriminator'] !== undefined) return true
  const variants = variantsOf(schema)
  if (variants !== undefined) return variants.some((variant) => fits(variant, type))
  const inner = rest.join(' ')
  switch (word) {
    case 'object':
      return schema['type'] === 'object'
    case 'list':
      return schema['type'] === 'array' && fits((schema['items'] ?? {}) as Schema, inner)
    case 'map':
      return schema['type'] === 'object' && fits((schema['additionalProperties'] ?? {}) as Schema, inner)
    case 'template':
      return schema['type'] === 'string' && schema['format'] === 'template'
    case 'string':
      return schema['type'] === 'string' && schema['format'] !== 'template' && schema['enum'] === undefined
    case 'uint':
      return schema['type'] === 'integer' && (schema['minimum'] as number) >= 0
    case 'float':
      return schema['type'] === 'number'
    case 'bool':
      return schema['type'] === 'boolean'
    case 'enum': {
      if (rest.length === 0) return Array.isArray(schema['enum'])
      if (typeof schema['const'] === 'string') return rest.includes(schema['const'])
      const extensions = (schema['x-extensions'] ?? []) as readonly string[]
      const words = ((schema['enum'] ?? []) as readonly string[]).filter((each) => !extensions.includes(each))
      return words.toSorted().join() === rest.toSorted().join()
    }
    default:
      throw new Error(`The tables have no type ${word}.`)
  }
}

function shape({ type, format, enum: words, minimum }: Schema): object {
  return { type, format, enum: words, minimum }
}

test('all metrics of the documents exist, with their types and tags', () => {
  let tags: string[] = []
  const rows = rowsOf('Internal telemetry metrics').map((row) => {
    const meaning = row['Meaning and extra tags'] ?? ''
    if (!meaning.includes('same origin tags')) tags = wordsOf(/tags? (.*)$/.exec(meaning)?.[1] ?? '')
    return { metric: row['Metric'] ?? '', type: row['Type'], tags }
  })
  const named = text.metrics.flatMap(({ metrics, type }) => metrics.map((metric) => ({ metric, type, tags: [] })))
  const wrong = [...rows, ...named].flatMap(({ metric, type, tags }) => {
    const definition = (metricTable as Readonly<Record<string, MetricDefinition>>)[metric]
    if (definition === undefined) return [`${metric}: missing`]
    const missing = tags.filter((tag) => !definition.labels.includes(tag))
    return [
      ...(type === undefined || definition.type === type ? [] : [`${metric}: is a ${definition.type}`]),
      ...missing.map((tag) => `${metric}: has no tag ${tag}`),
    ]
  })
  expect(wrong).toEqual([])
  expect(rows.length + named.length).toBeGreaterThan(30)
})

test('each row of the error table has a test', () => {
  const errors = read<readonly { condition: string; metric?: string; file: string; test: string }[]>('errors.json')
  const agent = join(here, '../..')
  const wrong = errors.flatMap(({ condition, metric, file, test: title }) => {
    const path = join(agent, file)
    if (!existsSync(path)) return [`${condition}: there is no ${file}`]
    const isShown = readFileSync(path, 'utf8').includes(title)
    return [
      ...(isShown ? [] : [`${condition}: ${file} has no test "${title}"`]),
      ...(metric === undefined || Object.hasOwn(metricTable, metric) ? [] : [`${condition}: no metric ${metric}`]),
    ]
  })
  expect(wrong).toEqual([])
  const stated = rowsOf('Errors').map((row) => row['Condition'] ?? '')
  expect(errors.map(({ condition }) => condition).toSorted()).toEqual(stated.toSorted())
})

test('text.json quotes sentences of the documents, and explains only defaults that need it', () => {
  const all = documents.join('\n')
  const sentences = [...text.statements, ...text.metrics].map(({ says }) => says)
  expect(sentences.filter((sentence) => !all.includes(sentence))).toEqual([])
  statedComponents()
  expect(unusedDefaults()).toEqual([])
})

test('all rows of option tables are checked', () => {
  const components = statedComponents()
  const names = new Set(components.flatMap(({ options }) => options.map(({ option }) => option)))
  const shared = ['acknowledgements', 'buffer', 'proxy', 'request', 'tls', 'encoding'].flatMap((group) =>
    rowsOf('Shared sink option groups', group),
  )
  const sources = rowsOf('Shared source option groups')
  expect(shared.length).toBeGreaterThan(30)
  expect(sources.length).toBeGreaterThan(5)
  expect([...shared, ...sources].flatMap(namesOf).filter((name) => !names.has(name))).toEqual([])
  const lost = components.flatMap(({ type, options }) => {
    const own = rowsOf(type).flatMap(namesOf)
    return own.filter((name) => !options.some(({ option }) => option === name)).map((name) => `${type}.${name}`)
  })
  expect(lost).toEqual([])
  expect(components.reduce((sum, { options }) => sum + options.length, 0)).toBeGreaterThan(700)
})

test('component types acknowledge and emit events as in the table of components', () => {
  const rows = rowsOf('Component types')
  const wrong = rows.flatMap((row) => {
    const [type = '', kind, acks] = [row['Type id'], row['Kind'] as ComponentKind, row['Acks']]
    const declaration = findComponent(kind, type)
    if (declaration === undefined) return [`${type}: missing`]
    const hasOption = schemaBelow(optionsOf(declaration).schema, 'acknowledgements') !== undefined
    const acknowledges = declaration.kind === 'source' ? declaration.acknowledges : hasOption
    const output = /output (log|metric)/.exec(row['Notes'] ?? '')?.[1]
    const outputs = 'outputs' in declaration ? declaration.outputs : []
    return [
      ...(acks === '-' || acknowledges === (acks === 'yes') ? [] : [`${type}: acks is not ${acks}`]),
      ...(output === undefined || outputs?.join() === output ? [] : [`${type}: emits ${outputs?.join()}`]),
    ]
  })
  expect(wrong).toEqual([])
  expect(rows.length).toBeGreaterThan(20)
})

test('all credentials in the authentication table are options, values of options, or variables', () => {
  const wrong = statedCredentials().flatMap(([type, words]) => {
    const declaration = findComponent('sink', type) ?? findComponent('source', type)
    if (declaration === undefined) return [`${type}: missing`]
    const { schema } = optionsOf(declaration)
    const below = (option: string) =>
      option
        .split('.')
        .reduce<Schema | undefined>((node, segment) => (node === undefined ? node : schemaBelow(node, segment)), schema)
    // A nested option is named alone (`issuer_url`); values and schemes are not options.
    const isKnown = (word: string) =>
      word === 'auth.*' || below(word) !== undefined || below(`auth.oauth2.${word}`) !== undefined
    const values = new Set(['basic', 'bearer', 'aws', 'token', 'amqps'])
    return words
      .filter((word) => !isKnown(word) && !values.has(word) && !word.startsWith('CLOUD_'))
      .map((word) => `${type}: ${word}`)
  })
  expect(statedCredentials().length).toBeGreaterThan(15)
  expect(wrong).toEqual([])
})

test('batch limits in the row of a component match the table of limits', () => {
  const wrong = rowsOf('Limits').flatMap((limits) => {
    const component = limits['Sink'] ?? ''
    const rule = rowsOf(component).find((row) => namesOf(row).includes('batch'))?.['Rule'] ?? ''
    const statedLimits = [...rule.matchAll(/(\w+) ([\d.e+]+)/g)].filter(([, name]) => `batch.${name}` in limits)
    return statedLimits
      .filter(([, name, value]) => limits[`batch.${name}`] !== value)
      .map(([what]) => `${component}: ${what}`)
  })
  expect(wrong).toEqual([])
})

test('exit codes match the documents', () => {
  expect(exitCodes).toEqual(read('exit-codes.json'))
})
