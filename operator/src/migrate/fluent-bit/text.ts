// Parts of programs for Fluent Bit values: texts, fields, record accessors, regular expressions in Ruby's dialect.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { nodeRead, variableRead } from '../environment.ts'
import { isYamlLike } from '../inner.ts'

/** Parses `$a['b']['c']`, also without the sign, or a plain name to field names; undefined if it is none of them. */
export function accessor(given: string): readonly string[] | undefined {
  const text = /^[^$[]+(?:\[(?:'[^']*'|"[^"]*")\])+$/.test(given) ? `$${given}` : given
  if (!text.startsWith('$')) return text === '' ? undefined : [text]
  const found = /^\$([^[\].\s${}]+)((?:\[(?:'[^']*'|"[^"]*")\])*)$/.exec(text)
  if (found?.[1] === undefined) return undefined
  return [found[1], ...[...(found[2] ?? '').matchAll(/\[['"]([^'"]*)['"]\]/g)].map((part) => part[1] ?? '')]
}

/** A variable that every process in a pod has. */
export const hostVariable = '$'.concat('{HOSTNAME}')

/** The usual variable for the name of the node. */
export const nodeVariable = '$'.concat('{NODE_NAME}')

/** Whether a variable has the name of the node, as in the manifests and charts of Fluent Bit. */
export const isOfNode = (name: string) => /^(?:\w+_)?NODE_?NAME$|^HOST_NAME$/i.test(name)

/**
 * A text that a record gets, as an expression.
 * @param readsEnvironment whether the program may read variables from the environment of the agent
 */
export function textOf(text: string, readsEnvironment: boolean): string {
  const parts = text.split(/(\$\{[A-Za-z0-9_]+\})/).filter((part) => part !== '')
  const all = parts.map((part) => {
    if (part === hostVariable) return '(get_hostname() ?? "")'
    const name = /^\$\{(\w+)\}$/.exec(part)?.[1]
    if (name !== undefined && isOfNode(name)) return nodeRead(readsEnvironment)
    return name === undefined || !readsEnvironment ? textLiteral(part) : variableRead(name)
  })
  return all.join(' + ') || '""'
}

/** A text with the name of the host in the place of its variable, as an expression. */
export function hostText(text: string): string {
  const parts = text.split(hostVariable).map((part) => (part === '' ? [] : [textLiteral(part)]))
  return parts.flatMap((part, index) => (index === 0 ? part : ['(get_hostname() ?? "")', ...part])).join(' + ') || '""'
}

/** A template that renders a field. */
export function template(path: readonly string[]): string {
  return `{{ ${fieldLiteral(path).slice(1)} }}`
}

/** A regular expression as a literal for `parse_grok`, which reads Ruby's dialect as Fluent Bit does. */
export function pattern(text: string): string {
  const slashed = /^\/(.*)\/([imxo]*)$/s.exec(text)
  const [body, flags] = slashed === null ? [text, ''] : [slashed[1] ?? '', (slashed[2] ?? '').replace('o', '')]
  const whole = flags === '' ? body : `(?${flags}:${body})`
  // A quote would end the literal, and `%{` would name a pattern.
  return `s'${whole.replaceAll("'", '\\x27').replaceAll('%{', '%\\{')}'`
}

/** A test of a field. Fluent Bit matches only texts. */
export function matches(path: readonly string[], regex: string): string {
  const at = fieldLiteral(path)
  return `(is_string(${at}) && is_object(parse_grok(string(${at}) ?? "", ${pattern(regex)}) ?? null))`
}

/** A test of a text expression against a pattern with `*`, as in `Match`. */
export function globPattern(glob: string): string {
  const escaped = glob.replace(/[\\^$.*+?()[\]{}|/]/g, (sign) =>
    sign === '*' ? '.*' : sign === '?' ? '.' : `\\${sign}`,
  )
  return `^${escaped}$`
}

/** Splits a value into words. A word in quotes may contain white space. */
export function words(text: string): string[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map((found) => found[1] ?? found[2] ?? '')
}

/** Whether a text has the sections of the classic syntax. */
export function isClassic(text: string): boolean {
  return (
    /^\s*(?:\[(?:SERVICE|INPUT|FILTER|OUTPUT|PARSER|MULTILINE_PARSER|UPSTREAM|STREAM_TASK)\]|@INCLUDE\s+\S+)\s*$/im.test(
      text,
    ) &&
    !isYamlLike(text) &&
    // Fluentd uses the same statement to include files.
    !/^\s*<(?:source|match|filter|label|system)\b[^>]*>\s*$/m.test(text)
  )
}

/** Whether a text is a configuration in either syntax. */
export function isConfiguration(text: string): boolean {
  if (isClassic(text)) return true
  const found = /^( *)pipeline:[ \t\r]*\n(?:\s*(?:#.*)?\n)*\1 +(?:inputs|filters|outputs):/m.exec(text)
  if (found === null) return false
  // A text further left means that the configuration is a value of a larger document, such as a ConfigMap.
  const depth = found[1]?.length ?? 0
  const lines = text.slice(0, found.index).split('\n')
  return lines.every((line) => /^\s*(?:#.*|---.*)?$/.test(line) || line.search(/\S/) >= depth)
}

const topKeys =
  'customs|env|includes|multiline_parsers|parsers|pipeline|plugins|service|stream_processor|upstream_servers'

/** Whether a text may be one of several files of a configuration: it has sections, but perhaps no plugins. */
export function isPart(text: string): boolean {
  if (isConfiguration(text)) return true
  const keys = [...text.matchAll(/^(?![#\s-])[^\n]+/gm)].map(([line]) => line)
  return (
    keys.some((line) => /^(?:parsers|multiline_parsers|includes|stream_processor):\s*(?:#.*)?$/.test(line)) &&
    keys.every((line) => new RegExp(`^(?:${topKeys}):`).test(line))
  )
}
