// Converts Filebeat processors to remap and filter transforms.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { flagIn, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, isList, isMap, itemsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { goLayout, indent, regexLiteral } from '../otel/text.ts'
import { assigned, conditionOf, fieldOf, textOfField } from './conditions.ts'
import { decodeBase64, decodeCsv, decodeXml, expansion, extractArray, intoRoot, syslog } from './decoders.ts'
import { dissect } from './dissect.ts'
import { type Processor, quiet, when } from './processor.ts'
import { refusedProcessors } from './refused-processors.ts'

const addFields = (name: string, byDefault: string): Processor => ({
  name,
  becomes: 'a remap transform',
  options: { ...when, fields: 'the fields', labels: 'the fields', target: 'the object for them' },
  itself: quiet,
  build: (part, report) => {
    const target = textIn(part, 'target') ?? byDefault
    const fields = option(part, name === 'add_labels' ? 'labels' : 'fields')
    return isMap(fields)
      ? [...fields.value].map(([key, item]) => {
          const value = assigned(item, `${name}: ${key}`, report)
          return `${fieldOf(target === '' ? key : `${target}.${key}`)} = ${value}`
        })
      : []
  },
})

const addTags: Processor = {
  name: 'add_tags',
  becomes: 'a remap transform',
  options: { ...when, tags: 'the tags', target: 'the field' },
  build: (part, report) => tagLines(option(part, 'tags'), report, textIn(part, 'target') ?? 'tags'),
}

export function tagLines(tags: Tree | undefined, report: Report, target = 'tags'): string[] {
  if (tags === undefined || textsOf(tags).length === 0) return []
  const items = isList(tags) ? tags.value : [tags]
  const texts = items.map(({ file, line, value }) => assigned({ file, line, value }, 'tags', report))
  return [`${fieldOf(target)} = append(array(${fieldOf(target)}) ?? [], [${texts.join(', ')}])`]
}

const dropEvent: Processor = {
  name: 'drop_event',
  becomes: 'a filter transform',
  options: when,
  build: () => [],
}

const dropFields: Processor = {
  name: 'drop_fields',
  becomes: '`del`',
  options: { ...when, fields: 'the fields; a name between slashes is a regular expression' },
  itself: quiet,
  build: (part) =>
    textsIn(part, 'fields').map((name) => {
      const regex = /^\/(.*)\/$/s.exec(name)?.[1]
      if (regex === undefined) return `del(${fieldOf(name)})`
      const literal = regexLiteral(regex)
      // The expression applies to the whole names of fields and of objects.
      return [
        `. = filter(.) -> |key, _value| { !match(key, ${literal}) }`,
        'for_each(flatten(.)) -> |key, _value| {',
        '  names = split(key, ".")',
        '  for_each(names) -> |index, _name| {',
        '    path = slice(names, 0, index + 1) ?? []',
        `    if match(join(path, ".") ?? "", ${literal}) { . = object(remove(., path) ?? null) ?? . }`,
        '  }',
        '}',
      ].join('\n')
    }),
}

const includeFields: Processor = {
  name: 'include_fields',
  becomes: 'a remap transform that keeps some fields',
  options: { ...when, fields: 'the fields' },
  build: (part) => {
    const names = textsIn(part, 'fields')
    return [
      'kept = { "timestamp": .timestamp }',
      ...names.map((name) => `if exists(${fieldOf(name)}) { kept${fieldLiteral(name.split('.'))} = ${fieldOf(name)} }`),
      '. = kept',
    ]
  },
}

const pairs = (name: 'rename' | 'copy_fields'): Processor => ({
  name,
  becomes: 'a remap transform',
  options: { ...when, fields: 'pairs of fields' },
  itself: quiet,
  build: (part) =>
    itemsOf(option(part, 'fields')).flatMap((item) => {
      const from = textOf(below(item, 'from'))
      const to = textOf(below(item, 'to'))
      if (from === undefined || to === undefined) return []
      const value = name === 'rename' ? `del(${fieldOf(from)})` : fieldOf(from)
      return [`if exists(${fieldOf(from)}) && !exists(${fieldOf(to)}) { ${fieldOf(to)} = ${value} }`]
    }),
})

