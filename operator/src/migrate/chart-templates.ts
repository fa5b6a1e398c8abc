// References to chart values within a configuration, such as `{{ .Release.Name }}`. If the file contains the value, it replaces the
// reference. Otherwise the value is unknown, as that of an environment variable is, so the reference becomes a variable.

import { isTable } from '@penstock/agent/schema'
import type { Gap, NamedText } from './draft.ts'
import { unquote } from './loki/selector.ts'
import { below, textOf } from './loki/tree.ts'
import { treesOf } from './loki/yaml.ts'

/** The Promtail chart expands values below `config`, which is the configuration itself. */
const reference =
  /\{\{-?\s*\$?\.((?:Values(?!\.config\.)|Release|Chart)(?:\.\w+)+)(?:\s*\|\s*(?:quote|squote|trim|toString))?\s*-?\}\}/g

/** `Release.Name` as the name of a variable. The prefix `Values` is left out. */
const variableOf = (path: string) =>
  path
    .replace(/^Values\./, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/\W+/g, '_')
    .toUpperCase()

/**
 * Replaces references to chart values in the texts.
 * @param files files that may contain the values
 * @param write how the agent writes a variable
 * @param gaps receives a row for each reference that became a variable
 */
export function withoutReferences(
  texts: readonly NamedText[],
  files: readonly NamedText[],
  write: (variable: string) => string,
  gaps: Gap[],
): readonly NamedText[] {
  if (!texts.some(({ text }) => text.includes('{{'))) return texts
  const roots = files.filter(({ file }) => /\.ya?ml$/i.test(file)).flatMap((file) => treesOf(file, []))
  const givenIn = (path: string) => {
    const [first, ...names] = path.split('.')
    return first === 'Values'
      ? roots.map((root) => textOf(below(root, ...names))).find((text) => text !== undefined)
      : undefined
  }
  return texts.map(({ file, text, ...place }) => ({
    ...place,
    file,
    text: text.replace(reference, (whole, path: string, offset: number) => {
      const value = givenIn(path)
      if (value !== undefined && !value.includes('{{')) return value
      const variable = variableOf(path)
      gaps.push({
        file,
        line: text.slice(0, offset).split('\n').length,
        subject: whole,
        reason: `the file does not contain this chart value, so the variable \`${variable}\` replaces it`,
        nearest:
          'Convert the output of `helm template`, or put the value into the Secret under the name of the variable.',
        isReplaced: true,
      })
      return write(variable)
    }),
  }))
}

/** A text that a chart renders as a template, in which actions with only a literal escape braces: `{{ "{{" }}`, `{{ print "{{ a }}" }}`. */
export function rendered(text: string): string {
  return text.replace(
    /\{\{-?\s*(?:printf?\s+)?(?:"((?:[^"\\]|\\.)*)"|`([^`]*)`)\s*-?\}\}/g,
    (_, quoted: string | undefined, raw: string | undefined) => raw ?? unquote(quoted ?? ''),
  )
}

/** The same for all texts in a value. */
export function renderedIn<Value>(value: Value): Value
export function renderedIn(value: unknown): unknown {
  if (typeof value === 'string') return rendered(value)
  if (Array.isArray(value)) return value.map((item) => renderedIn(item))
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, renderedIn(below)]))
}
