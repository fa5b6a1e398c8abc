// Chooses index and ingest pipeline per event: by the input, or by the first rule that matches. A metadata field, which is not sent,
// carries the choice to the sink.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { option, type Part, type Report, textIn } from '../loki/context.ts'
import { below, itemsOf, pairsOf, type Tree, textOf } from '../loki/tree.ts'
import { conditionOf, fieldOf } from './conditions.ts'
import { expressionOf, fieldsIn, withDots } from './formats.ts'
import { podVariable } from './pod-values.ts'

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
  /** Steps that set the fields and tags of the whole configuration. Those of an input replace them. */
  shared: readonly Step[]
  /** Fields to which the configuration assigns only texts that it contains, and these texts; undefined if it assigns others, too. */
  readonly texts: Map<string, Set<string> | undefined>
  /** Names of pipelines. */
  readonly pipelines: Set<string>
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

/** Filebeat writes the names of pipelines and indices in lower case. */
const pipelineName = (text: string) => text.toLowerCase()

/** The name of an index in lower case, except for placeholders of fields and dates. */
export const indexName = (text: string) =>
  text
    .split(/(%\{[^}]*\}|\$\{[^}]*\})/)
    .map((part) => (/^[%$]\{/.test(part) ? part : part.toLowerCase()))
    .join('')

/** Whether a name contains values of the event. */
const hasFields = (name: string) => name.includes('%{[') || podVariable.test(name)

/** The name of an index as an expression; undefined if it contains values that events do not have. */
function indexExpression(name: string, report: Report): string | undefined {
  const expression = expressionOf(indexName(withVersion(name)), report.readsEnvironment)
  return expression === undefined || !hasFields(name) ? expression : `downcase(${expression})`
}

/** The index and the pipeline for all events of an input; they take precedence over those of the output. */
export function inputChoices(part: Part, choices: Choices, report: Report): readonly Step[] {
  const lines: string[] = []
  const index = textIn(part, 'index')
  if (index !== undefined) {
    reportVersion(part, part.name, index, report)
    report.variables(part, `${part.name}: index`, index)
    const name = withVersion(index)
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
  const pipeline = textIn(part, 'pipeline')
  if (/[%$]\{/.test(pipeline ?? '')) {
    const reason = 'the event determines the name of the pipeline'
    report.gap(part, `${part.name}: ${pipeline}`, reason, 'Add one sink per pipeline after a `route` transform.')
  } else if (pipeline !== undefined && pipeline !== '') {
    choices.pipelines.add(pipelineName(pipeline))
    lines.push(`%pipeline = ${textLiteral(pipelineName(pipeline))}`)
  }
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}

/** Converts one rule to a statement that sets `%KEY`; reports a gap and returns undefined if it is not a name and a condition. */
function ruleLine(item: Tree, key: 'index' | 'pipeline', report: Report): string | undefined {
  const when = below(item, 'when')
  const test = when === undefined ? 'true' : conditionOf(when, report)
  const inCase = key === 'pipeline' ? pipelineName : indexName
  const mappings = below(item, 'mappings')
  reportVersion(item, key, textOf(below(item, key)) ?? '', report)
  report.variables(item, key, textOf(below(item, key)) ?? '')
  const given = withVersion(textOf(below(item, key)) ?? '%{}')
  const plain = mappings === undefined && !given.includes('%{') ? inCase(given) : given
  const name =
    key === 'index' && mappings === undefined
      ? indexExpression(given, report)
      : expressionOf(plain, report.readsEnvironment)
  if (name === undefined || test === undefined) return undefined
  // A rule applies only if the event has all fields of its name.
  const fields = fieldsIn(given).map((field) => `exists(${field})`)
  const isWhole = [...(test === 'true' ? [] : [test]), ...fields].join(' && ') || 'true'
  if (mappings === undefined) return `if ${isWhole} { %${key} = ${name} }`
  const byDefault = textOf(below(item, 'default'))
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
  if (defaultIndex === undefined || (rules.length === 0 && !choices.index && !choices.ownTime && !hasFields(given)))
    return []
  report.variables(part, `${part.name}: index`, given)
  // The first rule that matches wins, so its statement runs last.
  const fields = fieldsIn(given).map((field) => `exists(${field})`)
  const set = `%index = ${defaultIndex}`
  const first = fields.length === 0 ? set : `if ${fields.join(' && ')} { ${set} }`
  return unlessChosen('index', choices.index, [first, ...rules.toReversed()])
}

const unlessChosen = (key: string, byInputs: boolean, lines: readonly string[]) =>
  byInputs && lines.length > 0 ? [`if !exists(%${key}) {`, ...lines, '}'] : lines

/** Notes the fields to which programs assign texts. */
export function noteTexts(steps: readonly Step[], texts: Choices['texts']): void {
  for (const { text } of steps)
    for (const [, field = '', value = ''] of text.matchAll(/^\s*(?:if .*\{ )?(\.[\w."@-]+) = (.*?)(?: \})?$/gm)) {
      const known = texts.has(field) ? texts.get(field) : new Set<string>()
      const isText = /^"(?:[^"\\])*"$/.test(value)
      texts.set(field, isText ? known?.add(JSON.parse(value) as string) : undefined)
    }
}

/** Statements for a pipeline named by a field, and the names that it can have: those for the texts that the configuration assigns to it. */
export interface KnownPipelines {
  readonly lines: readonly string[]
  readonly names: readonly string[]
}

/** The pipelines of an output that names them by a field with known values. */
export function knownPipelines(part: Part, choices: Choices, report: Report): KnownPipelines | undefined {
  const given = withDots(textIn(part, 'pipeline') ?? '')
  const [placeholder, , name = '', byDefault] = /%\{(\[([^\]]+)\]\s*(?::([^}]*))?)\}/.exec(given) ?? []
  const field = fieldOf(name)
  const texts = choices.texts.get(field)
  if (placeholder === undefined || texts === undefined || given.split('%{').length > 2) return undefined
  const reason = 'the sinks are those for the values that the configuration gives to the field'
  report.replaced(part, `${part.name}: ${given}`, reason, 'Add a sink for each other value.')
  const named = (text: string) => pipelineName(given.replace(placeholder, () => text))
  const values = [...texts].map((text) => [text, named(text)] as const)
  const first = byDefault === undefined || byDefault === '' ? [] : [named(byDefault)]
  return {
    lines: [
      ...first.map((other) => `%pipeline = ${textLiteral(other)}`),
      ...values.map(([text, own]) => `if ${field} == ${textLiteral(text)} { %pipeline = ${textLiteral(own)} }`),
    ],
    names: [...values.map(([, own]) => own), ...first],
  }
}

/** A sink behind a filter, for the events of one pipeline or for those without one. */
export interface PipelineBranch {
  readonly pipeline: string | undefined
  readonly condition: string
}

/** The program that chooses a pipeline, and one sink per pipeline; no sinks if all events use the same pipeline. */
export function pipelineBranches(
  part: Part,
  defaultPipeline: string | undefined,
  choices: Choices,
  report: Report,
  known: KnownPipelines = { lines: [], names: [] },
): { readonly lines: readonly string[]; readonly branches: readonly PipelineBranch[] } {
  const names = new Set([...choices.pipelines, ...known.names])
  const rules = itemsOf(option(part, 'pipelines')).flatMap((item) => {
    const mappings = below(item, 'mappings')
    const own =
      mappings === undefined
        ? [textOf(below(item, 'pipeline')) ?? '%{}']
        : [...pairsOf(mappings).map(([, to]) => to), ...[textOf(below(item, 'default')) ?? []].flat()]
    const line = own.some((name) => name.includes('%{')) ? undefined : ruleLine(item, 'pipeline', report)
    if (line === undefined) {
      const reason = 'the event determines the name of the pipeline, or the condition has no counterpart'
      report.gap(item, 'elasticsearch: pipelines', reason, 'Add one sink per pipeline after a `route` transform.')
      return []
    }
    for (const name of own) names.add(pipelineName(name))
    return [line]
  })
  if (names.size === 0) return { lines: [], branches: [] }
  if (defaultPipeline !== undefined) names.add(pipelineName(defaultPipeline))
  const first = defaultPipeline === undefined ? [] : [`%pipeline = ${textLiteral(pipelineName(defaultPipeline))}`]
  const lines = unlessChosen('pipeline', choices.pipelines.size > 0, [...first, ...known.lines, ...rules.toReversed()])
  const branches: PipelineBranch[] = [...names].map((pipeline) => ({
    pipeline,
    condition: `%pipeline == ${textLiteral(pipeline)}`,
  }))
  return {
    lines,
    branches:
      defaultPipeline === undefined
        ? [...branches, { pipeline: undefined, condition: '!exists(%pipeline)' }]
        : branches,
  }
}