const replace: Processor = {
  name: 'replace',
  becomes: '`replace`',
  options: { ...when, fields: 'fields with expressions' },
  itself: quiet,
  build: (part) =>
    itemsOf(option(part, 'fields')).flatMap((item) => {
      const name = textOf(below(item, 'field'))
      const regex = textOf(below(item, 'pattern'))
      if (name === undefined || regex === undefined) return []
      const by = (textOf(below(item, 'replacement')) ?? '').replace(/\$\{?(\w+)\}?/g, '$${$1}')
      return [
        `if is_string(${fieldOf(name)}) { ${fieldOf(name)} = replace(string!(${fieldOf(name)}), ${regexLiteral(regex)}, ${textLiteral(by)}) }`,
      ]
    }),
}

const conversions: Readonly<Record<string, (field: string) => string>> = {
  integer: (field) => `to_int(${field}) ?? ${field}`,
  long: (field) => `to_int(${field}) ?? ${field}`,
  float: (field) => `to_float(${field}) ?? ${field}`,
  double: (field) => `to_float(${field}) ?? ${field}`,
  string: (field) => `to_string(${field}) ?? ${field}`,
  boolean: (field) => `to_bool(${field}) ?? ${field}`,
  ip: (field) => field,
}

const convert: Processor = {
  name: 'convert',
  becomes: '`to_int`, `to_float`, `to_bool`, `to_string`',
  options: { ...when, fields: 'fields with types', mode: 'whether to keep the source field' },
  itself: quiet,
  build: (part, report) =>
    itemsOf(option(part, 'fields')).flatMap((item) => {
      const from = textOf(below(item, 'from'))
      const type = textOf(below(item, 'type'))
      if (from === undefined) return []
      const to = textOf(below(item, 'to')) ?? from
      const make = type === undefined ? (field: string) => field : conversions[type]
      if (make === undefined) {
        report.gap(
          item,
          `convert: ${type}`,
          `the type \`${type}\` has no counterpart`,
          'Convert the field in a remap transform.',
        )
        return []
      }
      const lines = [`${fieldOf(to)} = ${make(fieldOf(from))}`]
      if (to !== from && textIn(part, 'mode') === 'rename') lines.push(`del(${fieldOf(from)})`)
      return [`if exists(${fieldOf(from)}) {\n${indent(lines.join('\n'))}\n}`]
    }),
}

/** Texts in texts beyond this depth stay texts. */
const maxDepth = 5

/** The object with the texts in its members decoded. */
function decodedMembers(object: string, depth: number, takesLists: boolean): string {
  const [value, inner] = [`value${depth}`, `inner${depth}`]
  const deeper =
    depth > 2 ? `if is_object(${inner}) { ${inner} = ${decodedMembers(inner, depth - 1, takesLists)} }; ` : ''
  const result = takesLists ? inner : `if is_array(${inner}) { ${value} } else { ${inner} }`
  return `map_values(object!(${object})) -> |${value}| { if is_string(${value}) { ${inner} = parse_json(string!(${value})) ?? ${value}; ${deeper}${result} } else { ${value} } }`
}

