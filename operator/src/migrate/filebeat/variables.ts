// Variables in texts: references to settings of the same configuration, and environment variables with their defaults.

import { textLiteral } from '@penstock/agent/config'
import type { Gap } from '../draft.ts'
import { nodeRead, variableRead } from '../environment.ts'
import { type Mapping, type Part, Report } from '../loki/context.ts'
import { isNodeVariable } from '../loki/fields.ts'
import { below, isList, isMap, type Place, type Tree, textOf } from '../loki/tree.ts'

/** A variable in a text: an environment variable, a reference to a setting, or, with dots in its name, a value of a pod. */
interface Variable {
  readonly whole: string
  readonly name: string
  /** The text after the first colon, which may contain variables. */
  readonly byDefault: string | undefined
}

type Piece = string | Variable

/** The end of the variable that starts at a place; undefined if no brace closes it. */
function endOf(text: string, start: number): number | undefined {
  let open = 0
  for (let at = start; at < text.length; at++) {
    if (text.startsWith('${', at)) open++
    else if (text[at] === '}' && --open === 0) return at + 1
  }
  return undefined
}

/** The literal pieces and the variables of a text. */
function piecesOf(text: string): readonly Piece[] {
  const start = text.indexOf('${')
  const end = start < 0 ? undefined : endOf(text, start)
  if (end === undefined) return text === '' ? [] : [text]
  const whole = text.slice(start, end)
  const [name = '', ...rest] = whole.slice(2, -1).split(':')
  const variable = { whole, name, byDefault: rest.length === 0 ? undefined : rest.join(':') }
  return [...(start === 0 ? [] : [text.slice(0, start)]), variable, ...piecesOf(text.slice(end))]
}

/** The text with other texts in place of its variables. */
const replaced = (text: string, change: (variable: Variable) => string): string =>
  piecesOf(text)
    .map((piece) => (typeof piece === 'string' ? piece : change(piece)))
    .join('')

const isOfEnvironment = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name)
const isOfNode = (name: string): boolean => isNodeVariable(`\${${name}}`)

/** All environment variables of a text, also those in defaults. */
const variablesIn = (text: string): readonly Variable[] =>
  piecesOf(text).flatMap((piece) => {
    if (typeof piece === 'string') return []
    return [...(isOfEnvironment(piece.name) ? [piece] : []), ...variablesIn(piece.byDefault ?? '')]
  })

interface Resolved {
  readonly config: Tree
  /** The first names of the settings that references read. */
  readonly read: ReadonlySet<string>
}

/** The configuration with its settings in place of references to them, such as `${es.host}`. */
export function withReferences(config: Tree, gaps: Gap[]): Resolved {
  const report = new Report(gaps)
  const read = new Set<string>()
  const settingAt = (name: string, active: readonly string[]): Tree | undefined => {
    const found = active.includes(name) ? undefined : below(config, ...name.split('.'))
    if (found !== undefined) read.add(name.split('.')[0] ?? name)
    return found
  }
  const textFor = (text: string, place: Place, active: readonly string[]): string =>
    replaced(text, ({ whole, name, byDefault }) => {
      const found = textOf(settingAt(name, active))
      const isAlternative = byDefault?.startsWith('+') === true
      if (isAlternative && found === undefined) return unwritten(whole, place, report)
      if (isAlternative) return textFor(byDefault.slice(1), place, active)
      if (found !== undefined) return textFor(found, place, [...active, name])
      return byDefault === undefined ? whole : `\${${name}:${textFor(byDefault, place, active)}}`
    })
  const resolved = (tree: Tree, active: readonly string[]): Tree => {
    if (isList(tree)) return { ...tree, value: tree.value.map((item) => resolved(item, active)) }
    if (isMap(tree))
      return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, resolved(item, active)])) }
    if (typeof tree.value !== 'string' || !tree.value.includes('${')) return tree
    const [only, ...others] = piecesOf(tree.value)
    const name = typeof only === 'object' && others.length === 0 && only.byDefault === undefined ? only.name : ''
    const found = name === '' ? undefined : settingAt(name, active)
    // A reference alone has the type of the setting.
    if (found !== undefined) return { ...resolved(found, [...active, name]), file: tree.file, line: tree.line }
    return { ...tree, value: textFor(tree.value, tree, active) }
  }
  return { config: resolved(config, []), read }
}

