// Extensions and the settings of the collector itself: what a cluster or the agent does in their place.

import { isTable } from '@penstock/agent/schema'
import type { Refusal } from '../page.ts'
import { type Context, none, type Part, typeOf } from './mapping.ts'
import type { Config } from './read.ts'

/** Extensions with what does their work. */
export const extensions: readonly Refusal[] = [
  none('health_check', 'the agent has probes of its own', 'The Agent resource makes them.'),
  none('pprof', 'the agent has no such server', 'Use `penstock support-bundle`.'),
  none('zpages', 'the agent has no such server', 'Use `penstock tap` and `penstock top`.'),
  none('file_storage', 'the agent keeps positions by itself', 'Disk buffers of sinks hold queues.'),
  none('db_storage', 'the agent keeps positions by itself', 'Disk buffers of sinks hold queues.'),
  none('memory_ballast', 'memory is limited by the resources of the pod', 'Set them in the Agent resource.'),
  none('k8s_leader_elector', 'one replica at a time runs a source that must not run twice', 'Nothing is to do.'),
  none('k8s_observer', 'the agent follows the pods of its node', 'Nothing is to do.'),
  none('basicauth', 'sinks have their credentials', 'See `auth` of the sink.'),
  none('bearertokenauth', 'sinks have their credentials', 'See `auth` of the sink.'),
  none(
    'sigv4auth',
    'the sinks `search_engine` and `remote_write_metrics` sign their requests',
    'See `auth.strategy: aws` of the sink.',
  ),
  none('headers_setter', 'sinks have their headers', 'See `request.headers` of the sink.'),
  none('opamp', 'the operator manages agents', 'See `penstock status`.'),
]

const signed = 'Keep a proxy that adds them before the destination, or give `auth` of the sink a token that lasts.'

/** Extensions whose work nothing does. */
export const refusedExtensions: readonly Refusal[] = [
  none('oauth2client', 'no sink over HTTP asks for tokens of OAuth 2.0', signed),
  none(
    'sigv4auth',
    'no sink for OTLP signs its requests for AWS',
    'Keep a proxy that signs them before the destination. The sinks `search_engine` and `remote_write_metrics` sign by themselves: `auth.strategy: aws`.',
  ),
]

/** The refusal of a type of extension. */
export const refusedExtension = (type: string): Refusal | undefined =>
  refusedExtensions.find(({ name }) => name === type)

export function serviceGaps(config: Config, context: Context, find: (id: string) => Part | undefined): void {
  const { service } = config.value
  if (!isTable(service)) return
  if (isTable(service['telemetry']) && Object.keys(service['telemetry']).length > 0) {
    context.replaced(
      config.place(['service', 'telemetry']),
      'service.telemetry',
      'the agent has logs and metrics of its own',
      'Scrape `/metrics` of the agents.',
    )
  }
  const named = service['extensions']
  for (const [index, id] of (Array.isArray(named) ? named.map(String) : []).entries()) {
    const known = extensions.find(({ name }) => name.replaceAll('_', '') === typeOf(id))
    const refused = refusedExtension(typeOf(id))
    const place = find(id)?.place() ?? config.place(['service', 'extensions', index])
    if (known !== undefined) context.replaced(place, `extension ${id}`, known.reason, known.nearest)
    else {
      const nearest = 'See whether a component that is left needs it: credentials stand at the sinks.'
      context.missing(place, `extension ${id}`, refused, 'extension', nearest)
    }
  }
}