const decodeJson: Processor = {
  name: 'decode_json_fields',
  becomes: '`parse_json`',
  options: {
    ...when,
    fields: 'the fields with texts',
    target: 'the object for the members; if empty, the root of the event',
    overwrite_keys: 'which of two fields with the same name wins',
    process_array: 'whether lists are decoded',
    expand_keys: 'whether names are divided at their dots',
    max_depth: 'whether texts in the result are decoded, too',
    document_id: 'the id of the document',
  },
  itself: { ...quiet, add_error_key: 'text that is not JSON stays unchanged' },
  build: (part) => {
    const target = textIn(part, 'target')
    const overwrites = flagIn(part, 'overwrite_keys') === true
    const depth = Math.min(Number(textIn(part, 'max_depth') ?? 1) || 1, maxDepth)
    const takesLists = flagIn(part, 'process_array') === true
    const id = textIn(part, 'document_id')
    return textsIn(part, 'fields').flatMap((name) => [
      `decoded = parse_json(string(${fieldOf(name)}) ?? "") ?? null`,
      ...(depth > 1 ? [`if is_object(decoded) { decoded = ${decodedMembers('decoded', depth, takesLists)} }`] : []),
      ...expansion(flagIn(part, 'expand_keys') === true),
      ...(target !== '' && takesLists ? [`if is_array(decoded) { ${fieldOf(target ?? name)} = decoded }`] : []),
      'if is_object(decoded) {',
      ...(id === undefined
        ? []
        : [
            `  if is_string(decoded${fieldOf(id)}) { ${fieldOf('@metadata._id')} = decoded${fieldOf(id)} }`,
            `  del(decoded${fieldOf(id)})`,
          ]),
      ...(target === undefined
        ? [`  ${fieldOf(name)} = decoded`]
        : target === ''
          ? intoRoot(overwrites).map((line) => `  ${line}`)
          : [`  ${fieldOf(target)} = decoded`]),
      '}',
    ])
  },
}

const timestamp: Processor = {
  name: 'timestamp',
  becomes: '`parse_timestamp`',
  options: {
    ...when,
    field: 'the field with the text',
    layouts: 'the layouts',
    target_field: 'the field for the time',
    timezone: 'the default time zone',
  },
  itself: { ...quiet, test: 'use `spec.tests`' },
  build: (part, report) => {
    const from = textIn(part, 'field') ?? ''
    const target = fieldOf(textIn(part, 'target_field') ?? '@timestamp')
    const zone = textIn(part, 'timezone')
    const isNamed = zone === undefined || /^(?:UTC|GMT|[A-Za-z]+\/[A-Za-z_/+-]+)$/.test(zone)
    if (!isNamed)
      report.gap(
        part,
        'timestamp: timezone',
        'the time zone is not a name of the IANA database',
        'Write one such as `Europe/Berlin`.',
      )
    const inZone = `, timezone: ${textLiteral(isNamed ? (zone ?? 'UTC') : 'UTC')}`
    const lines = textsIn(part, 'layouts').map((layout) => {
      if (layout === 'UNIX') return `time = from_unix_timestamp(to_int(${fieldOf(from)}) ?? -1) ?? null`
      if (layout === 'UNIX_MS')
        return `time = from_unix_timestamp(to_int(${fieldOf(from)}) ?? -1, unit: "milliseconds") ?? null`
      return `time = parse_timestamp(${fieldOf(from)}, ${textLiteral(goLayout(layout))}${inZone}) ?? null`
    })
    return [
      'time = null',
      ...lines.map((line, index) => (index === 0 ? line : `if time == null { ${line} }`)),
      `if time != null { ${target} = time }`,
    ]
  },
}

const truncate: Processor = {
  name: 'truncate_fields',
  becomes: '`truncate`',
  options: { ...when, fields: 'the fields', max_characters: 'the length', max_bytes: 'the length, in characters' },
  itself: quiet,
  build: (part) => {
    const length = textIn(part, 'max_characters') ?? textIn(part, 'max_bytes') ?? '1000'
    return textsIn(part, 'fields').map(
      (name) =>
        `if is_string(${fieldOf(name)}) { ${fieldOf(name)} = truncate(string!(${fieldOf(name)}), ${Number(length)}) }`,
    )
  },
}

const letterCase = (name: string, call: string): Processor => ({
  name,
  becomes: `\`${call}\` for values, and new names for fields`,
  options: {
    ...when,
    fields: 'the fields whose names change',
    values: 'the fields whose values change',
    alter_full_field: 'whether all names of a path change, or only the last one',
  },
  itself: quiet,
  build: (part) => [
    ...textsIn(part, 'fields').flatMap((field) => renamed(field, call, flagIn(part, 'alter_full_field') !== false)),
    ...textsIn(part, 'values').map(
      (field) => `if is_string(${fieldOf(field)}) { ${fieldOf(field)} = ${call}(string!(${fieldOf(field)})) }`,
    ),
  ],
})

