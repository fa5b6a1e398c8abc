// `penstock tap PIPELINE`: shows a sample of the events in a Pipeline, from the agents that run it.

import { PenstockError } from '@penstock/agent/errors'
import { defaultTapForm, type TapLine, tapFormatter, tapForms } from '@penstock/agent/events'
import type { Flags } from '@penstock/agent/program'
import { durationMs, helpOf, objectName, parseFlags, wholeNumber } from './arguments.ts'
import { namespaceOption } from './cluster.ts'
import { OperatorConnection, operatorFlagHelp, operatorOptions, stopped } from './operator-client.ts'

const own = {
  ...namespaceOption('of the Pipeline'),
  cluster: { type: 'boolean', help: 'PIPELINE is a ClusterPipeline.' },
  component: {
    type: 'string',
    short: 'c',
    value: 'NAME',
    help: 'Component whose events to show: the output of a source or transform, or the input of a sink (all outputs).',
  },
  node: { type: 'string', value: 'NAME', help: 'Show only events of the agent on this node.' },
  limit: {
    type: 'string',
    short: 'l',
    value: 'N',
    help: 'Maximum number of events per second, from all agents together (100).',
  },
  for: { type: 'string', value: 'TIME', help: 'How long, at most an hour (10m).' },
  format: {
    type: 'string',
    default: defaultTapForm(),
    oneOf: tapForms,
    value: 'FORMAT',
    help: `Format of the events: ${tapForms.join(', ')} (pretty on a terminal, otherwise json).`,
  },
  meta: { type: 'boolean', short: 'm', help: 'Show which component and node each event comes from.' },
  quiet: { type: 'boolean', short: 'q', help: 'Show only events, no notices.' },
} as const satisfies Flags

export const options = { ...own, ...operatorOptions } as const satisfies Flags

export const usage = `Usage: penstock tap PIPELINE [FLAGS]

Shows a sample of the events that pass through a Pipeline, on standard output; notices go to standard error. It needs the verb \`create\` on \`pipelines/tap\` (\`clusterpipelines/tap\`), which the ClusterRoles penstock-edit and penstock-admin grant.

${helpOf(own)}

${operatorFlagHelp}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const [word, ...more] = words
  if (word === undefined || more.length > 0) {
    throw new PenstockError('PEN_USAGE', 'Name one Pipeline: penstock tap PIPELINE [-n NAMESPACE | --cluster].')
  }
  const kind = values.cluster ? 'ClusterPipeline' : 'Pipeline'
  const query = new URLSearchParams({ name: objectName(word, kind), kind })
  if (values.component !== undefined) query.set('component', values.component)
  if (values.node !== undefined) query.set('node', values.node)
  if (values.limit !== undefined) query.set('limit', String(wholeNumber('limit', values.limit, 1, 1000)))
  if (values.for !== undefined) query.set('for', String(durationMs(values.for)))
  const show = await tapFormatter(values.format, values.meta)
  using client = await OperatorConnection.open(
    values,
    `create ${values.cluster ? 'clusterpipelines/tap' : 'pipelines/tap'}`,
  )
  if (!values.cluster) query.set('namespace', client.namespace)
  const signal = stopped()
  try {
    for await (const [received, text] of client.lines(`/v1/tap?${query}`, signal)) {
      if (received.kind === 'event') process.stdout.write(`${show(received as TapLine, text)}\n`)
      else if (received.kind === 'notification' && !values.quiet) console.error(received.message)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return 0
}
