// Arguments of Promtail beside its file: in values of the chart, and in the containers of workloads. Some of them change the configuration.

import type { NamedText } from '../draft.ts'
import { asVariables } from '../inner.ts'
import { below, isList, isMap, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import { isChartConfig } from './chart.ts'

export interface Arguments {
  /** Labels of all clients, which those of a client replace. */
  readonly external: readonly (readonly [string, string, Tree])[]
  /** The client that arguments describe. */
  readonly client: Tree | undefined
  /** Whether variables in the configuration are replaced. */
  readonly expands: boolean
}

/** Options of a client by the arguments that set them. */
const clientOptions: Readonly<Record<string, readonly string[]>> = {
  'client.url': ['url'],
  'client.tenant-id': ['tenant_id'],
  'client.batch-wait': ['batchwait'],
  'client.batch-size-bytes': ['batchsize'],
  'client.timeout': ['timeout'],
  'client.min-backoff': ['backoff_config', 'min_period'],
  'client.max-backoff': ['backoff_config', 'max_period'],
  'client.max-retries': ['backoff_config', 'max_retries'],
}

/** The lists with arguments of Promtail in a file. */
function listsIn(tree: Tree, isBelow: boolean, depth: number): readonly Tree[] {
  if (depth > 14) return []
  if (isList(tree)) return tree.value.flatMap((item) => listsIn(item, isBelow, depth + 1))
  if (!isMap(tree)) return []
  const isOwn = isBelow || isChartConfig(below(tree, 'config')) || /promtail/i.test(textOf(below(tree, 'image')) ?? '')
  const own = isOwn ? ['command', 'args', 'extraArgs', 'extraCommandlineArgs'] : []
  return [
    ...own.flatMap((name) => below(tree, name) ?? []),
    ...[...tree.value].flatMap(([name, item]) => listsIn(item, name === 'promtail', depth + 1)),
  ]
}

/** Names and values; an argument without a value is true. */
function pairsIn(list: Tree): readonly (readonly [string, string])[] {
  const texts = textsOf(list).flatMap((text) => (text.includes('\n') ? [] : text.split(/\s+(?=-{1,2}[a-z])/)))
  return texts.flatMap((text, index) => {
    const [, name, value] = /^--?([a-z][\w.-]*)(?:[= ](.*))?$/s.exec(text) ?? []
    if (name === undefined) return []
    const next = texts[index + 1]
    return [[name, value ?? (next === undefined || next.startsWith('-') ? 'true' : next)] as const]
  })
}

export function argumentsIn(files: readonly NamedText[]): Arguments {
  const external: (readonly [string, string, Tree])[] = []
  const client = new Map<string, Tree>()
  let place: Tree | undefined
  let expands = false
  for (const given of files.filter(({ text }) => /(?:client|config)\.[a-z]/.test(text))) {
    for (const list of treesOf(given, []).flatMap((tree) => listsIn(tree, false, 0))) {
      for (const [name, text] of pairsIn(list)) {
        const value: Tree = { file: list.file, line: list.line, value: asVariables(text) }
        if (name === 'config.expand-env') expands ||= text !== 'false'
        if (name === 'client.external-labels') {
          for (const pair of asVariables(text).split(',')) {
            const [, key, own] = /^\s*([^=]+)=(.*)$/s.exec(pair) ?? []
            if (key !== undefined && own !== undefined) external.push([key, own, { ...value, value: own }])
          }
        }
        const [option, inner] = Object.hasOwn(clientOptions, name) ? (clientOptions[name] ?? []) : []
        if (option === undefined) continue
        place ??= value
        const group = client.get(option)
        const members = isMap(group) ? [...group.value] : []
        client.set(option, inner === undefined ? value : { ...value, value: new Map([...members, [inner, value]]) })
      }
    }
  }
  // Without an address, the other arguments describe no client.
  const isClient = place !== undefined && client.has('url')
  return { external, client: isClient && place !== undefined ? { ...place, value: client } : undefined, expands }
}

/** A configuration in which variables are replaced: two backslashes become one, and two dollar signs too. */
export function expanded(tree: Tree): { readonly tree: Tree; readonly changed: Tree | undefined } {
  let changed: Tree | undefined
  const visit = (each: Tree): Tree => {
    if (isList(each)) return { ...each, value: each.value.map(visit) }
    if (isMap(each)) return { ...each, value: new Map([...each.value].map(([name, item]) => [name, visit(item)])) }
    if (typeof each.value !== 'string') return each
    const value = each.value.replace(/\\([\\/])/g, '$1').replace(/\$\$/g, '$')
    if (value !== each.value) changed ??= each
    return { ...each, value }
  }
  return { tree: visit(tree), changed }
}

/** Options with regular expressions. */
const patterns = ['expression', 'regex', 'firstline', 'selector']

/** All texts of a tree, with the names of their options. */
function* textsIn(tree: Tree, name = ''): Iterable<readonly [string, string]> {
  if (isList(tree)) for (const item of tree.value) yield* textsIn(item, name)
  else if (isMap(tree)) for (const [key, item] of tree.value) yield* textsIn(item, key)
  else yield [name, textOf(tree) ?? '']
}

/** Whether a configuration is written for replaced variables: it has variables, and doubles the dollar signs or the backslashes. */
export function isForExpansion(tree: Tree): boolean {
  const texts = [...textsIn(tree)]
  if (!texts.some(([, text]) => /\$\{[A-Z_][A-Z0-9_]*(?::?-[^}]*)?\}/.test(text))) return false
  if (texts.some(([, text]) => /\$\$(?:\d|\{\d)/.test(text))) return true
  const regexes = texts.filter(([name]) => patterns.includes(name)).map(([, text]) => text)
  const isDoubled = (text: string) => /\\\\[dwsDWSb.]/.test(text)
  return regexes.some(isDoubled) && !regexes.some((text) => /\\[dwsDWSb.]/.test(text.replace(/\\\\./g, '')))
}
