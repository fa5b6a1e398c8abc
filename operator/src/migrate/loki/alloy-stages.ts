// Stages and options of stages that only Alloy has.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'
import { flagIn, option, type Part, textIn, textsIn } from './context.ts'
import { extracted, label, metadata } from './fields.ts'
import { type Lines, onSource, pattern, type Scope, type Stage } from './stage.ts'
import { bytesOf, isList, itemsOf, pairsOf, type Tree, textsOf } from './tree.ts'

const labelsFromMetadata: Stage = {
  name: 'labels: source_type',
  becomes: '`.labels`, from `.metadata`',
  options: { values: 'labels, and the names in the structured metadata' },
  build: (part) =>
    pairsOf(option(part, 'values')).map(([name, source]) => {
      const from = metadata(source === '' ? name : source)
      return `if is_string(${from}) { ${label(name)} = ${from} }`
    }),
}

const metadataByRegex: Stage = {
  name: 'structured_metadata: regex',
  becomes: '`.metadata`, from the extracted values and the labels whose names match; these labels are removed',
  options: { regex: 'a pattern for the names' },
  build: (part, scope) =>
    pattern(part, scope, textIn(part, 'regex') ?? '', (literal) => [
      `found = filter(object!(.extracted)) -> |name, value| { is_string(value) && match(name, ${literal}) }`,
      '.metadata = merge(object!(.metadata), found)',
      `found = filter(object!(.labels)) -> |name, _value| { match(name, ${literal}) }`,
      '.metadata = merge(object!(.metadata), found)',
      `.labels = filter(object!(.labels)) -> |name, _value| { !match(name, ${literal}) }`,
    ]),
}

const metadataDrop: Stage = {
  name: 'structured_metadata_drop',
  becomes: '`del`',
  options: {},
  build: (part) => textsOf(part.tree).map((name) => `del(${metadata(name)})`),
}

/** The regular expression for a pattern such as `<ip> - <_>`, and the names of its captures; or why there is none. */
function patternRegex(text: string): { readonly regex: string; readonly names: readonly string[] } | string {
  const pieces = text.split(/(<[A-Za-z_]\w*>)/).filter((piece) => piece !== '')
  const isCapture = (piece: string | undefined) => /^<\w+>$/.test(piece ?? '')
  if (!pieces.some(isCapture)) return 'it has no captures'
  if (pieces.some((piece, index) => isCapture(piece) && isCapture(pieces[index + 1]))) {
    return 'one capture follows another without a text between them'
  }
  const names = pieces.filter((piece) => isCapture(piece) && piece !== '<_>').map((piece) => piece.slice(1, -1))
  if (names.length === 0) return 'it has no named captures'
  if (new Set(names).size !== names.length) return 'two captures have the same name'
  const start = isCapture(pieces[0]) ? '' : escapedText(pieces[0] ?? '')
  const rest = start === '' ? pieces : pieces.slice(1)
  // A capture ends before the next text. If this text is missing, the capture contains the rest of the line.
  const from = (at: number): string => {
    const piece = rest[at]
    if (piece === undefined) return ''
    const group = piece === '<_>' ? '(?:' : `(?P${piece}`
    if (at + 1 >= rest.length) return `${group}.*)$`
    return `${group}.*?)(?:${escapedText(rest[at + 1] ?? '')}${from(at + 2)}|$)`
  }
  return { regex: `^(?s:${start}${from(0)})`, names }
}

const byPattern: Stage = {
  name: 'pattern',
  becomes: '`parse_regex`',
  options: {
    pattern: 'the pattern; its named captures become values',
    source: 'the value to parse',
    labels_from_groups: 'whether captures also become labels',
  },
  build: (part, scope) => {
    const found = patternRegex(textIn(part, 'pattern') ?? '')
    if (typeof found === 'string') return scope.refuse(part, found)
    const toLabels = flagIn(part, 'labels_from_groups') === true
    return pattern(part, scope, found.regex, (literal) =>
      onSource(textIn(part, 'source'), (subject) => [
        `found, error = parse_regex(${subject}, ${literal})`,
        'if error == null {',
        ...found.names.flatMap((name) => [
          `  if is_string(found.${name}) { ${extracted(name)} = found.${name} }`,
          ...(toLabels ? [`  if is_string(found.${name}) { ${label(name)} = found.${name} }`] : []),
        ]),
        '}',
      ]),
    )
  },
}

/** Kinds of values that `truncate` shortens, with their objects in the event. */
const kinds: Readonly<Record<string, string>> = {
  label: '.labels',
  structured_metadata: '.metadata',
  extracted: '.extracted',
}

