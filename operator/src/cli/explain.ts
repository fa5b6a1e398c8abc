// `penstock explain NAME`: shows a kind or field like `kubectl explain`, or the agent's reference page of a component, function, metric or
// error code.

import { closest, PenstockError } from '@penstock/agent/errors'
import { explain, pageText, plainName } from '@penstock/agent/output'
import { type Flags, sheetOf } from '@penstock/agent/program'
import { kinds } from '../api/kinds.ts'
import { fieldsNamed, fieldText, kindNamed, schemaText } from '../api/reference.ts'
import { ruleNames, ruleText, tenantRules } from '../api/rules.ts'
import { helpOf, parseFlags } from './arguments.ts'

export const options = {
  schema: { type: 'boolean', help: 'Print the JSON Schema of all kinds, for editors.' },
} as const satisfies Flags

export const usage = `Usage: penstock explain NAME
       penstock explain --schema

Prints the page of a kind (Pipeline), of a field (Pipeline.spec.sources.multiline), of a rule (T7), of a condition (Programmed) or its reason (NoMatchingAgent), of a component (search_engine), of a function of programs (parse_json), of an option of components (buffer), of a metric or of an error code (E103). Names of products (Loki), of other agents (Vector) and of their components work, too.

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
    print(rule)
    return 0
  }
  if (/^t\d+$/i.test(name)) {
    const last = Object.keys(tenantRules).at(-1)
    throw new PenstockError('PEN_USAGE', `There is no rule ${name.toUpperCase()}; the rules are T1 to ${last}.`)
  }
  const [word = '', ...path] = name.split('.')
  const kind = kindNamed(word)
  if (kind === undefined) return await explainOther(name)
  const found = fieldText(kind, path.join('.'))
  if (!found.ok) {
    const near = closest(path.at(-1) ?? '', found.known)
    const hint = near === undefined ? `Known fields: ${found.known.join(', ') || 'none'}.` : `Did you mean \`${near}\`?`
    throw new PenstockError('PEN_USAGE', `There is no field \`${path.join('.')}\` of ${kind.kind}. ${hint}`)
  }
  print(found.text)
  return 0
}

/** Prints a text for people: wrapped and coloured on a terminal. */
function print(text: string): void {
  process.stdout.write(pageText(text, sheetOf(process.stdout)))
}

/** Another agent, a page of the agent's reference, or the fields with this name. */
async function explainOther(name: string): Promise<number> {
  const agent = await agentText(name)
  if (agent !== undefined) {
    print(agent)
    return 0
  }
  const fields = fieldsNamed(name).map((field) => `  ${field}\n`)
  const own =
    fields.length === 0
      ? undefined
      : `Fields named ${name}:\n${fields.join('')}\nName one of them to see its description.\n`
  return await explain([name], [...kinds.map(({ kind }) => kind), ...ruleNames], own)
}

/** Advice for users of another agent: the command and the page for its configurations. */
async function agentText(name: string): Promise<string | undefined> {
  const { oldAgents } = await import('../migrate/agents.ts')
  const agent = oldAgents.find((one) => [one.name, one.title].some((each) => plainName(each) === plainName(name)))
  if (agent === undefined) return undefined
  const convert = `\`penstock convert -f FILE\` converts a configuration of ${agent.title} to a Pipeline.`
  return `${agent.title}  (agent)\n\n${convert} The page "From ${agent.title}" of the guide lists the equivalents (operator/guide/${agent.name}.md).\n`
}
