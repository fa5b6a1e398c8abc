// The inputs of a job of `scrape_configs`, and their counterparts.

import { none, type Refusal } from '../page.ts'

const host = 'Keep Promtail for this input, or let the program write to a file that a `file` source reads.'
const listening = 'Keep Promtail for this input; Penstock reads files, queues and the logs of pods.'
const pulled = 'Read from AMQP (`amqp`) or a cloud queue (`cloud_queue`), or keep Promtail for this input.'

/** Kinds of inputs with their counterparts, for the guide. */
export const inputKinds = [
  {
    name: 'kubernetes_sd_configs',
    becomes:
      '`orchestrator_logs`, for the role `pod`; rules that keep or drop pods by one label become selectors. `file`, for the role `node`, if rules set `__path__`',
  },
  { name: 'static_configs', becomes: '`file` for each `__path__`; `orchestrator_logs` if the path matches all pods' },
  {
    name: 'file_sd_configs',
    becomes: 'the same for each group of the files of targets, if they are among the given files',
  },
] as const

/** A file of targets that is not available. */
export const unreadTargets: Refusal = {
  name: 'file_sd_configs',
  reason: 'none of the files is a list of targets with this name',
  nearest: 'Pass the file of targets, too, and convert again. Or set the paths in a `file` source.',
  isHere: true,
}

export const refusedInputs: readonly Refusal[] = [
  none('journal', 'there is no source that reads the journal', host),
  none('syslog', 'there is no source that listens for this protocol', listening),
  none('gelf', 'there is no source that listens for this protocol', listening),
  none('loki_push_api', 'there is no source that listens for this protocol', listening),
  none('heroku_drain', 'there is no source that listens for this protocol', listening),
  none('gcplog', 'there is no source for this service', pulled),
  none('azure_event_hubs', 'there is no source for this protocol', pulled),
  none('kafka', 'there is no source for this protocol', pulled),
  none(
    'cloudflare',
    'there is no source for this service',
    'Send these logs through a queue, or keep Promtail for this input.',
  ),
  none('windows_events', 'there is no agent for Windows nodes', 'Keep Promtail on these nodes.'),
  none(
    'docker_sd_configs',
    'there is no source that reads from the Docker daemon',
    'Read the files of the containers with a `file` source, or pods with `orchestrator_logs`.',
  ),
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
  ].map((name) => none(name, 'Penstock has no service discovery of this kind', 'Set the paths in a `file` source.')),
]
