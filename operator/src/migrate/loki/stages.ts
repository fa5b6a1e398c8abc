// Converts the stages of a Promtail or Alloy pipeline to lines of a program. They read and write the fields of `fields.ts`, as the old
// stages do with the entry, its labels and the extracted values. So stages are independent, and the program keeps their order.

import { textLiteral } from '@penstock/agent/config'
import { flagIn, option, textIn, textsIn } from './context.ts'
import { extracted, label, labelText, lineText, metadata, textExpression } from './fields.ts'
import { json } from './json.ts'
import { logfmt } from './logfmt.ts'
import { colours, groupNames, segmentsOf, withoutRepeatedNames } from './regex.ts'
import { selectorCondition } from './selector.ts'
import { block, indent, type Lines, onSource, pattern, type Scope, type Stage } from './stage.ts'
import { type Fields, templateLines } from './template.ts'
import { timestamp } from './times.ts'
import { bytesOf, itemsOf, millisecondsOf, pairsOf, textsOf } from './tree.ts'

const regex: Stage = {
  name: 'regex',
  becomes: '`parse_regex`',
  options: {
    expression: 'the pattern; its named groups become values',
    source: 'the value to parse',
    labels_from_groups: 'whether groups also become labels',
  },
  build: (part, scope) => {
    const expression = withoutRepeatedNames(textIn(part, 'expression') ?? '')
    const names = groupNames(expression)
    if (expression === '') return scope.refuse(part, 'it has no regular expression')
    if (names.length === 0) {
      scope.report.replaced(
        part,
        'stage regex',
        'without a named group, the stage changes nothing',
        'Remove the stage.',
      )
      return []
    }
    return pattern(part, scope, expression, (literal) =>
      onSource(textIn(part, 'source'), (subject) => [
        `found, error = parse_regex(${subject}, ${literal})`,
        'if error == null {',
        ...names.map((name) => `  ${extracted(name)} = found.${name} || ""`),
        ...(flagIn(part, 'labels_from_groups') === true
          ? names.map((name) => `  ${label(name)} = found.${name} || ""`)
          : []),
        '}',
      ]),
    )
  },
}

/** The fields of a template: the current value, the line, and the extracted values. */
const templateFields =
  (value: string): Fields =>
  (name) =>
    name === 'Entry' ? { text: lineText } : { path: name === 'Value' ? value : extracted(name) }
/** The stage `replace` has no field for the line. */
const replaceFields: Fields = (name) => (name === 'Value' ? { text: 'given' } : { path: extracted(name) })

const replace: Stage = {
  name: 'replace',
  becomes: '`replace_with`',
  options: {
    expression: 'the pattern; its groups are replaced, and the text between them stays',
    source: 'the value to change',
    replace: 'the replacement of a group; a template can use `.Value`',
  },
  build: (part, scope) => {
    const segments = segmentsOf(textIn(part, 'expression') ?? '')
    if (segments === undefined) {
      return scope.refuse(part, 'one of its groups is repeated, or groups with names are inside each other')
    }
    const made = templateLines(textIn(part, 'replace') ?? '', replaceFields)
    if (!made.ok) return scope.refuse(part, `its template has no counterpart: ${made.reason}`)
    const isConstant = made.lines.length === 1 && !made.lines[0]?.includes('given')
    const names = segments.pieces.flatMap(({ name }) => name ?? [])
    const pieces = segments.pieces.flatMap(({ isGroup, name }, index): string[] => {
      const piece = `string!(m.captures[${index}] || "")`
      if (!isGroup) return [`out = out + ${piece}`]
      const lines = [
        ...(isConstant ? [] : [`given = ${piece}`]),
        ...made.lines,
        ...(made.mayFail ? ['if failed { has_failed = true }'] : []),
        'out = out + text',
        // Only the groups of the first match become values.
        ...(name === undefined ? [] : [`if !is_found { found = set!(found, [${textLiteral(name)}], text) }`]),
      ]
      return block(`!is_null(m.captures[${index}])`, lines)
    })
    const source = textIn(part, 'source') ?? ''
    const target = source === '' ? '.message' : extracted(source)
    return pattern(part, scope, segments.pattern, (literal) =>
      onSource(source, (subject) => {
        const replaced = [
          `replace_with(${subject}, ${literal}) -> |m| {`,
          '  out = ""',
          ...indent(pieces),
          ...(names.length === 0 ? [] : ['  is_found = true']),
          '  out',
          '}',
        ]
        const store = names.length === 0 ? [] : ['.extracted = merge(object!(.extracted), object!(found))']
        const begin = names.length === 0 ? [] : ['found = {}', 'is_found = false']
        const lines = made.mayFail
          ? [
              ...begin,
              'has_failed = false',
              `changed = ${replaced.join('\n')}`,
              ...block('!has_failed', [`${target} = changed`, ...store]),
            ]
          : [...begin, `${target} = ${replaced.join('\n')}`, ...store]
        return whenThere(made.required, lines)
      }),
    )
  },
}

