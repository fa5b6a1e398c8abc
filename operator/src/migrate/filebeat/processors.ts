// Converts Filebeat processors to remap and filter transforms.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { flagIn, option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { isList, isMap, itemsOf, type Tree, textsOf } from '../loki/tree.ts'
import { indent } from '../otel/text.ts'
import { assigned, assignments, conditionOf, fieldOf } from './conditions.ts'
import {
  decodeBase64,
  decodeCsv,
  decodeDuration,
  decodeXml,
  decompressGzip,
  expansion,
  extractArray,
  idLines,
  intoRoot,
  reportExpansion,
  syslog,
} from './decoders.ts'
import { dissect } from './dissect.ts'
import {
  append,
  convert,
  dropFields,
  includeFields,
  letterCase,
  moveFields,
  pairs,
  replace,
  truncate,
  urldecode,
} from './fields.ts'
import { addId, communityId, fingerprint, registeredDomain } from './hashes.ts'
import { addDocker, addKubernetes } from './kubernetes.ts'
import { addLocale, networkDirection } from './network-direction.ts'
import { reportOwnFields } from './own-fields.ts'
import { block, failure, type Processor, quiet, when, withTime } from './processor.ts'
import { refusedProcessors } from './refused-processors.ts'
import { timestamp } from './times.ts'
import { withDefaults } from './variables.ts'

const addFields: Processor = {
  name: 'add_fields',
  becomes: 'a remap transform',
  options: {
    ...when,
    fields: 'the fields; members of an object are added to those of the event',
    target: 'the object for them',
  },
  itself: quiet,
  build: (part, report) => {
    const target = textIn(part, 'target') ?? 'fields'
    const fields = option(part, 'fields')
    return isMap(fields)
      ? [...fields.value].flatMap(([key, item]) =>
          assignments(target === '' ? key : `${target}.${key}`, item, `add_fields: ${key}`, report),
        )
      : []
  },
}

/** Names and texts of labels. The processor writes the values of objects and lists below their paths, and all values as texts. */
function labelsIn(name: string, tree: Tree): readonly (readonly [string, Tree])[] {
  if (isMap(tree)) return [...tree.value].flatMap(([key, item]) => labelsIn(`${name}.${key}`, item))
  if (isList(tree)) return tree.value.flatMap((item, index) => labelsIn(`${name}.${index}`, item))
  const { file, line, value, isNumber } = tree
  if (value === null) return []
  return [[name, { file, line, value: isNumber === true ? String(Number(value)) : String(value) }]]
}

const addLabels: Processor = {
  name: 'add_labels',
  becomes: 'a remap transform',
  options: { ...when, labels: 'the labels, as texts' },
  itself: quiet,
  build: (part, report) => {
    const labels = option(part, 'labels')
    const found = isMap(labels) ? labelsIn('labels', labels) : []
    if (found.some(([name]) => name.split('.').length > 2)) reportExpansion(part, false, report)
    return found.map(([name, item]) => `${fieldOf(name)} = ${assigned(item, name, report, true)}`)
  },
}

const addTags: Processor = {
  name: 'add_tags',
  becomes: 'a remap transform',
  options: { ...when, tags: 'the tags', target: 'the field' },
  build: (part, report) => tagLines(option(part, 'tags'), report, textIn(part, 'target') || 'tags', true),
}

/**
 * Statements that add tags to a list.
 * @param mayDiffer whether the field may have another value, such as a text, which Filebeat leaves as it is
 */
export function tagLines(tags: Tree | undefined, report: Report, target = 'tags', mayDiffer = false): string[] {
  if (tags === undefined || textsOf(tags).length === 0) return []
  const items = isList(tags) ? tags.value : [tags]
  const texts = items.map(({ file, line, value }) => assigned({ file, line, value }, 'tags', report, true))
  const field = fieldOf(target)
  const line = `${field} = append(array(${field}) ?? [], [${texts.join(', ')}])`
  return [mayDiffer ? block(`!exists(${field}) || is_array(${field})`, [line]) : line]
}

const dropEvent: Processor = {
  name: 'drop_event',
  becomes: 'a filter transform',
  options: when,
  build: () => [],
}

/** Texts in texts beyond this depth stay texts. */
const maxDepth = 5

/** Filebeat decodes texts in texts only if they look like objects or lists, so that a text with digits stays a text. */
const isStructured = (text: string) => `match(string!(${text}), r'(?s)^\\s*(?:\\{.*\\}|\\[.*\\])\\s*$')`

