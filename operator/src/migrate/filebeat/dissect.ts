// The processor that splits a text at fixed delimiters. Each part ends at the first occurrence of the delimiter after it.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, type Part, type Report, textIn } from '../loki/context.ts'
import { indent, regexLiteral } from '../otel/text.ts'
import { fieldOf } from './conditions.ts'
import { falseTexts, flagLine, type Processor, quiet, trueTexts, when } from './processor.ts'

interface Key {
  readonly name: string
  /** The number of its group. */
  readonly group: number
  /** Further parts with the same name are appended after their delimiter. */
  readonly isAdded: boolean
  /** Parts of a name are joined in this order. */
  readonly order: number
  readonly before: string
  readonly type: string | undefined
}

/** The text without spaces at its end, as a part with a type is read. */
const bare = (value: string) => `replace(${value}, r' +$', "")`
const isAmong = (value: string, ...texts: readonly string[]) => `includes(${JSON.stringify(texts)}, ${bare(value)})`

/** Expressions for a part with a type. A text that is not of the type stays as it is. */
const types: Readonly<Record<string, (value: string) => string>> = {
  integer: (value) =>
    `if (to_int(${bare(value)}) ?? 2147483648) <= 2147483647 && (to_int(${bare(value)}) ?? -2147483649) >= -2147483648 { to_int(${bare(value)}) ?? ${value} } else { ${value} }`,
  long: (value) => `to_int(${bare(value)}) ?? ${value}`,
  float: (value) => `to_float(${bare(value)}) ?? ${value}`,
  double: (value) => `to_float(${bare(value)}) ?? ${value}`,
  boolean: (value) =>
    `if ${isAmong(value, ...trueTexts)} { true } else if ${isAmong(value, ...falseTexts)} { false } else { ${value} }`,
  string: bare,
  ip: (value) => `if is_ipv4(${bare(value)}) || is_ipv6(${bare(value)}) { ${bare(value)} } else { ${value} }`,
}

/** An expression for the white space, or other characters, that the processor removes from parts. */
function trimmed(part: Part, value: string, isTyped: boolean): string {
  const mode = textIn(part, 'trim_values') ?? 'none'
  // Filebeat does not trim if a part has a type.
  if (mode === 'none' || isTyped) return value
  const set = `[${[...(textIn(part, 'trim_chars') ?? ' ')].map((sign) => RegExp.escape(sign)).join('')}]+`
  const left = mode === 'right' ? value : `replace(${value}, r'^${set}', "")`
  return mode === 'left' ? left : `replace(${left}, r'${set}$', "")`
}

export const dissect: Processor = {
  name: 'dissect',
  becomes: '`parse_regex`, and the flag `dissect_parsing_error` in `log.flags` if the text does not match',
  options: {
    ...when,
    tokenizer: 'the expression',
    field: 'the field with the text',
    target_prefix: 'the object for the parts',
    overwrite_keys: 'whether to replace existing fields',
    trim_values: 'which ends are trimmed',
    trim_chars: 'the characters that are removed',
  },
  itself: quiet,
  build: (part, report, failed) => {
    const found = keysOf(part, report)
    if (found === undefined) return undefined
    const { keys, expression } = found
    const isTyped = keys.some(({ type }) => type !== undefined)
    const values = new Map<string, { value: string; type: string | undefined }>()
    for (const { name, group, isAdded, before, type } of keys) {
      const value = trimmed(part, `(string(parts."${group}") ?? "")`, isTyped)
      const earlier = values.get(name)
      if (isAdded && earlier !== undefined)
        values.set(name, { ...earlier, value: `${earlier.value} + ${textLiteral(before || ' ')} + ${value}` })
      else values.set(name, { value, type })
    }
    const prefix = textIn(part, 'target_prefix') ?? 'dissect'
    const target = (name: string) => fieldOf(prefix === '' ? name : `${prefix}.${name}`)
    // Without `overwrite_keys`, one existing field leaves the event unchanged.
    const free =
      flagIn(part, 'overwrite_keys') === true ? [] : [...values.keys()].map((name) => `!exists(${target(name)})`)
    const lines = [...values].map(
      ([name, { value, type }]) => `${target(name)} = ${(types[type ?? ''] ?? String)(`(${value})`)}`,
    )
    const field = fieldOf(textIn(part, 'field') ?? 'message')
    const then = failed === '' ? '' : ` else { ${failed} }`
    return [
      `if is_string(${field}) {`,
      `  text = string(${field}) ?? ""`,
      `  parts, error = parse_regex(text, ${regexLiteral(`(?s)^${expression}$`)}, numeric_groups: true)`,
      '  if error != null || text == "" {',
      `    ${flagLine('dissect_parsing_error')}`,
      ...(flagIn(part, 'ignore_failure') === true || failed === '' ? [] : [`    ${failed}`]),
      `  } else ${free.length === 0 ? '' : `if ${free.join(' && ')} `}{`,
      indent(indent(lines.join('\n') || 'null')),
      `  }${free.length === 0 ? '' : then}`,
      `}${then}`,
    ]
  },
}

/** The parts of `%{+name/2#3->|integer}`. */
const keyPattern = /^([+*&?]?)(.*?)(?:\/(\d{1,2}))?(?:#(\d{1,2}))?(->)?(?:\|(\w+))?(->)?$/

/** The keys of a tokenizer, and a regular expression with a group for each. Reports a gap and returns undefined for indirect keys. */
function keysOf(part: Part, report: Report): { keys: readonly Key[]; expression: string } | undefined {
  const tokenizer = textIn(part, 'tokenizer') ?? ''
  const found = [...tokenizer.matchAll(/%\{([^}]*)\}/g)]
  const keys: Key[] = []
  let expression = ''
  let at = 0
  for (const [index, each] of found.entries()) {
    const inner = each[1] ?? ''
    const [, sign = '', name = '', order, length, padded, type, paddedLast] = keyPattern.exec(inner) ?? []
    const before = tokenizer.slice(at, each.index)
    at = each.index + each[0].length
    if (sign === '*' || sign === '&' || (type !== undefined && !Object.hasOwn(types, type))) {
      const reason = 'keys that come from the text have no counterpart'
      report.gap(part, `dissect: %{${inner}}`, reason, 'Use `parse_regex` instead.')
      return undefined
    }
    const after = tokenizer.slice(at, found[index + 1]?.index)
    const isSkipped = sign === '?' || name === ''
    const text = length === undefined ? textBefore(after) : `.{${length}}`
    expression += `${index === 0 ? RegExp.escape(before) : ''}${isSkipped ? `(?:${text})` : `(${text})`}`
    const isPadded = (padded ?? paddedLast) !== undefined && after !== ''
    // A padded part takes all delimiters after it, of which each begins one character after the other.
    const isOfOneSign = new Set(after).size === 1
    expression += RegExp.escape(after) + (isPadded && isOfOneSign ? `${RegExp.escape(after[0] ?? '')}*` : '')
    if (isSkipped) continue
    const group = keys.length + 1
    keys.push({ name, group, isAdded: sign === '+', order: Number(order ?? 0), before, type })
  }
  // Text after the last delimiter is ignored.
  const isOpen = at < tokenizer.length
  return {
    keys: keys.toSorted((one, other) => one.order - other.order),
    expression: `${expression}${isOpen ? '.*' : ''}`,
  }
}

/** A pattern for the text before a delimiter. */
function textBefore(delimiter: string): string {
  if (delimiter === '') return '.*'
  return [...delimiter].length === 1 ? `[^${RegExp.escape(delimiter)}]*` : '.*?'
}
