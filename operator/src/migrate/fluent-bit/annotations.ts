// Pod annotations that the filter `kubernetes` reads: whether to exclude logs, and the parser of lines. An annotation applies to all
// containers and both streams, or to one of them: `fluentbit.io/parser[_STREAM][-CONTAINER]`. The more specific one wins.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { parserLines } from './parsers.ts'
import type { Context } from './plugin.ts'
import type { Section } from './sections.ts'
import { annotated } from './shipped.ts'

const lookUp = (word: string): readonly string[] => [
  'annotations = object(%orchestrator.pod_annotations) ?? {}',
  'container = "-" + (string(%orchestrator.container_name) ?? "")',
  'stream = "_" + (string(.stream) ?? "")',
  'wanted = null',
  `for_each(["", container, stream, stream + container]) -> |_index, part| {`,
  `  found = get(annotations, [${textLiteral(`fluentbit.io/${word}`)} + part]) ?? null`,
  '  if is_string(found) { wanted = found }',
  '}',
]

/** Drops the logs of pods with the exclusion annotation. */
export const excludeStep: Step = {
  type: 'filter',
  text: [...lookUp('exclude'), '!includes(["true", "on", "yes"], downcase(string(wanted) ?? ""))'].join('\n'),
}

/**
 * Lines that parse `.log` with the parser that an annotation names, into `merged`: null if it does not match.
 * @param others lines for records without such an annotation, or with an unknown parser
 */
export function annotatedLines(section: Section, context: Context, others: readonly string[]): readonly string[] {
  const names = [...new Set([...context.parsers.keys(), ...annotated])]
  const branches = names.flatMap((name): string[] => {
    // Parts of a parser without a counterpart are reported where a filter names the parser.
    const lines = parserLines(name, 'string(.log) ?? ""', context.silent(), section)
    return lines === undefined ? [] : [`if wanted == ${textLiteral(name)} {\n${indented(lines)}\n  merged = parsed\n}`]
  })
  const known = names.map((name) => `\`${name}\``).join(', ')
  context.replaced(
    section,
    'kubernetes: K8S-Logging.Parser',
    `annotations can name parsers of the configuration and some that Fluent Bit ships: ${known}`,
    'Add other parsers that pods name to the configuration, and convert again.',
  )
  return [
    ...lookUp('parser'),
    'merged = null',
    'parsed = null',
    `${branches.join(' else ')} else {\n${indented(others)}\n}`,
  ]
}

const indented = (lines: readonly string[]) => lines.join('\n').replace(/^/gm, '  ')