/** The object with the texts in its members decoded. */
function decodedMembers(object: string, depth: number, takesLists: boolean): string {
  const [value, inner] = [`value${depth}`, `inner${depth}`]
  const deeper =
    depth > 2 ? `if is_object(${inner}) { ${inner} = ${decodedMembers(inner, depth - 1, takesLists)} }; ` : ''
  const result = takesLists ? inner : `if is_array(${inner}) { ${value} } else { ${inner} }`
  return `map_values(object!(${object})) -> |${value}| { if is_string(${value}) && ${isStructured(value)} { ${inner} = parse_json(string!(${value})) ?? ${value}; ${deeper}${result} } else { ${value} } }`
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
    document_id: '`id_key`, from metadata',
    add_error_key: '`error` of texts that are not JSON',
  },
  itself: quiet,
  build: (part, report, failed) => {
    const target = textIn(part, 'target')
    const expands = flagIn(part, 'expand_keys') === true
    reportExpansion(part, expands, report)
    const overwrites = flagIn(part, 'overwrite_keys') === true
    const depth = Math.min(Number(textIn(part, 'max_depth') ?? 1) || 1, maxDepth)
    const takesLists = flagIn(part, 'process_array') === true
    const id = textIn(part, 'document_id')
    return textsIn(part, 'fields').flatMap((name) => {
      const field = fieldOf(name)
      const problem = `{ "message": "parsing input as JSON: " + error, "data": ${field}, "field": ${textLiteral(name)} }`
      return [
        `decoded, error = parse_json(string(${field}) ?? "")`,
        ...(depth > 1 ? [`if is_object(decoded) { decoded = ${decodedMembers('decoded', depth, takesLists)} }`] : []),
        expansion,
        // Texts in lists are decoded only on request, and a list at the root has no place.
        `if error == null && is_string(${field})${depth > 1 && !takesLists ? ' && !is_array(decoded)' : ''} {`,
        ...(id === undefined
          ? []
          : block('is_object(decoded)', idLines(id))
              .split('\n')
              .map((line) => `  ${line}`)),
        ...(target === ''
          ? block('is_object(decoded)', intoRoot(overwrites, flagIn(part, 'add_error_key') === true))
              .split('\n')
              .map((line) => `  ${line}`)
          : [`  ${target === undefined ? field : fieldOf(target)} = decoded`]),
        `}${flagIn(part, 'add_error_key') === true ? ` else if is_string(${field}) { .error = ${problem} }` : ''}`,
        ...failure(
          target === '' ? `${field} != null && !is_object(decoded)` : `is_string(${field}) && error != null`,
          failed,
        ),
      ]
    })
  },
}

export const processors: readonly Processor[] = [
  addFields,
  addLabels,
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
  append,
  moveFields,
  communityId,
  registeredDomain,
  decompressGzip,
  decodeDuration,
  networkDirection,
  addLocale,
  addDocker,
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

/** Marks a list of processors whose rest Filebeat skips after a failure. */
const stop = 'stop = true'

/** The steps of a list below `then` or `else` as statements. Those after a step that can fail run only if it did not. */
function listText(lists: readonly (readonly Step[])[]): string {
  let mayStop = false
  const all = lists.flatMap((steps) => {
    if (steps.length === 0) return []
    const text = steps.map(statements).join('\n')
    const guarded = mayStop ? `if !stop {\n${indent(text)}\n}` : text
    mayStop ||= text.includes(stop)
    return [guarded]
  })
  return indent(all.join('\n')) || '  null'
}

/** Steps that run only if a condition holds. */
export const whenever = (test: string, steps: readonly Step[]): Step => ({
  type: 'remap',
  text: `if ${test} {\n${listText([steps])}\n}`,
})

type PartNamed = (name: string, tree: Tree) => Part

/** Converts a choice between two lists of processors. */
function choice(
  tree: Tree & { readonly value: ReadonlyMap<string, Tree> },
  report: Report,
  partNamed: PartNamed,
  failed: string,
): readonly Step[] {
  report.options(
    { ...tree, name: 'if', tree },
    { options: Object.fromEntries(['if', 'then', 'else'].map((name) => [name, ''])) },
  )
  const test = conditionOf(tree.value.get('if'), report)
  const branch = (name: string) => {
    const item = tree.value.get(name)
    const list = item === undefined ? [] : isMap(item) ? [item] : itemsOf(item)
    return list.map((each, index) => stepsOf(each, report, partNamed, index < list.length - 1 ? stop : failed))
  }
  const [yes, no] = [branch('then'), branch('else')]
  if (test === undefined) return [unconditional('if', tree)]
  const text = `if ${test} {\n${listText(yes)}\n}${no.flat().length === 0 ? '' : ` else {\n${listText(no)}\n}`}`
  return [{ type: 'remap', text: failed === '' && text.includes(stop) ? `stop = false\n${text}` : text }]
}

/**
 * Converts a processor and its condition to steps; undefined if there are no steps.
 * @param failed a statement to run where the processor fails
 */
export function stepsOf(tree: Tree, report: Report, partNamed: PartNamed, failed = ''): readonly Step[] {
  if (!isMap(tree)) return []
  if (tree.value.has('if')) return choice(tree, report, partNamed, failed)
  return [...tree.value].flatMap(([name, item]): Step[] => {
    const given = partNamed(name, item)
    const mapping = processors.find((each) => each.name === name)
    const part = mapping === undefined ? given : withDefaults(given, mapping, report)
    if (mapping === undefined) {
      report.refused(part, 'processor', refusedProcessors)
      const source = name === 'script' ? textIn(part, 'source') : undefined
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
    reportOwnFields(part, report)
    const lines = mapping.build(part, report, failed)
    if (lines === undefined || lines.length === 0) return []
    const text = withTime(part, lines).join('\n')
    return [{ type: 'remap', text: test === undefined ? text : `if ${test} {\n${indent(text)}\n}` }]
  })
}