/** Statements that change the case of the names in a path. */
function renamed(field: string, call: string, isWhole: boolean): readonly string[] {
  const inCase = (text: string) => (call === 'upcase' ? text.toUpperCase() : text.toLowerCase())
  const names = field.split('.')
  const steps = names.flatMap((name, index) => {
    if (inCase(name) === name || (!isWhole && index < names.length - 1)) return []
    const above = names.slice(0, index).map((each) => (isWhole ? inCase(each) : each))
    const [from, to] = [name, inCase(name)].map((each) => fieldOf([...above, each].join('.')))
    return [`  if !exists(${to}) { ${to} = del(${from}) }`]
  })
  return steps.length === 0 ? [] : [`if exists(${fieldOf(field)}) {`, ...steps, '}']
}

const urldecode: Processor = {
  name: 'urldecode',
  becomes: '`decode_percent`',
  options: { ...when, fields: 'the fields' },
  itself: quiet,
  build: (part) =>
    itemsOf(option(part, 'fields')).flatMap((item) => {
      const from = textOf(below(item, 'from'))
      const to = textOf(below(item, 'to')) ?? from
      return from === undefined || to === undefined
        ? []
        : [
            `if is_string(${fieldOf(from)}) { ${fieldOf(to)} = decode_percent(replace(string!(${fieldOf(from)}), "+", " ")) }`,
          ]
    }),
}

const fingerprint: Processor = {
  name: 'fingerprint',
  becomes: '`sha2`, `sha1` or `md5`',
  options: {
    ...when,
    fields: 'the fields',
    method: 'the function',
    target_field: 'the field',
    encoding: 'encodings other than `hex` are a gap',
  },
  itself: quiet,
  build: (part) => {
    const method = textIn(part, 'method') ?? 'sha256'
    const call =
      { sha1: 'sha1(text)', md5: 'md5(text)', sha512: 'sha2(text, variant: "SHA-512")' }[method] ??
      'sha2(text, variant: "SHA-256")'
    const fields = [...textsIn(part, 'fields')].sort()
    return [
      `text = ${fields.map((name) => `"|${name}|" + ${textOfField(name)}`).join(' + ') || '""'} + "|"`,
      `${fieldOf(textIn(part, 'target_field') ?? 'fingerprint')} = ${call}`,
    ]
  },
}

const addId: Processor = {
  name: 'add_id',
  becomes: '`uuid_v4`',
  options: { ...when, target_field: 'the field', type: 'the form' },
  build: (part) => [`${fieldOf(textIn(part, 'target_field') ?? '@metadata._id')} = uuid_v4()`],
}

const own = "the source uses the agent's access to the API server"

const addKubernetes: Processor = {
  name: 'add_kubernetes_metadata',
  becomes: 'a remap transform that uses the metadata of `orchestrator_logs`',
  options: {
    ...when,
    'labels.dedot': 'dots in the names of labels become `_`',
    'annotations.dedot': 'as `labels.dedot`',
    include_annotations: 'which annotations to include',
    include_labels: 'which labels to include',
    exclude_labels: 'which labels to exclude',
    'add_resource_metadata.namespace.enabled': 'whether to add the labels of the namespace',
    'add_resource_metadata.node.enabled': 'whether to add the labels of the node',
    'add_resource_metadata.namespace.include_labels': 'which of them to include',
    'add_resource_metadata.namespace.exclude_labels': 'which of them to exclude',
    'add_resource_metadata.node.include_labels': 'which of them to include',
    'add_resource_metadata.node.exclude_labels': 'which of them to exclude',
  },
  itself: Object.fromEntries(
    [
      ...[
        'host',
        'node',
        'in_cluster',
        'kube_config',
        'kube_client_options',
        'scope',
        'namespace',
        'matchers',
        'indexers',
        'default_matchers.enabled',
        'default_indexers.enabled',
        'cleanup_timeout',
        'sync_period',
      ],
      ...[
        'add_resource_metadata.namespace',
        'add_resource_metadata.node',
        'add_resource_metadata.deployment',
        'add_resource_metadata.cronjob',
        'use_kubelet',
        'enabled',
        'unique',
        'add_resource_metadata',
        'in_cluster.enabled',
      ],
    ].map((name) => [name, own] as const),
  ),
  build: (part) => {
    const labelsIn = (prefix: string): Labels => ({
      included: textsIn(part, `${prefix}include_labels`),
      excluded: textsIn(part, `${prefix}exclude_labels`),
    })
    const of = (kind: 'namespace' | 'node') =>
      flagIn(part, `add_resource_metadata.${kind}.enabled`) === false
        ? undefined
        : labelsIn(`add_resource_metadata.${kind}.`)
    return kubernetesLines(textsIn(part, 'include_annotations'), flagIn(part, 'labels.dedot') !== false, {
      pod: labelsIn(''),
      namespace: of('namespace'),
      node: of('node'),
    })
  },
}