/** Lines that need values. Go's templates fail if one is missing. */
const whenThere = (paths: readonly string[], lines: Lines): Lines =>
  paths.length === 0 ? lines : block(paths.map((path) => `is_string(${path})`).join(' && '), lines)

const template: Stage = {
  name: 'template',
  becomes: 'statements that build a text',
  options: { source: 'the value to set', template: 'the text; `if`, and the common functions' },
  build: (part, scope) => {
    const source = textIn(part, 'source') ?? ''
    const made = templateLines(textIn(part, 'template') ?? '', templateFields(extracted(source)))
    if (!made.ok) return scope.refuse(part, `its template has no counterpart: ${made.reason}`)
    const store = [
      ...block('text == ""', [`del(${extracted(source)})`]).slice(0, -1),
      `} else {`,
      `  ${extracted(source)} = text`,
      '}',
    ]
    return whenThere(made.required, [...made.lines, ...(made.mayFail ? block('!failed', store) : store)])
  },
}

const labels: Stage = {
  name: 'labels',
  becomes: '`.labels`, which are the labels of the sink',
  options: {},
  takesNames: true,
  build: (part) =>
    pairsOf(part.tree).map(([name, source]) => {
      const from = extracted(source === '' ? name : source)
      return `if is_string(${from}) { ${label(name)} = ${from} }`
    }),
}

const structuredMetadata: Stage = {
  name: 'structured_metadata',
  becomes: '`.metadata`, which is `structured_metadata` of the sink; a label with the name moves there',
  options: {},
  takesNames: true,
  build: (part) => {
    const all = pairsOf(part.tree).map(([name, source]) => [name, source === '' ? name : source] as const)
    return [
      ...all.map(([name, from]) => `if is_string(${extracted(from)}) { ${metadata(name)} = ${extracted(from)} }`),
      ...all.map(([name, from]) => `if is_string(${label(from)}) { ${metadata(name)} = ${label(from)} }`),
      ...[...new Set(all.map(([, from]) => from))].map((from) => `del(${label(from)})`),
    ]
  },
}

const staticLabels: Stage = {
  name: 'static_labels',
  becomes: '`.labels`',
  options: {},
  takesNames: true,
  expresses: true,
  build: (part, { report }) =>
    pairsOf(part.tree).flatMap(([name, value, tree]) => {
      // An empty value does not replace a label.
      if (value === '') return []
      report.variables(tree, 'stage static_labels', value)
      return [`${label(name)} = ${textExpression(value, report.readsEnvironment)}`]
    }),
}

const labelDrop: Stage = {
  name: 'labeldrop',
  becomes: '`del`',
  options: {},
  build: (part) => textsOf(part.tree).map((name) => `del(${label(name)})`),
}

const labelAllow: Stage = {
  name: 'labelallow',
  becomes: 'a filter of `.labels`',
  options: {},
  build: (part) => [
    `.labels = filter(object!(.labels)) -> |name, _value| { includes([${textsOf(part.tree).map(textLiteral).join(', ')}], name) }`,
  ],
}

const output: Stage = {
  name: 'output',
  becomes: '`.message`, which is the line',
  options: { source: 'the value that becomes the line' },
  build: (part) => {
    const from = extracted(textIn(part, 'source') ?? '')
    return [`if is_string(${from}) { .message = ${from} }`]
  },
}

