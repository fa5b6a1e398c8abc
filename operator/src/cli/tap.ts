// `penstock tap PIPELINE`: a sample of the events that pass through a Pipeline now, from the agents that run it.

import { PenstockError } from '@penstock/agent/errors'
import { defaultTapForm, type TapLine, tapFormatter, tapForms } from '@penstock/agent/events'
import { type CommandOptions, durationMs, oneOf, parseFlags, wholeNumber } from './arguments.ts'
import { OperatorClient, operatorFlagHelp, operatorOptions, stopped } from './operator-client.ts'

export const usage = `Usage: penstock tap PIPELINE [FLAGS]

Shows a sample of the events that pass through a Pipeline now, on standard output; notices are on standard error. It needs the verb
\`create\` on \`pipelines/tap\` (\`clusterpipelines/tap\`), which the ClusterRoles penstock-edit and penstock-admin hold.

  -n, --namespace NS         of the Pipeline; that of the context
  --cluster                  PIPELINE is a ClusterPipeline
  -c, --component NAME       events that leave a source or transform, or that a sink reads; those that leave any of them
  --node NAME                only of the agent on this node
  -l, --limit N              most events a second, of all agents together (100)
  --for TIME                 how long, at most an hour (10m)
  --format FORMAT            ${tapForms.join(', ')} (pretty on a terminal, else json)
  -m, --meta                 with each event, which component on which node it comes from
  -q, --quiet                events only, no notices

${operatorFlagHelp}`

export const options = {
  ...operatorOptions,
  component: { type: 'string', short: 'c' },
  node: { type: 'string' },
  limit: { type: 'string', short: 'l' },
  for: { type: 'string' },
  format: { type: 'string', default: defaultTapForm() },
  meta: { type: 'boolean', short: 'm', default: false },
  quiet: { type: 'boolean', short: 'q', default: false },
} as const satisfies CommandOptions

export async function run(argv: string[]): Promise<number> {
  const { values, positionals } = parseFlags(argv, options, 'words')
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0 || values['all-namespaces']) {
    throw new PenstockError('PEN_USAGE', 'Name one Pipeline: penstock tap PIPELINE [-n NAMESPACE | --cluster].')
  }
  const query = new URLSearchParams({ name, kind: values.cluster ? 'ClusterPipeline' : 'Pipeline' })
  if (values.component !== undefined) query.set('component', values.component)
  if (values.node !== undefined) query.set('node', values.node)
  if (values.limit !== undefined) query.set('limit', String(wholeNumber('limit', values.limit, 1, 1000)))
  if (values.for !== undefined) query.set('for', String(durationMs(values.for)))
  const show = await tapFormatter(oneOf('format', values.format, tapForms), values.meta)
  using client = await OperatorClient.open(
    values,
    `create ${values.cluster ? 'clusterpipelines/tap' : 'pipelines/tap'}`,
  )
  if (!values.cluster) query.set('namespace', client.namespace)
  const signal = stopped()
  try {
    for await (const [said, text] of client.lines(`/v1/tap?${query}`, signal)) {
      if (said.kind === 'event') process.stdout.write(`${show(said as TapLine, text)}\n`)
      else if (said.kind === 'notification' && !values.quiet) console.error(said.message)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return 0
}