/** Names of labels; without included ones, all are included. */
interface Labels {
  readonly included: readonly string[]
  readonly excluded: readonly string[]
}

const allLabels: Labels = { included: [], excluded: [] }

/** The object whose labels an event gets, with its field and the path in the event. */
const labelled = {
  pod: { field: '%orchestrator.pod_labels', path: '.kubernetes.labels' },
  namespace: { field: '%orchestrator.namespace_labels', path: '.kubernetes.namespace_labels' },
  node: { field: '%orchestrator.node_labels', path: '.kubernetes.node.labels' },
} as const

/** An expression for some labels; undefined if the event gets none. */
function labelsOf(field: string, labels: Labels | undefined): string | undefined {
  if (labels === undefined) return undefined
  const { included, excluded } = labels
  const list = (names: readonly string[]) => `[${names.map(textLiteral).join(', ')}]`
  const tests = [
    ...(included.length === 0 ? [] : [`includes(${list(included)}, key)`]),
    ...(excluded.length === 0 ? [] : [`!includes(${list(excluded)}, key)`]),
  ]
  return tests.length === 0 ? field : `filter(object(${field}) ?? {}) -> |key, _value| { ${tests.join(' && ')} }`
}

/** The lines of a program that sets `kubernetes` and `container` as Filebeat does; it adds the labels of namespace and node by default. */
export function kubernetesLines(
  annotations: readonly string[],
  dedots: boolean,
  labels: Readonly<Record<'pod' | 'namespace' | 'node', Labels | undefined>> = {
    pod: allLabels,
    namespace: allLabels,
    node: allLabels,
  },
): readonly string[] {
  const pod = labelsOf(labelled.pod.field, labels.pod)
  const namespace = labelsOf(labelled.namespace.field, labels.namespace)
  const node = labelsOf(labelled.node.field, labels.node)
  const isSet = 'value != null && value != {}'
  return [
    '.kubernetes = filter({',
    '  "namespace": %orchestrator.pod_namespace,',
    ...(namespace === undefined ? [] : [`  "namespace_labels": ${namespace},`]),
    '  "pod": filter({ "name": %orchestrator.pod_name, "uid": %orchestrator.pod_uid, "ip": %orchestrator.pod_ip }) -> |_key, value| { value != null },',
    `  "node": filter({ "name": %orchestrator.pod_node_name${node === undefined ? '' : `, "labels": ${node}`} }) -> |_key, value| { ${isSet} },`,
    '  "container": filter({ "name": %orchestrator.container_name }) -> |_key, value| { value != null },',
    `  "labels": ${pod},`,
    `}) -> |_key, value| { ${isSet} }`,
    ...(dedots
      ? (['pod', 'namespace', 'node'] as const)
          .filter((kind) => labels[kind] !== undefined)
          .map((kind) => labelled[kind].path)
          .map(
            (path) =>
              `if is_object(${path}) { ${path} = map_keys(object!(${path})) -> |key| { replace(key, ".", "_") } }`,
          )
      : []),
    ...annotations.map(
      (name) =>
        `if exists(${fieldOf2(name)}) { .kubernetes.annotations.${textLiteral(name.replaceAll('.', '_'))} = ${fieldOf2(name)} }`,
    ),
    '.container = { "id": replace(string(%orchestrator.container_id) ?? "", r\'^.*://\', ""), "image": { "name": %orchestrator.container_image } }',
  ]
}

