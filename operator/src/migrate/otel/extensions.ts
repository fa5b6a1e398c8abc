// Extensions and settings of the collector itself, and the parts of the cluster or the agent that replace them.

import { isTable } from '@penstock/agent/schema'
import { none, type Refusal } from '../page.ts'
import { type Context, type Part, typeOf } from './mapping.ts'
import type { Config } from './read.ts'

/** Extensions, with their replacements. */
export const extensions: readonly Refusal[] = [
  none('health_check', 'the agent has its own probes', 'The operator configures them.'),
  none('pprof', 'the agent has no such endpoint', 'Use `penstock support-bundle`.'),
  none('zpages', 'the agent has no such endpoint', 'Use `penstock tap` and `penstock top`.'),
  none('file_storage', 'the agent keeps its own checkpoints', 'Disk buffers of sinks replace persistent queues.'),
  none('db_storage', 'the agent keeps its own checkpoints', 'Disk buffers of sinks replace persistent queues.'),
  none('memory_ballast', 'the resources of the pod limit its memory', 'Set them in the Agent resource.'),
  none('k8s_leader_elector', 'only one replica at a time runs a source that must not run twice', 'Nothing to do.'),
  none('k8s_observer', 'the agent watches the pods of its node', 'Nothing to do.'),
  none('basicauth', 'each sink has its own credentials', 'See `auth` of the sink.'),
  none('bearertokenauth', 'each sink has its own credentials', 'See `auth` of the sink.'),
  none(
    'sigv4auth',
    'the sinks `search_engine` and `remote_write_metrics` sign their requests',
    'See `auth.strategy: aws` of the sink.',
  ),
  none('headers_setter', 'each sink has its own headers', 'See `request.headers` of the sink.'),
  none('opamp', 'the operator manages agents', 'See `penstock status`.'),
]

const signed = 'Keep a proxy before the destination that adds them, or set a long-lived token in `auth` of the sink.'

/** Extensions without a replacement. */
export const refusedExtensions: readonly Refusal[] = [
  none('oauth2client', 'no HTTP sink requests OAuth 2.0 tokens', signed),
  none(
    'sigv4auth',
    'no OTLP sink signs requests for AWS',
    'Keep a proxy before the destination that signs them. The sinks `search_engine` and `remote_write_metrics` sign requests themselves: `auth.strategy: aws`.',
  ),
]

/** The refusal for a type of extension. */
export const refusedExtension = (type: string): Refusal | undefined =>
  refusedExtensions.find(({ name }) => name === type)

export function serviceGaps(config: Config, context: Context, find: (id: string) => Part | undefined): void {
  const { service } = config.value
  if (!isTable(service)) return
  if (isTable(service['telemetry']) && Object.keys(service['telemetry']).length > 0) {
    context.replaced(
      config.place(['service', 'telemetry']),
      'service.telemetry',
      'the agent has its own logs and metrics',
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
      const nearest = 'Check whether a remaining component needs it. Sinks have their own credentials.'
      context.missing(place, `extension ${id}`, refused, 'extension', nearest)
    }
  }
}