/** Reports a text that is written only if a variable has a value. */
function unwritten(whole: string, place: Place, report: Report): string {
  const reason = 'the text depends on a variable that has no value here, so it is left out'
  report.gap(place, whole, reason, 'Write the text if the variable has a value.')
  return ''
}

/** Whether a text contains a variable with the name of the node, which differs between agents, so that it cannot be in a Secret. */
export const namesNode = (text: string): boolean => variablesIn(text).some(({ name }) => isOfNode(name))

/** The text with references to a Secret in place of variables. */
export const secretIn = (text: string): string =>
  replaced(text, ({ whole, name }) => (isOfEnvironment(name) ? `SECRET[env.${name}]` : whole))

/** Reports the variables in a text that becomes an expression of a program. The name of the node is always known. */
export function reportVariables(place: Place, subject: string, text: string, report: Report): void {
  const found = variablesIn(text).filter(({ name }) => !isOfNode(name))
  report.variables(
    place,
    subject,
    text,
    found.map(({ whole }) => whole),
  )
}

/** The text as an expression that reads variables from the environment, where programs may do so. */
export function textExpression(text: string, readsEnvironment: boolean): string {
  const expressions = piecesOf(text).map((piece) => {
    if (typeof piece === 'string') return textLiteral(piece)
    const { whole, name, byDefault = '' } = piece
    if (isOfNode(name)) return nodeName(readsEnvironment)
    if (!readsEnvironment || !isOfEnvironment(name)) return textLiteral(whole)
    return variablesIn(byDefault).length === 0
      ? variableRead(name, unquoted(byDefault))
      : `(get_env_var(${textLiteral(name)}) ?? (${textExpression(byDefault, readsEnvironment)}))`
  })
  return expressions.join(' + ') || '""'
}