const fieldOf2 = (name: string): string => `%orchestrator.pod_annotations.${textLiteral(name)}`

const nothing = (name: string, how: string): Processor => ({
  name,
  becomes: how,
  options: when,
  itself: {
    netinfo: how,
    'netinfo.enabled': how,
    cache: how,
    'cache.ttl': how,
    providers: how,
    overwrite: how,
    timeout: how,
    host: how,
    match_fields: how,
    'geo.name': how,
    match_pids: how,
    match_source: how,
    labels: how,
    'labels.dedot': how,
    replace_fields: how,
  },
  build: () => [],
})

export const processors: readonly Processor[] = [
  addFields('add_fields', 'fields'),
  addFields('add_labels', 'labels'),
  addTags,
  dropEvent,
  dropFields,
  includeFields,
  pairs('rename'),
  pairs('copy_fields'),
  replace,
  convert,
  decodeJson,
  dissect,
  timestamp,
  truncate,
  letterCase('lowercase', 'downcase'),
  letterCase('uppercase', 'upcase'),
  urldecode,
  decodeBase64,
  decodeCsv,
  extractArray,
  decodeXml,
  syslog,
  fingerprint,
  addId,
  addKubernetes,
  nothing('add_docker_metadata', 'the source adds container metadata'),
]

/** The placeholder for a processor whose condition has no counterpart, which the report of the condition names. */
const unconditional = (name: string, { file, line }: { readonly file: string; readonly line: number }): Step => ({
  type: 'remap',
  text: '.',
  comments: [
    `GAP: the condition of the processor \`${name}\` (${file}:${line}) has no counterpart. Events pass unchanged.`,
  ],
})

/** A step as statements of a program, in which `abort` drops an event. */
function statements({ type, text }: Step): string {
  if (type === 'remap') return text
  return text === 'false' ? 'abort' : `if !(${text}) { abort }`
}

/** Converts a processor and its condition to steps; undefined if there are no steps. */
export function stepsOf(tree: Tree, report: Report, partNamed: (name: string, tree: Tree) => Part): readonly Step[] {
  if (!isMap(tree)) return []
  if (tree.value.has('if')) {
    const test = conditionOf(tree.value.get('if'), report)
    const branch = (name: string) => {
      const item = tree.value.get(name)
      const list = item === undefined ? [] : isMap(item) ? [item] : itemsOf(item)
      return list.flatMap((each) => [...stepsOf(each, report, partNamed)])
    }
    const yes = branch('then')
    const no = branch('else')
    if (test === undefined) return [unconditional('if', tree)]
    const text = (steps: readonly Step[]) => indent(steps.map(statements).join('\n')) || '  null'
    return [{ type: 'remap', text: `if ${test} {\n${text(yes)}\n}${no.length === 0 ? '' : ` else {\n${text(no)}\n}`}` }]
  }
  return [...tree.value].flatMap(([name, item]): Step[] => {
    const part = partNamed(name, item)
    const mapping = processors.find((each) => each.name === name)
    if (mapping === undefined) {
      report.refused(part, 'processor', refusedProcessors)
      const source = textIn(part, 'source')
      return [
        {
          type: 'remap',
          text: '.',
          comments: [
            `GAP: the processor \`${name}\` (${part.file}:${part.line}) has no counterpart. Events pass unchanged.`,
            ...(source === undefined ? [] : ['Its program:', source]),
          ],
        },
      ]
    }
    report.options(part, mapping)
    const condition = option(part, 'when')
    const test = condition === undefined ? undefined : conditionOf(condition, report)
    if (condition !== undefined && test === undefined) return [unconditional(name, part)]
    if (name === 'drop_event') {
      const text = test === undefined ? 'false' : `!${test.startsWith('(') ? test : `(${test})`}`
      return [{ type: 'filter', text }]
    }
    const lines = mapping.build(part, report)
    if (lines === undefined || lines.length === 0) return []
    const text = lines.join('\n')
    return [{ type: 'remap', text: test === undefined ? text : `if ${test} {\n${indent(text)}\n}` }]
  })
}
