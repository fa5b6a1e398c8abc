// `penstock selftest`: applies a Pipeline that delivers nowhere, waits until it is ready, and removes it. `helm test` runs it.
// In a rollout with steps, which takes minutes, it suffices that the first agents run the Pipeline, because the test does not
// cover the steps.

import { errorText } from '@penstock/agent/errors'
import { countedOf, type Flags, pause } from '@penstock/agent/program'
import { type Condition, conditionOf } from '../api/conditions.ts'
import { pipelineKind } from '../api/kinds.ts'
import { apiVersion, type KubeObject } from '../api/object.ts'
import { durationMs, helpOf, parseFlags } from './arguments.ts'
import { connect, connectionOptions, namespaceOption } from './cluster.ts'

interface Tested extends KubeObject {
  readonly spec: unknown
  readonly status?: {
    readonly observedGeneration?: number
    readonly conditions?: readonly Condition[]
    readonly agents?: readonly { readonly current: number; readonly desired: number; readonly failed: number }[]
  }
}

const name = 'penstock-selftest'

export const options = {
  ...namespaceOption('in which to test'),
  timeout: { type: 'string', default: '60s', value: 'TIME', help: 'How long to wait (60s).' },
  ...connectionOptions,
} as const satisfies Flags

export const usage = `Usage: penstock selftest [FLAGS]

Applies a Pipeline that delivers nothing, waits until it is ready, and removes it. Exit code 1 if that takes too long.

${helpOf(options)}
`

export async function run(argv: string[]): Promise<number> {
  const { flags: values } = parseFlags(argv, options)
  const limit = AbortSignal.timeout(durationMs(values.timeout))
  const { client, namespace = 'default' } = await connect(values)
  const applied = await client.apply<Tested>(pipelineKind, {
    apiVersion,
    kind: 'Pipeline',
    metadata: { name, namespace, labels: { 'app.kubernetes.io/part-of': 'penstock' } },
    spec: {
      sources: [{ name: 'logs', type: 'orchestrator_logs' }],
      sinks: [{ name: 'nowhere', type: 'blackhole', config: {} }],
    },
  })
  try {
    let last = 'it has no status yet'
    while (!limit.aborted) {
      const found = await client.get<Tested>(pipelineKind, namespace, name).catch((error: unknown) => {
        last = errorText(error) // the API server may be unavailable for a moment
        return undefined
      })
      const ready = conditionOf(found?.status?.conditions, 'Ready')
      if (ready !== undefined) last = `${ready.reason}: ${ready.message}`
      if (ready?.observedGeneration === applied.metadata.generation) {
        if (ready?.status === 'True') {
          console.log(`Pipeline ${namespace}/${name} is ready.`)
          return 0
        }
        const running = found?.status?.agents?.filter(({ current, failed }) => current > 0 && failed === 0) ?? []
        if (ready?.reason === 'RollingOut' && running.length > 0) {
          const counts = running
            .map(({ current, desired }) => countedOf(current, desired, 'agent', 'runs it', 'run it'))
            .join(', ')
          console.log(`Pipeline ${namespace}/${name} is being rolled out: ${counts}.`)
          return 0
        }
      }
      await pause(500, limit)
    }
    console.error(`Pipeline ${namespace}/${name} was not ready after ${values.timeout}: ${last}`)
    return 1
  } finally {
    await client.delete(pipelineKind, namespace, name)
  }
}
