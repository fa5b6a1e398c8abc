// Annotations of pods that the filter `kubernetes` reads: whether logs are left out, and which parser the line has. An annotation is for
// all containers and both streams, or for one of them: `fluentbit.io/parser[_STREAM][-CONTAINER]`. The more exact one counts.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { parserLines, shipped } from './parsers.ts'
import type { Context } from './plugin.ts'
import type { Section } from './sections.ts'

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

/** Leaves out the logs of pods that ask for it. */
export const excludeStep: Step = {
  type: 'filter',
  text: [...lookUp('exclude'), '!includes(["true", "on", "yes"], downcase(string(wanted) ?? ""))'].join('\n'),
}

/**
 * Lines that parse `.log` by the parser that an annotation names, into `merged`: null if it does not match. Pods without such an
 * annotation, or with a parser that is not known, get the JSON of the line.
 */
export function annotatedLines(section: Section, context: Context): readonly string[] {
  const names = [...new Set([...context.parsers.keys(), ...shipped.keys()])]
  const branches = names.flatMap((name): string[] => {
    // Parts of a parser without a counterpart are reported where the parser is used by name.
    const lines = parserLines(name, 'string(.log) ?? ""', context.silent(), section)
    return lines === undefined ? [] : [`if wanted == ${textLiteral(name)} {\n${indented(lines)}\n  merged = parsed\n}`]
  })
  const known = names.map((name) => `\`${name}\``).join(', ')
  context.replaced(
    section,
    'kubernetes: K8S-Logging.Parser',
    `the parsers that annotations may name are those of the configuration and some that Fluent Bit ships: ${known}`,
    'Add parsers that pods name besides to the configuration, and convert again.',
  )
  return [
    ...lookUp('parser'),
    'merged = null',
    'parsed = null',
    `${branches.join(' else ')} else { merged = object(.log) ?? parse_json(string(.log) ?? "") ?? null }`,
  ]
}

const indented = (lines: readonly string[]) => lines.join('\n').replace(/^/gm, '  ')
