// Each row of the tables of the requirements is in the data that the other tests of this folder hold against the program: a row that was
// left out, or typed in differently, fails here. Texts that describe a default instead of naming it are not compared.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { ComponentKind } from '../../component.ts'

type Row = Readonly<Record<string, string>>

interface Table {
  /** Headings and names of groups above it: the section, then the group. */
  readonly section: string
  readonly group: string
  readonly rows: readonly Row[]
}

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const data = <T>(name: string): T => JSON.parse(read(name)) as T

interface Known {
  readonly option: string
  readonly type: string
  readonly required: boolean
  readonly default?: unknown
}

const options = data<Readonly<Record<string, { kind: ComponentKind; options: readonly Known[] }>>>('options.json')
const tables = tablesIn(read('tables.md'))

function tablesIn(text: string): Table[] {
  const found: (Table & { rows: Row[] })[] = []
  let section = ''
  let group = ''
  let columns: string[] | undefined
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) {
      section = line.replace(/^#+ /, '')
      group = ''
    } else if (line.startsWith('**')) group = line.replaceAll('*', '')
    const cells = line.startsWith('|') ? cellsOf(line) : undefined
    if (cells === undefined) columns = undefined
    else if (columns === undefined) {
      columns = cells
      found.push({ section, group, rows: [] })
    } else if (!/^-+$/.test(cells[0] ?? '')) {
      const row = Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? '']))
      found.at(-1)?.rows.push(row)
    }
  }
  return found
}

function cellsOf(line: string): string[] {
  const cells = line.slice(1, line.lastIndexOf('|')).split('|')
  return cells.map((cell) => cell.trim())
}

const rowsOf = (section: string, group = '') =>
  tables.filter((table) => table.section === section && table.group === group).flatMap(({ rows }) => rows)

/** The words of code in a text. */
const wordsOf = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, word]) => word as string)

// --- options ---

/** `proxy, tls` are two options, and `pod.<name>` is as many as its rule names. A description is none. */
function namesOf(row: Row): string[] {
  const text = row['Option'] ?? row['Field'] ?? ''
  if (!text.includes('<name>')) return text.split(', ').filter((name) => !name.includes(' '))
  const [, listed = ''] = /each of: (.*)$/.exec(row['Rule'] ?? '') ?? []
  return listed.split(', ').map((name) => text.replace('<name>', name.replace(/\W.*$/, '')))
}

/** In the words of `options.json`; undefined if the table leaves it open. */
function typeOf(cell: string): string | undefined {
  if (cell.startsWith('enum')) {
    const words = wordsOf(cell)
    if (words.length === 0) return undefined
    return `enum ${words.toSorted().join(' ')}${cell.includes('or uint') ? ' | uint' : ''}`
  }
  if (cell.startsWith('[')) return `list ${typeOf(cell.slice(1, -1))}`
  if (cell.startsWith('map')) return 'map template'
  if (cell === 'string template') return 'template'
  const [word = ''] = cell.split(/[ ,]/)
  return word.replace(/s$/, '')
}

const sorted = (type: string) =>
  type
    .split(' | ')
    .map((one) => (one.startsWith('enum ') ? `enum ${one.slice(5).split(' ').toSorted().join(' ')}` : one))
    .join(' | ')

/** A default that is a value; undefined if the cell describes one, or names none. */
function defaultOf(cell: string, type: string): unknown {
  const isCode = cell.replaceAll(/`[^`]*`/g, '').replaceAll(/[, ]/g, '') === ''
  const text = isCode ? wordsOf(cell).join(', ') : cell
  if (text === '' || text === 'none' || text.includes('${') || (!isCode && /[a-z`] /.test(text))) return undefined
  if (type.startsWith('list')) return text.split(', ').map((one) => (type === 'list float' ? Number(one) : one))
  if (type === 'bool') return text === 'true'
  const isNumber = type === 'float' || (type.includes('uint') && /^[\d.e+]+$/.test(text))
  return isNumber ? Number(text) : text
}

/** Where the text around the tables says otherwise than a row. */
const apart: Readonly<Record<string, string>> = {
  'logsvc_a_old.request.concurrency': 'Its section says: uint or `adaptive`.',
  'search_engine.encoding.timestamp_format': 'The rule of the shared row adds four words for this sink.',
  'tsdb_metrics.tags': 'Its row lists the types of five names one by one; this one is a map.',
}

/** Whether a shared row is of a component: those about codecs are not of all, and the rule of some names the others. */
function applies(row: Row, component: string): boolean {
  const [name = ''] = namesOf(row)
  const named = /\(listed for (\w+)\)/.exec(row['Rule'] ?? '')?.[1]
  if (named !== undefined) return component === named
  const own = rowsOf(component)
    .map((each) => `${namesOf(each)} ${each['Rule']}`)
    .join('\n')
  if (/^encoding\.(codec|metric_tag_values)$/.test(name)) return own.includes('codec')
  return !/^encoding\.(avro|csv)\./.test(name) || own.includes('codec` required')
}

