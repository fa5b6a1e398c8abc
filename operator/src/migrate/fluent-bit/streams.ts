// Tasks of the stream processor: a query reads records after the filters, and its results start again with another tag. A task works like
// a filter at the end that copies records.

import { type Context, common, matched } from './plugin.ts'
import { reportOwnTimeIn } from './processors.ts'
import { entriesOf, lastValue, type Section } from './sections.ts'
import { parseQuery } from './sql.ts'
import { tagOf } from './tags.ts'

export const streamTask = { name: 'stream_task', options: { ...common, ...matched } } as const

/** The options of the filter for a task: its query, and the tag of the results. */
export const taskOptions = { query: 'exec', tag: 'tag' } as const

/** The tasks of a configuration as filters. */
export function streamTasks(
  sections: readonly Section[],
  inputs: readonly Section[],
  context: Context,
): readonly Section[] {
  const tags = new Map(
    inputs.flatMap((input) => {
      const { text } = tagOf(input)
      return [lastValue(input, 'alias'), `${lastValue(input, 'name')}.0`].map((name) => [name, text] as const)
    }),
  )
  return sections.flatMap((section): Section[] => {
    const exec = lastValue(section, 'exec') ?? ''
    const subject = `stream task ${lastValue(section, 'name') ?? ''}`.trim()
    const query = parseQuery(exec)
    if ('problem' in query) {
      context.gap(
        section,
        subject,
        query.problem,
        'Rewrite it as remap and filter transforms, or count at the destination.',
      )
      return []
    }
    if (query.stream === undefined) {
      context.replaced(section, subject, 'it only prints records', 'Use `penstock tap`.')
      return []
    }
    for (const entry of entriesOf(section, 'exec')) reportOwnTimeIn(entry, subject, context)
    const { name, tag = name } = query.stream
    tags.set(name, tag)
    const match = query.from.kind === 'tag' ? query.from.name : tags.get(query.from.name)
    if (match === undefined) {
      context.gap(section, subject, `the stream \`${query.from.name}\` is unknown`, 'Name an input by its alias.')
      return []
    }
    const values = { name: streamTask.name, alias: name, match, [taskOptions.query]: exec, [taskOptions.tag]: tag }
    const entries = Object.entries(values).map(([key, value]) => ({
      file: section.file,
      line: section.line,
      key,
      value,
    }))
    return [{ file: section.file, line: section.line, kind: 'filter', entries }]
  })
}
