// Options as stated in the requirement documents: the rows of their tables, with shared groups expanded for components that list them, and
// the few options that only the surrounding text states, which text.json contains together with the sentence.

import { readdirSync, readFileSync } from 'node:fs'
import type { ComponentKind } from '../../component.ts'

export type Cells = Readonly<Record<string, string>>

interface Table {
  /** The heading above the row, and the group in bold. */
  readonly section: string
  readonly group: string
  readonly rows: Cells[]
}

/** Marks a default that the documents do not show, so that any default is allowed. */
export const notShown = '(not shown)'

export interface StatedOption {
  readonly option: string
  /** Words such as `uint`, `list template`, `enum a b`, with `|` between alternatives. Undefined if the documents do not specify the type. */
  readonly type?: string | undefined
  readonly required: boolean
  readonly default?: unknown
}

export interface StatedComponent {
  readonly type: string
  readonly kind: ComponentKind
  readonly options: readonly StatedOption[]
}

/** Statements outside of the tables. */
interface TextStatement {
  readonly says: string
  readonly components: readonly string[]
  /** The component also has the rows of this component. */
  readonly like?: string
  /** Shared groups of the component. */
  readonly groups?: readonly string[]
  readonly options?: readonly StatedOption[]
}

interface TextData {
  readonly statements: readonly TextStatement[]
  /** Defaults that cells describe in words: the value, or null if the program computes it. */
  readonly defaults: readonly { readonly cell: string; readonly component?: string; readonly value?: unknown }[]
  readonly metrics: readonly { readonly says: string; readonly metrics: readonly string[]; readonly type?: string }[]
}

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')

export const documents = readdirSync(new URL('documents', import.meta.url))
  .sort()
  .map((name) => read(`documents/${name}`))

export const text = JSON.parse(read('text.json')) as TextData

// --- tables ---

const tables = documents.flatMap(tablesIn)

function tablesIn(document: string): Table[] {
  const found: Table[] = []
  let section = ''
  let group = ''
  let columns: string[] | undefined
  for (const line of document.split('\n')) {
    const title = /^#+ (.*)/.exec(line)?.[1]
    if (title !== undefined) {
      section = title
      group = ''
    }
    group = /^\*\*(\w+)\*\*/.exec(line)?.[1] ?? group
    const cells = line.startsWith('|') ? cellsOf(line) : undefined
    if (cells === undefined) columns = undefined
    else if (columns === undefined) {
      columns = cells
      found.push({ section, group, rows: [] })
    } else if (!/^-+$/.test(cells[0] ?? '')) {
      found.at(-1)?.rows.push(Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? ''])))
    }
  }
  return found
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, line.lastIndexOf('|'))
    .split('|')
    .map((cell) => cell.trim())
}

export const rowsOf = (section: string, group = ''): readonly Cells[] =>
  tables.filter((table) => table.section === section && table.group === group).flatMap(({ rows }) => rows)

/** Code words in a text. */
export const wordsOf = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word as string)

// --- cells ---

/** `proxy, tls` are two options, and `pod.<name>` is one option per name in its rule. A name with a space is a description, not a name. */
export function namesOf(row: Cells): string[] {
  const cell = row['Option'] ?? row['Field'] ?? ''
  if (!cell.includes('<name>')) return cell.split(', ').filter((name) => !name.includes(' '))
  const [, listed = ''] = /each of: (.*)$/.exec(row['Rule'] ?? '') ?? []
  return listed.split(', ').map((name) => cell.replace('<name>', name.replace(/\W.*$/, '')))
}

