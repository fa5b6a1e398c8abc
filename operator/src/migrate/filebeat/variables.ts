// Variables in texts: references to settings of the same configuration, and environment variables with their defaults.

import { textLiteral } from '@penstock/agent/config'
import type { Gap } from '../draft.ts'
import { nodeRead, variableRead } from '../environment.ts'
import { type Mapping, type Part, Report } from '../loki/context.ts'
import { isNodeVariable } from '../loki/fields.ts'
import { below, isList, isMap, type Place, type Tree, textOf } from '../loki/tree.ts'

/** A reference or a variable, with its default. Braces cannot be inside of it. */
const innermost = /\$\{([^${}:]+)(?::([^${}]*))?\}/g
/** A variable in the default of another one. */
const inDefault = /(\$\{[^${}:]+:[^${}]*)\$\{([^${}:]+)(?::([^${}]*))?\}/
/** A text that is written only if a variable has a value. */
const alternative = /\$\{([^${}:]+):\+([^${}]*)\}/g
/** An environment variable. Others have a name with dots, such as the values of a pod. */
const variable = /\$\{([A-Za-z_]\w*)(?::([^}]*))?\}/g

interface Resolved {
  readonly config: Tree
  /** The first names of the settings that references read. */
  readonly read: ReadonlySet<string>
}

/**
 * The configuration with its settings in place of references to them, such as `${es.host}`. Of a variable in a default, the default remains,
 * because it has no value here.
 */
export function withReferences(config: Tree, gaps: Gap[]): Resolved {
  const report = new Report(gaps)
  const read = new Set<string>()
  const settingAt = (name: string, active: readonly string[]): Tree | undefined => {
    const found = active.includes(name) ? undefined : below(config, ...name.split('.'))
    if (found !== undefined) read.add(name.split('.')[0] ?? name)
    return found
  }
  const textFor = (text: string, place: Place, active: readonly string[]): string => {
    const referred = text.replace(innermost, (whole, name: string) => {
      const found = textOf(settingAt(name, active))
      return found === undefined ? whole : textFor(found, place, [...active, name])
    })
    return withoutNested(referred, place, report)
  }
  const resolved = (tree: Tree, active: readonly string[]): Tree => {
    if (isList(tree)) return { ...tree, value: tree.value.map((item) => resolved(item, active)) }
    if (isMap(tree))
      return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, resolved(item, active)])) }
    if (typeof tree.value !== 'string' || !tree.value.includes('${')) return tree
    const [, whole = ''] = /^\$\{([^${}:]+)\}$/.exec(tree.value) ?? []
    const found = whole === '' ? undefined : settingAt(whole, active)
    // A reference alone has the type of the setting.
    if (found !== undefined) return { ...resolved(found, [...active, whole]), file: tree.file, line: tree.line }
    return { ...tree, value: textFor(tree.value, tree, active) }
  }
  return { config: resolved(config, []), read }
}

/** The text without variables in defaults, and without texts that depend on a variable. */
function withoutNested(text: string, place: Place, report: Report): string {
  let current = text
  for (let found = inDefault.exec(current); found !== null; found = inDefault.exec(current)) {
    const [whole, before = '', name = '', byDefault = ''] = found
    const reason = `the variable is in the default of another one, and has no value here, so its default \`${byDefault}\` applies`
    report.replaced(place, `\${${name}}`, reason, 'Replace it with the actual value.')
    current = current.replace(whole, () => before + byDefault)
  }
  return current.replace(alternative, (_, name: string, written: string) => {
    const reason = `the text \`${written}\` depends on a variable that has no value here, so it is left out`
    report.gap(place, `\${${name}:+${written}}`, reason, 'Write the text if the variable has a value.')
    return ''
  })
}

/** Whether a text contains a variable with the name of the node, which differs between agents, so that it cannot be in a Secret. */
export const namesNode = (text: string): boolean => [...text.matchAll(variable)].some(([, name = '']) => isOfNode(name))

const isOfNode = (name: string): boolean => isNodeVariable(`\${${name}}`)

/** The text with references to a Secret in place of variables. */
export const secretIn = (text: string): string => text.replace(variable, (_, name: string) => `SECRET[env.${name}]`)

/** Reports the variables in a text that becomes an expression of a program. The name of the node is always known. */
export function reportVariables(place: Place, subject: string, text: string, report: Report): void {
  const found = [...text.matchAll(variable)].filter(([, name = '']) => !isOfNode(name)).map(([whole]) => whole)
  report.variables(place, subject, text, found)
}

/** The text as an expression that reads variables from the environment, where programs may do so. */
export function textExpression(text: string, readsEnvironment: boolean): string {
  const parts = text.split(/(\$\{[A-Za-z_]\w*(?::[^}]*)?\})/).filter((part) => part !== '')
  const expressions = parts.map((part) => {
    const [whole, name = '', byDefault] = [...part.matchAll(variable)][0] ?? []
    if (whole === undefined) return textLiteral(part)
    if (isOfNode(name)) return nodeName(readsEnvironment)
    return readsEnvironment ? variableRead(name, byDefault) : textLiteral(part)
  })
  return expressions.join(' + ') || '""'
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
    const given = defaulted(item, part, report)
    if (!Object.hasOwn(options, name) || withVariables.has(name)) return [[name, given]]
    const known = withoutVariables(given, `${part.name}: ${name}`, report)
    return known === undefined ? [] : [[name, known]]
  })
  return { ...part, tree: { ...part.tree, value: new Map(kept) } }
}

/** The tree with defaults in place of variables. */
function defaulted(tree: Tree, part: Part, report: Report): Tree {
  if (isList(tree)) return { ...tree, value: tree.value.map((item) => defaulted(item, part, report)) }
  if (isMap(tree))
    return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, defaulted(item, part, report)])) }
  if (typeof tree.value !== 'string') return tree
  const value = tree.value.replace(variable, (whole, name: string, byDefault: string | undefined) => {
    if (byDefault === undefined) return whole
    const reason = `the variable has no value here, so its default \`${byDefault}\` applies`
    report.replaced(part, `\${${name}}`, reason, 'Replace it with the actual value.')
    return byDefault
  })
  return { ...tree, value }
}

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
