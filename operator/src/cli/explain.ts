// `penstock explain NAME`: a kind or a field of one, as `kubectl explain` shows it, or the reference page of a component, function, metric
// or error code, as the agent prints it.

import { closest, PenstockError } from '@penstock/agent/errors'
import { explain, referencePages } from '@penstock/agent/output'
import type { Flags } from '@penstock/agent/program'
import { fieldText, kindNamed, schemaText } from '../api/reference.ts'
import { ruleText } from '../api/rules.ts'
import { refusalsNamed } from '../migrate/vector/refusals.ts'
import { helpOf, parseFlags } from './arguments.ts'

export const options = {
  schema: { type: 'boolean', help: 'print the JSON Schema of all kinds, for editors' },
} as const satisfies Flags

export const usage = `Usage: penstock explain NAME
       penstock explain --schema

Prints the page of a kind (Pipeline) or a field of it (Pipeline.spec.sources.multiline), a rule (T7), a reason of a
condition (NoMatchingAgent), a component (search_engine), a function of programs (parse_json), a metric or an error code (E103).

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [name] = words
  if (values.schema && name === undefined) {
    process.stdout.write(schemaText())
    return 0
  }
  if (name === undefined || words.length !== 1 || values.schema) {
    const expected = 'Name one kind, field, component, function, metric or error code: penstock explain NAME.'
    throw new PenstockError('PEN_USAGE', expected)
  }
  const rule = ruleText(name)
  if (rule !== undefined) {
    process.stdout.write(rule)
    return 0
  }
  const [word = '', ...path] = name.split('.')
  const kind = kindNamed(word)
  if (kind === undefined) return explainPage(name)
  const found = fieldText(kind, path.join('.'))
  if (!found.ok) {
    const near = closest(path.at(-1) ?? '', found.known)
    const hint =
      near === undefined ? `Known fields there: ${found.known.join(', ') || 'none'}.` : `Did you mean \`${near}\`?`
    throw new PenstockError('PEN_USAGE', `There is no field \`${path.join('.')}\` of ${kind.kind}. ${hint}`)
  }
  process.stdout.write(found.text)
  return 0
}

/** The page of the agent; where there is none, and other agents have a component of that name, what to use in its place. */
async function explainPage(name: string): Promise<number> {
  const refusals = refusalsNamed(name)
  if (refusals.length > 0 && !(await hasPage(name))) {
    const lines = refusals.map(
      ({ kind, name: type, reason, nearest }) => `${type}  (${kind})\n  No: ${reason}. ${nearest}\n`,
    )
    process.stdout.write(`Penstock has no component for ${name}.\n\n${lines.join('\n')}`)
    return 0
  }
  return explain([name])
}

async function hasPage(name: string): Promise<boolean> {
  const wanted = name.toLowerCase()
  const pages = await referencePages()
  return pages.some(
    ({ names, products = [] }) =>
      names.includes(name) || products.some((product) => product.toLowerCase().split(' ').includes(wanted)),
  )
}