function ruleLines(part: Part, rule: Tree, scope: Scope): Lines {
  const at: Part = { file: rule.file, line: rule.line, name: part.name, tree: rule }
  scope.report.options(at, { options: { limit: '', suffix: '', sources: '', source_type: '' } })
  const limit = bytesOf(textIn(at, 'limit'))
  const suffix = textIn(at, 'suffix') ?? ''
  const kind = textIn(at, 'source_type') ?? 'line'
  const length = (limit ?? 0) - Buffer.byteLength(suffix)
  if (limit === undefined || length <= 0) return scope.refuse(at, 'its limit is not a number of bytes')
  const short = (text: string) => `slice!(${text}, 0, ${length})${suffix === '' ? '' : ` + ${textLiteral(suffix)}`}`
  const mark = [
    `truncated = push(split(string!(${extracted('truncated')} || ""), ","), ${textLiteral(kind)})`,
    `${extracted('truncated')} = join!(filter(["extracted", "label", "line", "structured_metadata"]) -> |_index, name| { includes(truncated, name) }, ",")`,
  ]
  if (kind === 'line') {
    return [
      `if length(string!(.message)) > ${length} {`,
      `  .message = ${short('string!(.message)')}`,
      ...mark.map((line) => `  ${line}`),
      '}',
    ]
  }
  const object = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (object === undefined) return scope.refuse(at, `the source type \`${kind}\` is unknown`)
  const names = textsIn(at, 'sources')
  const isNamed = names.length === 0 ? '' : `includes([${names.map(textLiteral).join(', ')}], name) && `
  return [
    'is_truncated = false',
    `for_each(object!(${object})) -> |name, value| {`,
    `  if ${isNamed}is_string(value) && length(string!(value)) > ${length} {`,
    `    ${object} = set!(object!(${object}), [name], ${short('string!(value)')})`,
    '    is_truncated = true',
    '  }',
    '}',
    'if is_truncated {',
    ...mark.map((line) => `  ${line}`),
    '}',
  ]
}

const truncate: Stage = {
  name: 'truncate',
  becomes: '`slice`',
  options: { rule: 'the kind of the values, the limit and the suffix' },
  build: (part, scope) => {
    const given = option(part, 'rule')
    const rules = isList(given) ? itemsOf(given) : given === undefined ? [] : [given]
    if (rules.length === 0) return scope.refuse(part, 'it has no rule')
    return rules.flatMap((rule) => ruleLines(part, rule, scope))
  },
}

const luhn: Stage = {
  name: 'luhn',
  becomes: '`replace_with`, which checks the digits of each number',
  options: {
    replacement: 'the text for a number that passes the check',
    source: 'the value to change, which becomes the line',
    min_length: 'the minimum number of digits; 13 by default',
    delimiters: 'signs that may stand between digits',
  },
  build: (part, scope) => {
    const signs = textIn(part, 'delimiters') ?? ''
    const given = Number(textIn(part, 'min_length') ?? 13)
    const min = given < 1 ? 13 : given
    if (!Number.isInteger(min)) return scope.refuse(part, 'its minimum length is not a number')
    const between =
      signs === '' ? '' : `[${[...signs].map((sign) => (/\w/.test(sign) ? sign : `\\${sign}`)).join('')}]*`
    const text = textLiteral(textIn(part, 'replacement') || '**REDACTED**')
    return pattern(part, scope, `[0-9](?:${between}[0-9])*${between}`, (literal) =>
      onSource(textIn(part, 'source'), (subject) => [
        `.message = replace_with(${subject}, ${literal}) -> |m| {`,
        '  digits = replace(m.string, r\'[^0-9]\', "")',
        '  sum = 0',
        '  for_each(chunks(digits, 1)) -> |index, digit| {',
        '    number = to_int!(digit)',
        '    if mod(length(digits) - index, 2) == 0 { number = number * 2 }',
        '    if number > 9 { number = number - 9 }',
        '    sum = sum + number',
        '  }',
        '  _number, error = parse_int(digits, 10)',
        `  is_card = error == null && length(digits) >= ${min} && mod(sum, 10) == 0`,
        // The last of the signs behind the number stays.
        ...(between === '' ? [] : ['  last = replace(m.string, r\'^.*[0-9][^0-9]*?([^0-9]?)$\', "$1")']),
        `  if is_card { ${text}${between === '' ? '' : ' + last'} } else { m.string }`,
        '}',
      ]),
    )
  },
}

export const alloyStages: readonly Stage[] = [
  labelsFromMetadata,
  metadataByRegex,
  metadataDrop,
  byPattern,
  truncate,
  luhn,
]
