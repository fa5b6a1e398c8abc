// Arguments of Filebeat in the containers of workloads, in services of Docker Compose, and in chart values: `-E` replaces settings of the
// configuration, and `--modules` starts modules.

import type { NamedText } from '../draft.ts'
import { asVariables } from '../inner.ts'
import { below, isList, isMap, itemsOf, type Scalar, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'

/** A setting that an argument makes. */
export interface Argument {
  /** The path of the setting, with dots. */
  readonly name: string
  readonly value: Tree
}

/** A word of a command, with its place. */
interface Word {
  readonly text: string
  readonly place: Tree
}

/** Commands of Filebeat that read no logs. */
const others: ReadonlySet<string> = new Set(['setup', 'export', 'test', 'keystore', 'modules', 'version', 'enroll'])

/** The lists of words with which Filebeat starts. */
function commandsIn(tree: Tree, key: string, depth: number): readonly (readonly Word[])[] {
  if (depth > 14) return []
  if (isList(tree)) return tree.value.flatMap((item) => commandsIn(item, '', depth + 1))
  if (!isMap(tree)) return []
  const { file, line, value } = tree
  const inner = [...value].flatMap(([name, item]) => commandsIn(item, name, depth + 1))
  const image = below(tree, 'image')
  const names = [key, textOf(image), textOf(below(tree, 'name')), textOf(below(image, 'repository'))]
  const isOwn = value.has('filebeatConfig') || names.some((name) => /\bfilebeat\b/i.test(name ?? ''))
  if (!isOwn) return inner
  const words = ['command', 'args', 'extraArgs'].flatMap((name) =>
    wordsOf(below(tree, name) ?? { file, line, value: null }),
  )
  return words.some(({ text }) => others.has(text)) ? inner : [words, ...inner]
}

/** The words of a list, or of a text as a shell reads it. */
function wordsOf(tree: Tree): readonly Word[] {
  if (isList(tree))
    return tree.value.flatMap((item) =>
      /\bfilebeat\s+-/.test(textOf(item) ?? '') ? wordsOf(item) : { text: textOf(item) ?? '', place: item },
    )
  const found = (textOf(tree) ?? '').match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []
  return found.map((text) => ({ text: text.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'), place: tree }))
}

/** The settings that the words of a command make. */
function settingsIn(words: readonly Word[]): readonly Argument[] {
  return words.flatMap(({ text, place }, index) => {
    const [, flag, joined] = /^--?(E|modules)[=\s]*(.*)$/s.exec(text) ?? []
    if (flag === undefined) return []
    const given = joined || (words[index + 1]?.text ?? '')
    return flag === 'E' ? settingIn(given, place) : modulesIn(given, place)
  })
}

function settingIn(text: string, place: Tree): readonly Argument[] {
  const [, name, value] = /^\s*([^=\s]+)=(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? [] : [{ name, value: argumentValue(asVariables(value), place) }]
}

const modulesIn = (text: string, { file, line }: Tree): readonly Argument[] => {
  const module = (name: string): Tree => ({ file, line, value: new Map([['module', { file, line, value: name }]]) })
  return [{ name: 'filebeat.modules', value: { file, line, value: text.split(',').map(module) } }]
}

/** The value in an argument: a list in brackets or with commas, a number, a boolean, or a text, which may have quotes. */
function argumentValue(text: string, { file, line }: Tree): Tree {
  const [, bracketed] = /^\s*\[(.*)\]\s*$/s.exec(text) ?? []
  const items = (bracketed ?? text).match(/(?:"[^"]*"|'[^']*'|\$\{[^}]*\}|[^,])+/g) ?? []
  const scalars = items.map((item): Tree => ({ file, line, value: scalarOf(item.trim()) }))
  const [only] = scalars
  if (bracketed !== undefined || scalars.length > 1) return { file, line, value: scalars }
  return only ?? { file, line, value: '' }
}

function scalarOf(text: string): Scalar {
  const [, , quoted] = /^(["'])(.*)\1$/s.exec(text) ?? []
  if (quoted !== undefined) return quoted
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?$/.test(text) ? Number(text) : text
}

/** The arguments that change settings, in the order in which they apply. */
export function argumentsIn(files: readonly NamedText[]): readonly Argument[] {
  return files
    .filter(({ text }) => /\bfilebeat\b/i.test(text) && /-E|-modules\b/.test(text))
    .flatMap((given) => treesOf(given, []).flatMap((tree) => commandsIn(tree, '', 0)))
    .flatMap(settingsIn)
}

/** The configuration with the settings of arguments. */
export const withArguments = (config: Tree, given: readonly Argument[]): Tree =>
  given.reduce((tree, { name, value }) => changed(tree, name.split('.'), value), config)

/** The tree with another value at a path, whose names may be numbers of items. */
function changed(tree: Tree | undefined, path: readonly string[], value: Tree): Tree {
  const [name, ...rest] = path
  // Lists merge by the place of items. Modules that an argument names run beside the others.
  if (name === undefined) return isList(tree) && isList(value) ? mergedList(tree, value) : value
  const { file, line } = tree ?? value
  if (isList(tree) && /^\d+$/.test(name)) {
    const at = Number(name)
    return { ...tree, value: tree.value.map((item, index) => (index === at ? changed(item, rest, value) : item)) }
  }
  const known = isMap(tree) ? tree.value : new Map<string, Tree>()
  return { file, line, value: new Map([...known, [name, changed(known.get(name), rest, value)]]) }
}

function mergedList(known: Tree, given: Tree): Tree {
  const [before, after] = [itemsOf(known), itemsOf(given)]
  const isAdded = after.every(isMap)
  return { ...given, value: isAdded ? [...before, ...after] : [...after, ...before.slice(after.length)] }
}
