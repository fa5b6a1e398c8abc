// The inputs of a job of `scrape_configs`, and their counterparts.

import type { Refusal } from '../page.ts'

const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })
const host = 'Keep Promtail for it, or let the program write to a file that a `file` source reads.'
const listening = 'Keep Promtail for it; Penstock reads files, queues and the logs of pods.'
const pulled = 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`), or keep Promtail for it.'

/** Kinds of inputs with what becomes of them, for the guide. */
export const inputKinds = [
  {
    name: 'kubernetes_sd_configs',
    becomes: '`orchestrator_logs`, for the role `pod`; rules that keep or drop pods by one label become selectors',
  },
  { name: 'static_configs', becomes: '`file` for each `__path__`; `orchestrator_logs` where that is all pods' },
] as const

export const refusedInputs: readonly Refusal[] = [
  none('journal', 'there is no source of the journal', host),
  none('syslog', 'there is no source that listens for it', listening),
  none('gelf', 'there is no source that listens for it', listening),
  none('loki_push_api', 'there is no source that listens for it', listening),
  none('heroku_drain', 'there is no source that listens for it', listening),
  none('gcplog', 'there is no source for the service', pulled),
  none('azure_event_hubs', 'there is no source for the protocol', pulled),
  none('kafka', 'there is no source for the protocol', pulled),
  none(
    'cloudflare',
    'there is no source for the service',
    'Let the service push to storage that a queue reports, or keep Promtail for it.',
  ),
  none('windows_events', 'there are no agents for nodes with Windows', 'Keep Promtail on these nodes.'),
  none(
    'docker_sd_configs',
    'there is no source of the Docker daemon',
    'Read the files of the containers by a `file` source, or pods by `orchestrator_logs`.',
  ),
  {
    name: 'file_sd_configs',
    reason: 'targets in other files are not read',
    nearest: 'Give their paths to a `file` source.',
    isHere: true,
  },
  ...[
    'consul_sd_configs',
    'consulagent_sd_configs',
    'ec2_sd_configs',
    'gce_sd_configs',
    'azure_sd_configs',
    'dns_sd_configs',
    'http_sd_configs',
    'openstack_sd_configs',
    'digitalocean_sd_configs',
    'serverset_sd_configs',
    'triton_sd_configs',
    'eureka_sd_configs',
    'nomad_sd_configs',
    'marathon_sd_configs',
  ].map((name) => none(name, 'targets are not asked for', 'Give the paths to a `file` source.')),
]
