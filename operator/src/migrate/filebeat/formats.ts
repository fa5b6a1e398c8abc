// Format strings of Filebeat, such as `logs-%{[kubernetes.namespace]:none}-%{+yyyy.MM.dd}`, as templates and as expressions of programs.

import { textLiteral } from '@penstock/agent/config'
import { fieldOf } from './conditions.ts'
import { isOfFilebeat } from './own-fields.ts'
import { podValue, podVariable } from './pod-values.ts'
import { textExpression } from './variables.ts'

/** The text with names such as `%{[a][b]}` written as `%{[a.b]}`, which means the same. */
export const withDots = (text: string): string =>
  text.replace(/%\{\s*\[[^}]*\}/g, (placeholder) => placeholder.replaceAll('][', '.').replace(/^%\{\s+/, '%{'))

const placeholderOfField = /^\[([^\]]+)\]\s*(?::(.*))?$/s

/** A placeholder with a field: its name, and the default for a missing or empty value. */
function fieldIn(inner: string): { readonly name: string; readonly byDefault: string | undefined } | undefined {
  const [, name, byDefault] = placeholderOfField.exec(inner) ?? []
  return name === undefined ? undefined : { name, byDefault }
}

/** `%{[field]}`, `%{+yyyy.MM.dd}` in a text, as a template; undefined if it contains other placeholders, or defaults. */
export function templateOf(text: string): string | undefined {
  let isKnown = true
  const template = withDots(text)
    .replaceAll('%', '%%')
    .replace(/%%\{([^}]*)\}/g, (_, inner: string) => {
      const field = fieldIn(inner)
      if (field !== undefined) {
        if (isOfFilebeat(field.name) || field.byDefault !== undefined || field.name === '@timestamp') isKnown = false
        return `{{ ${fieldOf(field.name).replace(/^\./, '')} }}`
      }
      const date = inner.startsWith('+') ? strftime(inner.slice(1)) : undefined
      if (date === undefined) isKnown = false
      return date ?? ''
    })
  return isKnown ? template : undefined
}

/** The time of the event as Filebeat writes it into texts. */
const timeText = '(format_timestamp(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.3fZ") ?? "")'

/**
 * The same text as an expression of a program; undefined if it contains other placeholders.
 * @param readsEnvironment whether the program may read variables from the environment of the agent
 */
export function expressionOf(text: string, readsEnvironment: boolean): string | undefined {
  const parts = withDots(text)
    .split(/(%\{[^}]*\}|\$\{data\.[^}]*\})/)
    .filter((part) => part !== '')
  const expressions = parts.map((part) => {
    if (podVariable.test(part)) return podValue(part)
    const inner = /^%\{(.*)\}$/s.exec(part)?.[1]
    if (inner === undefined) return textExpression(part, readsEnvironment)
    const field = fieldIn(inner)
    if (field !== undefined) return fieldExpression(field.name, field.byDefault)
    const date = inner.startsWith('+') ? strftime(inner.slice(1)) : undefined
    return date === undefined
      ? undefined
      : `(format_timestamp(timestamp(.timestamp) ?? now(), ${textLiteral(date)}) ?? "")`
  })
  return expressions.includes(undefined) ? undefined : expressions.join(' + ') || '""'
}

/** The text of a field. A default replaces a value that is missing, empty, or not a text, number or boolean. */
function fieldExpression(name: string, byDefault: string | undefined): string | undefined {
  if (isOfFilebeat(name)) return undefined
  if (name === '@timestamp') return timeText
  const text = `(to_string(${fieldOf(name)}) ?? "")`
  return byDefault === undefined || byDefault === ''
    ? text
    : `replace(${text}, r'^$', ${textLiteral(byDefault.replaceAll('$', '$$$$'))})`
}

/** The fields in the placeholders of a text that have no default. */
export const fieldsIn = (text: string): readonly string[] =>
  [...withDots(text).matchAll(/%\{([^}]*)\}/g)].flatMap(([, inner = '']) => {
    const field = fieldIn(inner)
    return field === undefined || field.byDefault !== undefined ? [] : [fieldOf(field.name)]
  })

/** Letters of the date format, and how a run of one letter is written here. */
const letters: Readonly<Record<string, (length: number) => string | undefined>> = {
  y: (length) => (length === 2 ? '%y' : '%Y'),
  Y: (length) => (length === 2 ? '%y' : '%Y'),
  x: (length) => (length === 2 ? '%g' : '%G'),
  M: (length) => (length >= 4 ? '%B' : length === 3 ? '%b' : padded('m', length)),
  d: (length) => padded('d', length),
  D: (length) => (length >= 3 ? '%j' : '%-j'),
  E: (length) => (length >= 4 ? '%A' : '%a'),
  e: () => '%u',
  w: (length) => padded('V', length),
  H: (length) => padded('H', length),
  h: (length) => padded('I', length),
  m: (length) => padded('M', length),
  s: (length) => padded('S', length),
  S: (length) => ({ 3: '%3f', 6: '%6f', 9: '%9f' })[length],
  a: () => '%p',
}

const padded = (letter: string, length: number) => (length === 1 ? `%-${letter}` : `%${letter}`)

/** A date format of Filebeat as one of templates; undefined if it contains letters without a counterpart. */
function strftime(format: string): string | undefined {
  const parts = format.match(/'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+/g) ?? []
  if (parts.join('') !== format) return undefined
  const written = parts.map((part) => {
    if (part.startsWith("'")) return part === "''" ? "'" : part.slice(1, -1).replaceAll("''", "'").replaceAll('%', '%%')
    const [letter = ''] = part
    return /[A-Za-z]/.test(letter) ? letters[letter]?.(part.length) : part.replaceAll('%', '%%')
  })
  return written.includes(undefined) ? undefined : written.join('')
}
