// Chooses index, ingest pipeline and action per event: by its metadata, by the input, or by the first rule that matches. A metadata field,
// which is not sent, carries the choice to the sink.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { option, type Part, type Report, textIn } from '../loki/context.ts'
import { below, itemsOf, pairsOf, type Tree, textOf } from '../loki/tree.ts'
import { conditionOf } from './conditions.ts'
import { expressionOf, fieldsIn, withDots } from './formats.ts'
import { podVariable } from './pod-values.ts'
import { namesNode, reportVariables } from './variables.ts'

/** The choices that inputs make for their events. */
export interface Choices {
  index: boolean
  /** The alias of the index life cycle, which replaces the index of the output in versions before 8. */
  alias?: string
  /** Whether a step sets the id of the document. */
  id: boolean
  /** Whether events may have a field `timestamp` of their own, beside their time. */
  ownTime: boolean
  /** Whether events have the path of their file in `source`, too, as in versions before 7. */
  hasSource: boolean
  /** Whether steps read the format of container runtimes, such as `TIME stdout F TEXT`, in the text of a line. */
  namesRuntime: boolean
  /**
   * Makes steps that set the fields and tags of the whole configuration. Those of an input replace them. The argument says whether a line
   * may contain a field `tags`.
   */
  shared: (mayHaveTags: boolean) => readonly Step[]
  /** Whether an input names the pipeline of its events. */
  pipeline: boolean
  /** The metadata of events, set by steps, that chooses for outputs. */
  readonly metadata: Set<string>
}

/** Notes the metadata that steps set and outputs read. */
export function noteMetadata(steps: readonly Step[], metadata: Set<string>): void {
  for (const { text } of steps)
    for (const [, name = ''] of text.matchAll(/%metadata\.(alias|index|raw_index|pipeline|op_type)\b/g))
      metadata.add(name)
}

/** The placeholders of the name and the version of the Beat, which events do not have. */
export const withVersion = (name: string) =>
  withDots(name)
    .replace(/%\{\[(?:agent|beat|@metadata)\.version\]\}/g, '8')
    .replace(/%\{\[(?:@metadata\.beat|agent\.type|beat\.type)\]\}/g, 'filebeat')

/** Reports that a name contains the version of Filebeat. */
export function reportVersion(place: Part | Tree, subject: string, name: string, report: Report): void {
  if (!/%\{\[(?:agent|beat|@metadata)\.version\]\}/.test(withDots(name))) return
  const reason = 'the name contains the version of Filebeat; `8` replaces it'
  report.replaced(place, `${subject}: ${name}`, reason, 'Write the version that the old agent had, or another name.')
}