const drop: Stage = {
  name: 'drop',
  becomes: '`abort`, which drops the event',
  options: {
    source: 'the values to check',
    separator: 'the separator of several values',
    value: '`==`',
    expression: '`match`',
    older_than: 'the age of the event',
    longer_than: 'the length of the line in bytes',
  },
  itself: { drop_counter_reason: 'the metric `component_discarded_events_total` of the transform counts the events' },
  build: (part, scope) => {
    const sources = textsIn(part, 'source')
      .flatMap((text) => text.split(','))
      .map((text) => text.trim())
      .filter((text) => text !== '')
    const separator = textIn(part, 'separator') ?? ';'
    const value = textIn(part, 'value')
    const expression = textIn(part, 'expression')
    const tests: string[] = []
    const longer = textIn(part, 'longer_than')
    const older = textIn(part, 'older_than')
    if (longer !== undefined) {
      const bytes = bytesOf(longer)
      if (bytes === undefined) return scope.refuse(part, `\`${longer}\` is not a number of bytes`)
      tests.push(`length(${lineText}) > ${bytes}`)
    }
    if (older !== undefined) {
      const ms = millisecondsOf(older)
      if (ms === undefined) return scope.refuse(part, `\`${older}\` is not a duration`)
      tests.push(
        `to_unix_timestamp(now(), unit: "milliseconds") - to_unix_timestamp(timestamp!(.timestamp), unit: "milliseconds") > ${Math.round(ms)}`,
      )
    }
    const [first] = sources
    const all =
      first === undefined
        ? lineText
        : sources.length === 1
          ? `string!(${extracted(first)} || "")`
          : `join!(filter([${sources.map(extracted).join(', ')}]) -> |_index, item| { is_string(item) }, ${textLiteral(separator)})`
    // A missing value counts as an empty one in a comparison. A comparison with null never drops the event.
    const isCompared = value !== undefined || expression !== undefined
    tests.push(
      ...sources.map((name) => {
        const field = extracted(name)
        return isCompared ? `(!exists(${field}) || is_string(${field}))` : `exists(${field})`
      }),
    )
    if (value !== undefined) tests.push(`${all} == ${textLiteral(value)}`)
    const finish = (more: Lines): Lines => {
      const conditions = [...tests, ...more]
      if (conditions.length === 0) return scope.refuse(part, 'it has no condition')
      return [`if ${conditions.join(' && ')} { abort }`]
    }
    if (expression === undefined) return finish([])
    return pattern(part, scope, expression, (literal) => finish([`match(${all}, ${literal})`]))
  },
}

const match: Stage = {
  name: 'match',
  becomes: '`if` around the statements of its stages',
  options: {
    selector: 'the condition: labels and line filters',
    stages: 'the statements',
    action: '`keep`: the statements; `drop`: `abort`',
  },
  itself: {
    pipeline_name: 'metrics carry the name of the transform',
    drop_counter_reason: 'the metric `component_discarded_events_total` of the transform counts the events',
  },
  build: (part, scope) => {
    const condition = selectorCondition(textIn(part, 'selector') ?? '')
    if (!condition.ok) return scope.refuse(part, condition.reason)
    if (textIn(part, 'action') === 'drop') {
      if (itemsOf(option(part, 'stages')).length > 0) {
        const reason = 'the old agent rejects stages together with the action `drop`'
        scope.report.gap(part, 'stage match: stages', reason, 'Remove the stages, or the action.')
      }
      return [`if ${condition.text} { abort }`]
    }
    if (itemsOf(option(part, 'stages')).length === 0) return scope.refuse(part, 'it has no stages')
    return block(condition.text, [
      // Inner stages begin with the labels as extracted values.
      'for_each(object!(.labels)) -> |name, value| { .extracted = set!(object!(.extracted), [name], value) }',
      ...scope.nested(part),
    ])
  },
}

const pack: Stage = {
  name: 'pack',
  becomes: '`encode_json`',
  options: { labels: 'the labels to put into the line', ingest_timestamp: '`now()`; true by default' },
  build: (part) => {
    const names = textsIn(part, 'labels')
    return [
      `packed = filter({ ${names.map((name) => `${textLiteral(name)}: ${extracted(name)}`).join(', ')} }) -> |_name, value| { is_string(value) }`,
      ...names.map((name) => `if is_string(${extracted(name)}) { del(${label(name)}) }`),
      'comma = ","',
      'if is_empty(packed) { comma = "" }',
      `.message = replace(encode_json(packed), r'\\}$', comma) + "\\"_entry\\":" + encode_json(${lineText}) + "\\}"`,
      ...(flagIn(part, 'ingest_timestamp') === false ? [] : ['.timestamp = now()']),
    ]
  },
}

