// Converts Prometheus relabelling rules to lines of a program. The variable `labels` contains all labels. At the end, the program removes
// labels whose names begin with `__` and labels with empty values; the others are the labels of the stream.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { option, type Part, type Report, textIn, textsIn } from './context.ts'
import { piecesOf, textExpression, unknownVariables } from './fields.ts'
import { foundPath, pathLabel } from './file-paths.ts'
import { translateRegex } from './regex.ts'
import { type Place, textOf } from './tree.ts'

export interface Rule extends Place {
  readonly action: string
  readonly sources: readonly string[]
  readonly separator: string
  /** In Prometheus syntax; it must match the whole value. */
  readonly regex: string
  readonly target: string
  readonly replacement: string
  readonly modulus: number
}

const anything = '(.*)'

/** Options of a rule for the guide. */
export const ruleOptions = {
  action:
    '`replace`, `keep`, `drop`, `keepequal`, `dropequal`, `hashmod`, `labelmap`, `labeldrop`, `labelkeep`, `lowercase`, `uppercase`: statements of the program',
  source_labels: 'the labels whose values to join',
  separator: 'the separator of their values',
  regex: 'a regular expression for the whole value',
  target_label: 'the label to set',
  replacement: 'its value',
  modulus: 'the modulus of the hash',
} as const

export function ruleOf(part: Part, report: Report): Rule {
  report.options(part, { options: ruleOptions })
  return {
    file: part.file,
    line: part.line,
    action: (textIn(part, 'action') ?? 'replace').toLowerCase(),
    sources: textsIn(part, 'source_labels'),
    separator: textIn(part, 'separator') ?? ';',
    // An empty expression matches only an empty value; without an expression, all values match.
    regex: option(part, 'regex') === undefined ? anything : (textOf(option(part, 'regex')) ?? ''),
    target: textIn(part, 'target_label') ?? '',
    replacement: textIn(part, 'replacement') ?? '$1',
    modulus: Number(textIn(part, 'modulus') ?? 0),
  }
}

const at = (name: string) => `labels${fieldLiteral([name])}`
const textAt = (name: string) => `string!(${at(name)} || "")`

/** The joined values of the source labels. */
function joined({ sources, separator }: Rule): string {
  if (sources.length === 0) return '""'
  return sources.map(textAt).join(separator === '' ? ' + ' : ` + ${textLiteral(separator)} + `)
}

/** Whether a replacement text has group references. Environment variables look similar, but are not references. */
const hasGroups = (text: string) => piecesOf(text).some((piece) => piece.includes('$') && !/^\$\{[A-Z_]/.test(piece))

const validName = /^[a-zA-Z_][a-zA-Z0-9_]*$/

/** The lines of a rule. Reports a gap and returns undefined if it has no counterpart. */
export function ruleLines(rule: Rule, report: Report): readonly string[] | undefined {
  const { action, target, replacement } = rule
  if (action === foundPath) return [`${at(pathLabel)} = .file`]
  const refuse = (reason: string): undefined => {
    report.gap(rule, `relabel rule ${action}`, reason, 'Set or delete members of `labels` in the program.')
    return undefined
  }
  const others = [rule.regex, target, rule.separator, ...rule.sources, ...(action === 'replace' ? [] : [replacement])]
  const [variable] = others.flatMap(unknownVariables)
  if (variable !== undefined) return refuse(`only the replacement of a label may have a variable: \`${variable}\``)
  const regex = translateRegex(`^(?:${rule.regex})$`)
  if (!regex.ok) return refuse(`its regular expression is not valid: ${regex.reason}`)
  const literal = `r'${regex.text}'`
  const value = `value = ${joined(rule)}`
  switch (action) {
    case 'replace': {
      if (target === '') return refuse('it names no `target_label`')
      report.variables(rule, `relabel rule for ${target}`, replacement)
      const { readsEnvironment } = report
      return replaceLines(rule, value, literal, readsEnvironment) ?? refuse(`\`${target}\` is not a valid label name`)
    }
    case 'keep':
      return [value, `if !match(value, ${literal}) { abort }`]
    case 'drop':
      return [value, `if match(value, ${literal}) { abort }`]
    case 'keepequal':
      return [value, `if value != ${textAt(target)} { abort }`]
    case 'dropequal':
      return [value, `if value == ${textAt(target)} { abort }`]
    case 'lowercase':
      return [value, `${at(target)} = downcase(value)`]
    case 'uppercase':
      return [value, `${at(target)} = upcase(value)`]
    case 'labeldrop':
      return [`labels = filter(labels) -> |name, _value| { !match(name, ${literal}) }`]
    case 'labelkeep':
      return [`labels = filter(labels) -> |name, _value| { match(name, ${literal}) }`]
    case 'labelmap':
      return [
        `mapped = filter(labels) -> |name, value| { value != "" && match(name, ${literal}) }`,
        `labels = merge(labels, map_keys(mapped) -> |name| { replace(name, ${literal}, ${textLiteral(replacement)}) })`,
      ]
    case 'hashmod': {
      const { modulus } = rule
      if (!Number.isInteger(modulus) || modulus < 1 || modulus > 2_147_483_647)
        return refuse('its modulus is not a number')
      return [
        value,
        'hash = md5(value)',
        'high = parse_int(slice!(hash, 16, 24), 16) ?? 0',
        'low = parse_int(slice!(hash, 24, 32), 16) ?? 0',
        `${at(target)} = to_string(mod(mod(high, ${modulus}) * 4294967296 + low, ${modulus}))`,
      ]
    }
    default:
      return refuse('the action is unknown')
  }
}

/** Returns undefined if the target is not a valid name. */
function replaceLines(
  rule: Rule,
  value: string,
  literal: string,
  readsEnvironment: boolean,
): readonly string[] | undefined {
  const { target, replacement, regex } = rule
  const isAny = regex === anything || regex === '.*'
  if (!hasGroups(target)) {
    if (!validName.test(target)) return undefined
    // The replacement does not depend on the value.
    if (isAny && !hasGroups(replacement)) return [`${at(target)} = ${textExpression(replacement, readsEnvironment)}`]
    if (/^\$(?:1|\{1\})$/.test(replacement) && regex === anything) return [`${at(target)} = ${joined(rule)}`]
  }
  const filled = (piece: string) =>
    hasGroups(piece) ? `replace(value, ${literal}, ${textLiteral(piece)})` : textLiteral(piece)
  const made = textExpression(replacement, readsEnvironment, filled)
  const lines = hasGroups(target)
    ? [
        `  name = replace(value, ${literal}, ${textLiteral(target)})`,
        `  value = ${made}`,
        "  if match(name, r'^[a-zA-Z_][a-zA-Z0-9_]*$') { labels = object!(set!(labels, [name], value)) }",
      ]
    : [`  ${at(target)} = ${made}`]
  return [value, `if match(value, ${literal}) {`, ...lines, '}']
}
