// Environment variables. A resource is literal text, so a variable becomes a reference to a Secret, or its default. Programs cannot
// contain references.

import { positionAt, type Segments, type TextPosition } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'

/** The replacement of a variable. */
export interface Substituted {
  readonly name: string
  readonly how: 'secret' | 'default' | 'kept'
  readonly fallback?: string
  /** The position of the reference in its text. */
  readonly at?: TextPosition | undefined
}

const placeholder = /\$\$|\$([A-Za-z_][A-Za-z0-9_.]*)|\$\{([A-Za-z0-9_.]+)(?:(:?-|:?\?)([^}]*))?\}/g

/**
 * @param takesSecrets if false, a variable without a default stays unchanged
 * @param onVariable called for each variable
 * @param keep what a variable that stays becomes
 */
export function withoutVariables(
  text: string,
  takesSecrets: boolean,
  onVariable: (variable: Substituted) => void,
  keep: (whole: string, at: TextPosition) => string = (whole) => whole,
): string {
  return text.replace(placeholder, (...found: unknown[]) => {
    const [whole, plain, braced, operator, rest] = found as [string, ...(string | undefined)[]]
    const name = plain ?? braced
    if (name === undefined) return '$'
    const at = positionAt(text, Number(found[5]))
    if (operator?.endsWith('-') === true) {
      onVariable({ name, how: 'default', fallback: rest ?? '', at })
      return rest ?? ''
    }
    onVariable({ name, how: takesSecrets ? 'secret' : 'kept', at })
    return takesSecrets ? `SECRET[env.${name.replaceAll('.', '_')}]` : keep(whole, at)
  })
}

/**
 * The same for all texts in a value. A text that consists of a variable with a default becomes the parsed default.
 * @param onVariable also gets the path of the text
 */
export function valueWithoutVariables(
  value: unknown,
  onVariable: (variable: Substituted, path: Segments) => void,
  path: Segments = [],
): unknown {
  if (Array.isArray(value)) return value.map((item, index) => valueWithoutVariables(item, onVariable, [...path, index]))
  if (isTable(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, below]) => [key, valueWithoutVariables(below, onVariable, [...path, key])]),
    )
  }
  if (typeof value !== 'string') return value
  const text = withoutVariables(value, true, (variable) => onVariable(variable, path))
  const isWhole = /^\$\{[^}]*\}$/.test(value)
  if (isWhole && /^(?:true|false|-?\d+(?:\.\d+)?)$/.test(text)) return JSON.parse(text)
  return text
}
