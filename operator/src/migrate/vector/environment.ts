// Environment variables. A resource is literal text, so a variable becomes a reference to a Secret, or its default. Programs cannot
// contain references.

import { isTable } from '@penstock/agent/schema'

/** The replacement of a variable. */
export interface Substituted {
  readonly name: string
  readonly how: 'secret' | 'default' | 'kept'
  readonly fallback?: string
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
  keep: (whole: string) => string = (whole) => whole,
): string {
  return text.replace(placeholder, (whole, plain?: string, braced?: string, operator?: string, rest?: string) => {
    const name = plain ?? braced
    if (name === undefined) return '$'
    if (operator?.endsWith('-') === true) {
      onVariable({ name, how: 'default', fallback: rest ?? '' })
      return rest ?? ''
    }
    onVariable({ name, how: takesSecrets ? 'secret' : 'kept' })
    return takesSecrets ? `SECRET[env.${name.replaceAll('.', '_')}]` : keep(whole)
  })
}

/** The same for all texts in a value. A text that consists of a variable with a default becomes the parsed default. */
export function valueWithoutVariables(value: unknown, onVariable: (variable: Substituted) => void): unknown {
  if (Array.isArray(value)) return value.map((item) => valueWithoutVariables(item, onVariable))
  if (isTable(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, below]) => [key, valueWithoutVariables(below, onVariable)]),
    )
  }
  if (typeof value !== 'string') return value
  const text = withoutVariables(value, true, onVariable)
  const isWhole = /^\$\{[^}]*\}$/.test(value)
  if (isWhole && /^(?:true|false|-?\d+(?:\.\d+)?)$/.test(text)) return JSON.parse(text)
  return text
}