const tenant: Stage = {
  name: 'tenant',
  becomes: '`tenant_id` of the sink',
  options: { source: 'the value', label: 'the label', value: 'the text' },
  expresses: true,
  build: (part, scope) => {
    const [source, name, value] = [textIn(part, 'source'), textIn(part, 'label'), textIn(part, 'value')]
    const to = label('__tenant_id__')
    if (value !== undefined) {
      scope.report.variables(part, 'stage tenant', value)
      return [`${to} = ${textExpression(value, scope.report.readsEnvironment)}`]
    }
    const from =
      source === undefined ? (name === undefined ? undefined : labelText(name)) : `string!(${extracted(source)} || "")`
    if (from === undefined) return scope.refuse(part, 'it names no tenant')
    return [`if ${from} != "" { ${to} = ${from} }`]
  },
}

const sampling: Stage = {
  name: 'sampling',
  becomes: '`abort`, at random',
  options: { rate: 'the share of events to keep' },
  itself: { drop_counter_reason: 'the metric `component_discarded_events_total` of the transform counts the events' },
  build: (part, scope) => {
    const rate = Number(textIn(part, 'rate'))
    if (!(rate >= 0 && rate <= 1)) return scope.refuse(part, 'its rate must be from 0 to 1')
    if (rate === 1) return ['# Keeps all events.']
    return [rate === 0 ? 'abort' : `if random_float(0.0, 1.0) >= ${rate} { abort }`]
  },
}

const decolorize: Stage = {
  name: 'decolorize',
  becomes: '`replace`',
  options: {},
  build: () => [`.message = replace(${lineText}, r'${colours}', "")`],
}

/** The value of the source replaces the result of the stage. */
const ofRuntime = (isPods: boolean, values: Lines, otherwise: Lines): Lines =>
  isPods
    ? ['if is_string(.stream) {', '  .labels.stream = .stream', '  .extracted.stream = .stream', '}', ...values]
    : otherwise

/** The time of the runtime as an extracted value, if other stages may read it. */
const timeOfRuntime = (name: string, mentions: Scope['mentions']): Lines =>
  mentions(name)
    ? [`${extracted(name)} = format_timestamp!(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.9fZ")`]
    : []

const docker: Stage = {
  name: 'docker',
  becomes: 'nothing for pods, whose lines the source parses; otherwise `parse_json`',
  options: {},
  build: (_, { isPods, mentions }) =>
    ofRuntime(
      isPods,
      ['.extracted.output = .message', ...timeOfRuntime('timestamp', mentions)],
      [
        `parsed, error = parse_json(${lineText})`,
        'if error == null && is_object(parsed) {',
        '  .extracted.output = parsed.log',
        '  .extracted.stream = parsed.stream',
        '  .extracted.timestamp = parsed.time',
        '  if is_string(parsed.stream) { .labels.stream = parsed.stream }',
        '  time, error = parse_timestamp(string(parsed.time) ?? "", "%+")',
        '  if error == null { .timestamp = time }',
        '  if is_string(parsed.log) { .message = parsed.log }',
        '}',
      ],
    ),
}

const cri: Stage = {
  name: 'cri',
  becomes: 'nothing for pods, whose lines the source parses and joins; otherwise `parse_regex`',
  options: {},
  itself: {
    max_partial_lines: 'the source joins partial lines up to `max_merged_line_bytes`',
    max_partial_line_size: 'the source joins partial lines up to `max_merged_line_bytes`',
    max_partial_line_size_truncate: '`max_merged_line_action` of the source',
  },
  build: (_, { isPods, mentions }) =>
    ofRuntime(
      isPods,
      ['.extracted.content = .message', '.extracted.flags = "F"', ...timeOfRuntime('time', mentions)],
      [
        `found, error = parse_regex(${lineText}, r'^(?s)(?P<time>[^\\t\\n\\f\\r\\x20]+?) (?P<stream>stdout|stderr) (?P<flags>[^\\t\\n\\f\\r\\x20]+?) (?P<content>.*)$')`,
        'if error == null {',
        ...['time', 'stream', 'flags', 'content'].map((name) => `  .extracted.${name} = found.${name}`),
        '  .labels.stream = found.stream',
        '  time, error = parse_timestamp(found.time, "%+")',
        '  if error == null { .timestamp = time }',
        '  .message = found.content',
        '}',
      ],
    ),
}

export const stages: readonly Stage[] = [
  docker,
  cri,
  json,
  logfmt,
  regex,
  replace,
  template,
  match,
  labels,
  staticLabels,
  structuredMetadata,
  labelDrop,
  labelAllow,
  timestamp,
  output,
  drop,
  pack,
  tenant,
  sampling,
  decolorize,
]