/** The type of a row. The rule may list the words of an enumeration. */
function typeOf(cell: string, rule = ''): string | undefined {
  if (cell.startsWith('enum')) {
    const words = wordsOf(cell.includes('`') ? cell : (/^`[^.]*/.exec(rule)?.[0] ?? ''))
    if (words.length === 0) return cell === 'enum' ? 'enum' : undefined
    return `enum ${words.join(' ')}${cell.includes('or uint') ? ' | uint' : ''}`
  }
  if (cell.startsWith('[')) return `list ${typeOf(cell.slice(1, -1))}`
  if (cell.startsWith('map')) return cell === 'map' ? 'map string' : 'map template'
  if (cell === 'string template') return 'template'
  const [word = ''] = cell.split(/[ ,]/)
  return word.replace(/s$/, '')
}

const described = new Set<string>()
/** Defaults that are described outside of the cells. */
export const unusedDefaults = () => text.defaults.filter(({ cell }) => !described.has(cell)).map(({ cell }) => cell)

function defaultOf(row: Cells, name: string, type: string | undefined, component: string): unknown {
  const rule = row['Rule'] ?? ''
  if (type === 'object') return undefined
  if (rule.includes('defaults: not shown')) return notShown
  const cell =
    row['Default']?.replace('<name>', name.split('.').at(-1) ?? '') ?? /^default (`\w+`);/.exec(rule)?.[1] ?? ''
  // `none` is a word of some enumerations.
  if (cell === 'none' && type?.startsWith('enum') === true && `${row['Type']} ${rule}`.includes('`none`')) return 'none'
  if (cell === 'none' || cell === '') return undefined
  const given = text.defaults.find((one) => one.cell === cell && (one.component ?? component) === component)
  if (given !== undefined) {
    described.add(cell)
    return given.value
  }
  if (cell.startsWith('vendor ') || cell.startsWith('the vendor ')) return notShown
  const isCode = cell.replaceAll(/`[^`]*`/g, '').replaceAll(/[, ]/g, '') === ''
  const value = isCode ? wordsOf(cell).join(', ') : cell
  if (!isCode && /\w \w/.test(value))
    throw new Error(`${component}.${name}: text.json does not explain the default "${cell}".`)
  if (type?.startsWith('list') === true) {
    return value.split(', ').map((one) => (type === 'list float' ? Number(one) : one))
  }
  if (type === 'bool') return value === 'true'
  return /\b(float|uint)\b/.test(type ?? '') && /^[\d.e+]+$/.test(value) ? Number(value) : value
}

function optionsIn(row: Cells, component: string): StatedOption[] {
  const names = namesOf(row)
  const types = (row['Type'] ?? '').split(', ')
  const isByName = names.length > 1 && types.length === names.length
  // If another option makes this one required, the declaration requires it in that variant.
  const isRequired = row['Req'] === 'yes' || /^required (when|with)\b/.test(row['Rule'] ?? '')
  return names.map((option, index) => {
    const type = typeOf(isByName ? (types[index] as string) : (row['Type'] ?? ''), row['Rule'])
    return { option, type, required: isRequired, default: defaultOf(row, option, type, component) }
  })
}

// --- components ---

const everySink = ['acknowledgements', 'buffer', 'healthcheck', 'proxy', 'request']
const inTables = ['acknowledgements', 'buffer', 'proxy', 'request', 'tls', 'encoding']

export function statedComponents(): StatedComponent[] {
  return rowsOf('Component types').map((row) => {
    const type = row['Type id'] ?? ''
    const kind = row['Kind'] as ComponentKind
    return { type, kind, options: [...optionsOf(type, kind).values()] }
  })
}

/** Options by name. The component's own table overrides the shared one, and the text overrides both. */
function optionsOf(component: string, kind: ComponentKind): Map<string, StatedOption> {
  const statements = text.statements.filter(({ components }) => components.includes(component))
  const options = new Map<string, StatedOption>()
  const add = (more: readonly StatedOption[]) => {
    for (const one of more) options.set(one.option, one)
  }
  for (const { like } of statements) if (like !== undefined) add([...optionsOf(like, kind).values()])
  const own = rowsOf(component)
  const groups = new Set([
    ...(kind === 'sink' ? everySink : []),
    ...own.flatMap(namesOf).map((name) => name.replace(/^encoding\..*/, 'encoding')),
    ...statements.flatMap((one) => one.groups ?? []),
  ])
  for (const group of groups) add(groupOptions(group, component, own))
  const ownOptions = own.flatMap((row) => optionsIn(row, component))
  add(ownOptions)
  for (const one of statements) add(one.options ?? [])
  for (const { option } of [...options.values()]) {
    const table = option.slice(0, Math.max(0, option.lastIndexOf('.')))
    if (table === '' || options.has(table)) continue
    const isRequired = ownOptions.some((one) => one.required && one.option.startsWith(`${table}.`))
    add([{ option: table, type: 'object', required: isRequired }])
  }
  return options
}

/** Options of a shared group. The row of a component may name a subset. */
function groupOptions(group: string, component: string, own: readonly Cells[]): StatedOption[] {
  if (group === 'healthcheck') return [{ option: 'healthcheck.enabled', type: 'bool', required: false, default: true }]
  if (group === 'batch') return batchOptions(component)
  const rule = own.find((row) => namesOf(row).includes(group))?.['Rule'] ?? ''
  const rows = inTables.includes(group)
    ? rowsOf('Shared sink option groups', group)
    : rowsOf('Shared source option groups').filter((row) => namesOf(row)[0]?.startsWith(`${group}.`))
  const applicable = rows.filter(
    (row) => (/\(listed for (\w+)\)/.exec(row['Rule'] ?? '')?.[1] ?? component) === component,
  )
  const options = applicable.flatMap((row) => optionsIn(row, component))
  return group === 'encoding' ? encodingOptions(options, rule, own) : options
}

/** Options of sinks with a codec, or the subset that the rule names. */
function encodingOptions(options: readonly StatedOption[], rule: string, own: readonly Cells[]): StatedOption[] {
  const codec = own.find((row) => namesOf(row).includes('encoding.codec'))
  const words = wordsOf(rule).map((word) => `encoding.${word}`)
  const takesAll = codec !== undefined || words.includes('encoding.codec')
  const stated = options.map((one) => ({
    ...one,
    required: one.required || (takesAll && one.option === 'encoding.codec'),
    ...(one.option === 'encoding.timestamp_format' ? { default: rule.includes('default') ? 'rfc3339' : notShown } : {}),
  }))
  // A sink with a subset of codecs does not have the options of other codecs.
  if (codec !== undefined) return stated.filter(({ option }) => !/^encoding\.\w+\./.test(option))
  return takesAll || rule === '' ? stated : stated.filter(({ option }) => words.includes(option))
}

function batchOptions(component: string): StatedOption[] {
  const limits = rowsOf('Limits').find((row) => row['Sink'] === component) ?? {}
  const types = { 'batch.max_bytes': 'uint', 'batch.max_events': 'uint', 'batch.timeout_secs': 'float' }
  return Object.entries(types).map(([option, type]) => {
    const limit = limits[option] ?? '-'
    return { option, type, required: false, default: limit === '-' ? notShown : Number(limit) }
  })
}

// --- other tables ---

/** Metrics that a source emits, as `name type`, followed by ` state` if they have a state. */
export function statedMetrics(source: string): string[] {
  const line = documents.flatMap((document) => document.split('\n')).find((one) => one.startsWith(`${source} outputs`))
  const list = line?.replace(/^[^:]*\boutputs(?: \([^)]*\))?: /, '') ?? ''
  return [...list.matchAll(/`(\w+)` \((\w+)(?:, tag `(\w+)`)?\)/g)]
    .map((match) => match.slice(1).filter(Boolean).join(' '))
    .toSorted()
}

/** The code words of the authentication table by component: options, values and variables. */
export function statedCredentials(): readonly (readonly [component: string, words: readonly string[]])[] {
  return rowsOf('Authentication').flatMap((row) =>
    (row['Component'] ?? '').split(', ').map((name) => [name, wordsOf(row['Mechanism and fields'] ?? '')] as const),
  )
}
