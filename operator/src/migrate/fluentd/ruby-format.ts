// `format` of Ruby: texts and numbers in a text, with a width and a number of decimals.

import { textLiteral } from '@penstock/agent/config'
import type { Emitter } from './ruby-emitter.ts'
import { floatIn } from './ruby-methods.ts'
import { asText, literalOf, type Node, textNode, UnknownRuby } from './ruby-node.ts'

/** `"%05d %.2f %s" % [a, b, c]`. */
export function formatted(format: Node, values: readonly Node[], emitter: Emitter): Node {
  const rest = [...values]
  const parts = literalOf(format)
    .split(/(%(?:%|[-+0 #]*\d*(?:\.\d+)?[a-zA-Z<{]))/)
    .filter((part) => part !== '')
    .map((part) => {
      if (part === '%%') return '"%"'
      const [whole, fill = '', width = '', decimals, type = ''] =
        /^%([-+0]*)(\d*)(?:\.(\d+))?([sdiuf])$/.exec(part) ?? []
      if (whole === undefined && /^%./.test(part)) throw new UnknownRuby()
      if (whole === undefined) return textLiteral(part)
      const value = rest.shift()
      if (value === undefined) throw new UnknownRuby()
      const text = valueFor(type, value, decimals, emitter)
      const signed =
        fill.includes('+') && type !== 's'
          ? emitter.kept(`if starts_with(${text}, "-") { ${text} } else { "+" + ${text} }`, 'text').text
          : text
      return padded(signed, width === '' ? 0 : Number(width), type === 's' ? fill.replace('0', '') : fill, emitter)
    })
  if (rest.length > 0) throw new UnknownRuby()
  return textNode(parts.length === 0 ? '""' : `(${parts.join(' + ')})`)
}

function valueFor(type: string, value: Node, decimals: string | undefined, emitter: Emitter): string {
  if (type === 's') return decimals === undefined ? asText(value) : `truncate(${asText(value)}, ${Number(decimals)})`
  if (type === 'f') return fixed(floatOf(value, emitter), Number(decimals ?? 6), emitter)
  if (decimals !== undefined) throw new UnknownRuby()
  if (value.kind === 'integer') return emitter.kept(`to_string(${value.text})`, 'text').text
  return emitter.kept(`to_string(to_int(floor(${floatOf(value, emitter)})))`, 'text').text
}

/** A number, or a text that is one. Ruby raises an error for other values. */
function floatOf(value: Node, emitter: Emitter): string {
  if (value.kind === 'float') return value.text
  if (value.kind === 'integer') return `to_float(${value.text})`
  if (value.kind !== 'any' && value.kind !== 'text') throw new UnknownRuby()
  emitter.failIf(`!match(${asText(value)}, r'^\\s*[-+]?\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?\\s*$')`)
  return floatIn(asText(value))
}

/** Remap refuses larger numbers of digits, and the product below would not be exact. */
const maxDecimals = 7

/**
 * A number with a fixed number of decimals. Ruby rounds the exact binary number, and ties to even digits. The product with a power of ten is
 * rounded itself, so its error decides where it seems to be a tie; the halves of the number give the error exactly.
 */
function fixed(number: string, decimals: number, emitter: Emitter): string {
  if (decimals > maxDecimals) throw new UnknownRuby()
  const power = `${10 ** decimals}.0`
  const kept = (expression: string, kind: Node['kind'] = 'float') => emitter.kept(expression, kind).text
  const signed = kept(number)
  const value = kept(`abs(${signed})`)
  const product = kept(`${value} * ${power}`)
  const split = kept(`134217729.0 * ${value}`)
  const high = kept(`${split} - (${split} - ${value})`)
  const error = kept(`(${high} * ${power} - ${product}) + (${value} - ${high}) * ${power}`)
  const whole = kept(`to_int(floor(${product}))`, 'integer')
  const rest = kept(`${product} - floor(${product})`)
  const rounded = kept(
    `if ${rest} > 0.5 || (${rest} == 0.5 && (${error} > 0.0 || (${error} == 0.0 && mod(${whole}, 2) == 1))) { ${whole} + 1 } else { ${whole} }`,
    'integer',
  )
  const digits = kept(`to_string(${rounded})`, 'text')
  const sign = kept(`if ${signed} < 0.0 { "-" } else { "" }`, 'text')
  if (decimals === 0) return kept(`${sign} + ${digits}`, 'text')
  const zeros = textLiteral('0'.repeat(decimals + 1))
  const all = kept(`(slice(${zeros}, strlen(${digits})) ?? "") + ${digits}`, 'text')
  return kept(`${sign} + (slice(${all}, 0, ${-decimals}) ?? "") + "." + (slice(${all}, ${-decimals}) ?? "")`, 'text')
}

/** A text with at least this number of characters. */
function padded(value: string, width: number, fill: string, emitter: Emitter): string {
  if (width === 0) return value
  const kept = emitter.kept(value, 'text').text
  const sign = fill.includes('0') ? '0' : ' '
  const space = emitter.kept(`slice(${textLiteral(sign.repeat(width))}, strlen(${kept})) ?? ""`, 'text').text
  // A sign comes before the zeros.
  if (sign === '0')
    return emitter.kept(
      `if starts_with(${kept}, "-") || starts_with(${kept}, "+") { truncate(${kept}, 1) + ${space} + replace(${kept}, r'^[-+]', "") } else { ${space} + ${kept} }`,
      'text',
    ).text
  return fill.includes('-') ? `${kept} + ${space}` : `${space} + ${kept}`
}