/** The text without the quotes around it, which Filebeat removes from values of variables. */
const unquoted = (text: string): string => /^\s*(["'])([^"'\\]*)\1\s*$/.exec(text)?.[2] ?? text

/**
 * The same as a value: Filebeat reads a number or a boolean in a variable as such. A text beside the variable makes it a text, unless both
 * together are a number.
 */
export function valueExpression(text: string, readsEnvironment: boolean): string {
  const expression = textExpression(text, readsEnvironment)
  const pieces = piecesOf(text)
  const isValue = pieces.every((piece) =>
    typeof piece === 'string' ? /^[\d.+-]*$/.test(piece) : isOfEnvironment(piece.name) && !isOfNode(piece.name),
  )
  return isValue && readsEnvironment && pieces.some((piece) => typeof piece !== 'string')
    ? `(parse_json(${expression}) ?? ${expression})`
    : expression
}

/**
 * The name of the node: that of the pod, or for files, the variable that agents have in Kubernetes, where the name of the host is that of the
 * pod of the agent. Programs of a namespaced Pipeline, which read only pods, may not ask for these.
 */
export const nodeName = (readsEnvironment: boolean) => nodeRead(readsEnvironment, 'get_hostname()')

/** Options whose variables stay: programs, Secrets or the names of components read them, or a report of their own names them. */
const withVariables: ReadonlySet<string> = new Set([
  ...['fields', 'tags', 'processors', 'labels', 'values', 'when', 'id', 'paths', 'containers.ids'],
  ...['hosts', 'username', 'password', 'api_key', 'index', 'indices', 'pipeline', 'pipelines', 'path', 'filename'],
  ...['headers', 'parameters', 'proxy_url', 'codec.format.string'],
  ...['ssl.certificate_authorities', 'ssl.certificate', 'ssl.key', 'ssl.key_passphrase'],
])
/** Options whose values programs set, where they read variables from the environment. */
const ofPrograms: ReadonlySet<string> = new Set(['fields', 'tags', 'processors', 'labels', 'values', 'when'])

type Options = Pick<Mapping<never, unknown>, 'options' | 'itself'>

/**
 * The part with the defaults of variables in place of the variables, and a row of the report for each. An option with a variable that has no
 * default is left out, and is a gap.
 */
export function withDefaults(part: Part, { options, itself = {} }: Options, report: Report): Part {
  if (!isMap(part.tree)) return part
  const kept = [...part.tree.value].flatMap(([name, item]): [string, Tree][] => {
    const hasEffect = Object.hasOwn(options, name) || typeof itself[name] !== 'string'
    if (ofPrograms.has(name) || !hasEffect) return [[name, item]]
    const given = defaulted(item, name, part, report)
    if (!Object.hasOwn(options, name) || withVariables.has(name)) return [[name, given]]
    const known = withoutVariables(given, `${part.name}: ${name}`, report)
    return known === undefined ? [] : [[name, known]]
  })
  return { ...part, tree: { ...part.tree, value: new Map(kept) } }
}

/** Options with lists, which Filebeat also reads out of a variable, with commas. */
const lists: ReadonlySet<string> = new Set([
  ...['paths', 'hosts', 'include_lines', 'exclude_lines', 'exclude_files', 'ssl.certificate_authorities'],
  ...['prospector.scanner.include_files', 'prospector.scanner.exclude_files', 'containers.ids'],
])

/** The tree with defaults in place of variables. */
function defaulted(tree: Tree, name: string, part: Part, report: Report): Tree {
  if (isList(tree)) {
    const items = tree.value.map((item) => defaulted(item, '', part, report))
    return { ...tree, value: items }
  }
  if (isMap(tree)) {
    const items = [...tree.value].map(([key, item]) => [key, defaulted(item, key, part, report)] as const)
    return { ...tree, value: new Map(items) }
  }
  if (typeof tree.value !== 'string') return tree
  const given = tree.value
  const value = withoutDefaults(given, part, report)
  if (value === given) return tree
  const isWhole = piecesOf(given).length === 1
  if (!lists.has(name) || !value.includes(',')) return { ...tree, value: isWhole ? unquoted(value) : value }
  const texts = value.replace(/^\s*\[|\]\s*$/g, '').split(',')
  return { ...tree, value: texts.map((text) => ({ ...tree, value: unquoted(text.trim()) })) }
}

/** The text with the defaults of variables in place of the variables that have one. */
const withoutDefaults = (text: string, part: Part, report: Report): string =>
  replaced(text, ({ whole, name, byDefault }) => {
    if (byDefault === undefined || !isOfEnvironment(name)) return whole
    const reason = `the variable has no value here, so its default \`${byDefault}\` applies`
    report.replaced(part, `\${${name}}`, reason, 'Replace it with the actual value.')
    return withoutDefaults(byDefault, part, report)
  })

/** The tree without texts that contain variables; undefined if nothing is left. */
function withoutVariables(tree: Tree, subject: string, report: Report): Tree | undefined {
  if (isList(tree))
    return { ...tree, value: tree.value.flatMap((item) => withoutVariables(item, subject, report) ?? []) }
  if (isMap(tree)) {
    const kept = [...tree.value].flatMap(([name, item]): [string, Tree][] => {
      const known = withoutVariables(item, `${subject}.${name}`, report)
      return known === undefined ? [] : [[name, known]]
    })
    return { ...tree, value: new Map(kept) }
  }
  const [found] = /\$\{[^}]*\}/.exec(textOf(tree) ?? '') ?? []
  if (found === undefined) return tree
  const reason = 'a resource is literal text, and the variable has no value here, so the option is left out'
  report.gap(tree, `${subject}: ${found}`, reason, 'Replace the variable with its value, and convert again.')
  return undefined
}
