// Reads a Fluentd configuration in YAML to the same elements as the other syntax. Tables are elements within, and lists of tables several ones.

import type { Gap, NamedText } from '../draft.ts'
import { isList, isMap, type Place, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import {
  type Element,
  type ElementFile,
  evaluated,
  type Include,
  notGiven,
  type Parameter,
  type Remark,
} from './syntax.ts'

/** Whether a text is a configuration in YAML. */
export const isYamlConfiguration = (text: string): boolean =>
  /^config:[ \t\r]*(?:#.*)?$/m.test(text) &&
  /^\s*- +(?:!include\s|(?:source|match|filter|label|worker):)/m.test(text) &&
  /^\s*\$type:/m.test(text)

/** Elements of plugins. A table with another name is an object in a parameter. */
const elementNames: ReadonlySet<string> = new Set(
  [
    'and auth buffer endpoint entry exclude extract fields format grok inject label labels match metadata metric or parse',
    'pattern record regexp replace route rule secondary security server service_discovery shared_key store storage transport',
  ].flatMap((words) => words.split(' ')),
)

/** Names of the options that all elements have. */
const commonNames: Readonly<Record<string, string>> = {
  $type: '@type',
  $label: '@label',
  $id: '@id',
  $log_level: '@log_level',
}

export function readYamlConfiguration(given: NamedText): ElementFile {
  const gaps: Gap[] = []
  const reader = new YamlReader()
  const trees = treesOf(given, gaps)
  const parts = trees.flatMap((tree) => (isMap(tree) ? reader.parts(tree.value.get('config')) : []))
  return { parts, remarks: [...gaps, ...reader.remarks] }
}

/** A value as JSON. */
function jsonIn(tree: Tree): unknown {
  if (isList(tree)) return tree.value.map(jsonIn)
  if (isMap(tree)) return Object.fromEntries([...tree.value].map(([key, item]) => [key, jsonIn(item)]))
  return tree.isNumber ? Number(tree.value) : tree.value
}

class YamlReader {
  readonly remarks: Remark[] = []

  parts(tree: Tree | undefined): (Element | Include)[] {
    return isList(tree) ? tree.value.flatMap((item) => this.#part(item)) : []
  }

  #part(item: Tree): (Element | Include)[] {
    const path = textOf(item)
    if (path !== undefined) return [{ file: item.file, line: item.line, path }]
    if (!isMap(item)) return []
    return [...item.value].flatMap(([name, options]): Element[] =>
      isMap(options) ? [this.#element(name, options)] : [],
    )
  }

  #element(name: string, tree: Tree & { readonly value: ReadonlyMap<string, Tree> }): Element {
    const parameters: Parameter[] = []
    const children: Element[] = []
    let argument = ''
    for (const [key, item] of tree.value) {
      if (/^\$(?:tag|arg|name)$/.test(key)) argument = this.#value(key, item, { name, parameters })
      else if (key === 'config') children.push(...this.parts(item).filter((part) => 'name' in part))
      else if (elementNames.has(key) && isMap(item)) children.push(this.#element(key, item))
      else if (elementNames.has(key) && isList(item) && item.value.some(isMap))
        children.push(...item.value.flatMap((each) => (isMap(each) ? [this.#element(key, each)] : [])))
      else {
        const own = commonNames[key] ?? key
        const value = this.#value(own, item, { name, parameters })
        if (value !== notGiven)
          parameters.push({ file: item.file, line: item.line, key: own, value: value.replaceAll(notGiven, '') })
      }
    }
    return { file: tree.file, line: tree.line, name, argument, parameters, children }
  }

  #value(key: string, item: Tree, within: Pick<Element, 'name' | 'parameters'>): string {
    const text =
      isList(item) && item.value.every((each) => textOf(each) !== undefined && !textOf(each)?.includes(','))
        ? item.value.map(textOf).join(',')
        : isMap(item) || isList(item)
          ? JSON.stringify(jsonIn(item))
          : (textOf(item) ?? '')
    const place: Place = { file: item.file, line: item.line }
    return evaluated(text, key, within, (subject, reason, nearest, isReplaced) =>
      this.remarks.push({ ...place, subject, reason, nearest, ...(isReplaced && { isReplaced }) }),
    )
  }
}