function* differences(component: string, row: Row): Generator<string> {
  const known = options[component]?.options ?? []
  for (const name of namesOf(row)) {
    if (Object.hasOwn(apart, `${component}.${name}`)) continue
    const found = known.find(({ option }) => option === name)
    const place = `${component}.${name}`
    if (found === undefined) {
      yield `${place}: missing`
      continue
    }
    const type = typeOf(row['Type'] ?? '')
    if (type !== undefined && sorted(found.type) !== type) yield `${place}: type ${type}, found ${found.type}`
    const required = row['Req'] ?? row['Required']
    if (required !== undefined && (required === 'yes') !== found.required) yield `${place}: required ${required}`
    const value =
      row['Default'] === undefined
        ? undefined
        : defaultOf(row['Default'].replace('<name>', name.split('.').at(-1) ?? ''), type ?? '')
    if (value !== undefined && JSON.stringify(value) !== JSON.stringify(found.default))
      yield `${place}: default ${JSON.stringify(value)}, found ${JSON.stringify(found.default)}`
  }
}

test('each option of each component is in the data as its table says', () => {
  const components = Object.keys(options).filter((component) => rowsOf(component).length > 0)
  const rows = components.flatMap((component) => rowsOf(component).map((row) => [component, row] as const))
  expect(rows.flatMap(([component, row]) => [...differences(component, row)])).toEqual([])
  // Every component but two, whose options are stated in the text: `logsvc_a_old`, and the transforms.
  expect(components.length).toBe(Object.keys(options).length - 3)
  expect(rows.length).toBeGreaterThan(150)
})

test('each shared option is in the data of each component that has its group', () => {
  const groups = ['acknowledgements', 'buffer', 'proxy', 'request', 'tls', 'encoding']
  const shared = [
    ...groups.flatMap((group) => rowsOf('Shared sink option groups', group)),
    ...rowsOf('Shared source option groups'),
  ]
  const wrong = Object.entries(options).flatMap(([component, { options: known }]) => {
    const own = new Set(rowsOf(component).flatMap(namesOf))
    return shared
      .filter((row) => namesOf(row).some((name) => known.some(({ option }) => option === name.split('.')[0])))
      .filter((row) => applies(row, component) && !namesOf(row).some((name) => own.has(name)))
      .flatMap((row) => [...differences(component, row)])
  })
  expect(shared.length).toBeGreaterThan(35)
  expect(wrong).toEqual([])
})

test('each sink has the groups of all sinks', () => {
  const groups = ['acknowledgements', 'buffer', 'healthcheck', 'proxy', 'request']
  const wrong = Object.entries(options).flatMap(([component, { kind, options: known }]) =>
    groups
      .filter((group) => kind === 'sink' && !known.some(({ option }) => option === group))
      .map((group) => `${component}.${group}: missing`),
  )
  expect(wrong).toEqual([])
})

test('each limit of a batch is in the data', () => {
  const wrong = rowsOf('Limits').flatMap(({ Sink: component = '', ...limits }) => {
    const known = options[component]?.options ?? []
    return Object.entries(limits).flatMap(([option, limit]) => {
      const found = known.find((one) => one.option === option)?.default
      return limit === '-' || Number(limit) === found ? [] : [`${component}.${option}: ${limit}, found ${found}`]
    })
  })
  expect(rowsOf('Limits').length).toBeGreaterThan(10)
  expect(wrong).toEqual([])
})

test('the component types, metrics and errors are in the data', () => {
  const types = rowsOf('Component types').map((row) => [row['Type id'], row['Kind']])
  expect(types).toEqual(expect.arrayContaining(Object.entries(options).map(([type, { kind }]) => [type, kind])))
  expect(types.length).toBe(Object.keys(options).length)

  const metrics = data<readonly { metric: string; type?: string; tags: readonly string[] }[]>('metrics.json')
  for (const { Metric: metric, Type: type, 'Meaning and extra tags': meaning = '' } of rowsOf(
    'Internal telemetry metrics',
  )) {
    const found = metrics.find((one) => one.metric === metric)
    expect(found, metric).toMatchObject({ type })
    const [, listed = ''] = /tags? (.*)$/.exec(meaning) ?? []
    expect(found?.tags, metric).toEqual(expect.arrayContaining(wordsOf(listed)))
  }

  const errors = data<readonly { condition: string }[]>('errors.json').map(({ condition }) => condition)
  expect(errors.toSorted()).toEqual(
    rowsOf('Errors')
      .map((row) => row['Condition'] ?? '')
      .toSorted(),
  )
})