/** The name of a pipeline, which Filebeat writes in lower case, as an expression. */
const inLowerCase = (name: string, expression: string) =>
  /[%$]\{/.test(name) ? `downcase(${expression})` : textLiteral(name.toLowerCase())

/** The name of an index in lower case, except for placeholders of fields and dates. */
export const indexName = (text: string) =>
  text
    .split(/(%\{[^}]*\}|\$\{[^}]*\})/)
    .map((part) => (/^[%$]\{/.test(part) ? part : part.toLowerCase()))
    .join('')

/** Whether a name contains values of the event, or of its agent. */
const hasFields = (name: string) => name.includes('%{[') || podVariable.test(name) || namesNode(name)

/** The name of an index as an expression; undefined if it contains values that events do not have. */
function indexExpression(name: string, report: Report): string | undefined {
  const expression = expressionOf(indexName(withVersion(name)), report.readsEnvironment)
  return expression === undefined || !hasFields(name) ? expression : `downcase(${expression})`
}

/** The name of an index of an input, which contains the name of the machine, but no other fields. */
function withMachine(part: Part, name: string, report: Report): string {
  if (!name.includes('%{[agent.name]}')) return name
  const reason = 'Filebeat writes the name of its machine; the name of the index contains that of the node'
  report.replaced(part, `${part.name}: ${name}`, reason, 'Set another name in a remap transform.')
  return name.replaceAll('%{[agent.name]}', '$'.concat('{NODE_NAME}'))
}

/** The index and the pipeline for all events of an input; they take precedence over those of the output. */
export function inputChoices(part: Part, choices: Choices, report: Report): readonly Step[] {
  const lines: string[] = []
  const index = textIn(part, 'index')
  if (index !== undefined) {
    reportVersion(part, part.name, index, report)
    reportVariables(part, `${part.name}: index`, index, report)
    const name = withMachine(part, withVersion(index), report)
    const expression = name.includes('%{[') ? undefined : indexExpression(name, report)
    if (expression === undefined) {
      const nearest = 'Set `%index` in a remap transform, and use it in `bulk.index`.'
      report.gap(
        part,
        `${part.name}: ${index}`,
        'the name of the index contains values that events do not have',
        nearest,
      )
    } else {
      choices.index = true
      lines.push(`%index = ${expression}`)
    }
  }
  const pipeline = textIn(part, 'pipeline') ?? ''
  if (pipeline !== '') {
    // An input does not replace fields in the name.
    const expression = pipeline.includes('%{') ? undefined : expressionOf(pipeline, report.readsEnvironment)
    reportVariables(part, `${part.name}: pipeline`, pipeline, report)
    if (expression === undefined) {
      const reason = 'the name of the pipeline contains values that events do not have'
      report.gap(part, `${part.name}: ${pipeline}`, reason, 'Set `%pipeline` in a remap transform.')
    } else {
      choices.pipeline = true
      lines.push(`%pipeline = ${inLowerCase(pipeline, expression)}`)
    }
  }
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}

/** Converts one rule to a statement that sets `%KEY`; reports a gap and returns undefined if it is not a name and a condition. */
function ruleLine(item: Tree, key: 'index' | 'pipeline', report: Report): string | undefined {
  const when = below(item, 'when')
  const test = when === undefined ? 'true' : conditionOf(when, report)
  const inCase = key === 'pipeline' ? (text: string) => text.toLowerCase() : indexName
  const mappings = below(item, 'mappings')
  reportVersion(item, key, textOf(below(item, key)) ?? '', report)
  reportVariables(item, key, textOf(below(item, key)) ?? '', report)
  const given = withVersion(textOf(below(item, key)) ?? '%{}')
  const plain = mappings === undefined && !given.includes('%{') ? inCase(given) : given
  const expression =
    key === 'index' && mappings === undefined
      ? indexExpression(given, report)
      : expressionOf(plain, report.readsEnvironment)
  const isPipeline = key === 'pipeline' && mappings === undefined
  const name = isPipeline && expression !== undefined ? inLowerCase(given, expression) : expression
  if (name === undefined || test === undefined) return undefined
  // A rule applies only if the event has all fields of its name.
  const fields = fieldsIn(given).map((field) => `exists(${field})`)
  const isWhole = [...(test === 'true' ? [] : [test]), ...fields].join(' && ') || 'true'
  const byDefault = textOf(below(item, 'default'))
  if (mappings === undefined && (byDefault === undefined || byDefault === '' || fields.length === 0))
    return `if ${isWhole} { %${key} = ${name} }`
  if (mappings === undefined)
    return `if ${test} {\n  chosen = ${textLiteral(inCase(byDefault ?? ''))}\n  if ${fields.join(' && ')} { chosen = ${name} }\n  %${key} = chosen\n}`
  const table = pairsOf(mappings).map(([from, to]) => `${textLiteral(from)}: ${textLiteral(inCase(to))}`)
  const value = `get({ ${table.join(', ')} }, [${name}]) ?? null`
  const otherwise = byDefault === undefined ? '' : ` || ${textLiteral(inCase(byDefault))}`
  return `if ${test} {\n  mapped = ${value}\n  mapped = mapped${otherwise}\n  if mapped != null { %${key} = mapped }\n}`
}

/** The program that chooses an index; empty if all events use the default index. */
export function indexLines(part: Part, given: string, choices: Choices, report: Report): readonly string[] {
  const defaultIndex = indexExpression(given, report)
  const rules = itemsOf(option(part, 'indices')).flatMap((item) => {
    const line = ruleLine(item, 'index', report)
    if (line !== undefined) return [line]
    const nearest = 'Set `%index` in a remap transform, and use it in `bulk.index`.'
    report.gap(item, 'elasticsearch: indices', 'the rule is not a name and a condition', nearest)
    return []
  })
  const chosen = metadataLines(choices.metadata)
  const isSame = rules.length === 0 && chosen.length === 0 && !choices.index && !choices.ownTime && !hasFields(given)
  if (defaultIndex === undefined || isSame) return []
  reportVariables(part, `${part.name}: index`, given, report)
  // The first rule that matches wins, so its statement runs last.
  const fields = fieldsIn(given).map((field) => `exists(${field})`)
  const set = `%index = ${defaultIndex}`
  const first = fields.length === 0 ? set : `if ${fields.join(' && ')} { ${set} }`
  return [...unlessChosen('index', choices.index, [first, ...rules.toReversed()]), ...chosen]
}

/** Statements for the metadata of events that names the index. The name in `index` gets the date. */
const metadataLines = (metadata: ReadonlySet<string>): readonly string[] => {
  const date = ' + format_timestamp!(timestamp(.timestamp) ?? now(), "-%Y.%m.%d")'
  return ['raw_index', 'index', 'alias'].flatMap((name) => {
    const field = `%metadata.${name}`
    const added = name === 'index' ? date : ''
    return metadata.has(name) ? [`if is_string(${field}) { %index = downcase(string!(${field}))${added} }`] : []
  })
}

const unlessChosen = (key: string, byInputs: boolean, lines: readonly string[]) =>
  byInputs && lines.length > 0 ? [`if !exists(%${key}) {`, ...lines, '}'] : lines

/** The program that chooses the pipeline of each event; empty if all events use the same one. */
export function pipelineLines(part: Part, choices: Choices, report: Report): readonly string[] {
  const given = withVersion(textIn(part, 'pipeline') ?? '')
  reportVersion(part, `${part.name}: pipeline`, textIn(part, 'pipeline') ?? '', report)
  const rules = itemsOf(option(part, 'pipelines')).flatMap((item) => {
    const line = ruleLine(item, 'pipeline', report)
    if (line !== undefined) return [line]
    const reason = 'the rule is not a name and a condition'
    report.gap(item, 'elasticsearch: pipelines', reason, 'Set `%pipeline` in a remap transform.')
    return []
  })
  const isOwn = choices.metadata.has('pipeline')
  if (rules.length === 0 && !choices.pipeline && !isOwn && !given.includes('%{')) return []
  const expression = expressionOf(given, report.readsEnvironment)
  if (expression === undefined) {
    const reason = 'the name of the pipeline contains values that events do not have'
    report.gap(part, `elasticsearch: ${given}`, reason, 'Set `%pipeline` in a remap transform.')
  } else reportVariables(part, `${part.name}: pipeline`, given, report)
  const name = expression === undefined ? '""' : inLowerCase(given, expression)
  // An event without a field of the name has no pipeline.
  const fields = fieldsIn(given).map((field) => `exists(${field})`)
  const first =
    fields.length === 0
      ? [`%pipeline = ${name}`]
      : ['%pipeline = ""', `if ${fields.join(' && ')} { %pipeline = ${name} }`]
  const own = 'if is_string(%metadata.pipeline) { %pipeline = downcase(string!(%metadata.pipeline)) }'
  return [...unlessChosen('pipeline', choices.pipeline, [...first, ...rules.toReversed()]), ...(isOwn ? [own] : [])]
}
