// Orchestrator events source: the Events of the Kubernetes API about objects of the cluster. It continues from the last delivered
// version. If the server no longer knows that version, the source reads the list and passes on events that are not older, so some
// may be duplicates.

import { defineSource, type OptionProblem } from '../component.ts'
import { componentDirectory } from '../data-dir.ts'
import { ApiServerClient } from '../kube/client.ts'
import { inClusterTarget, kubeConfigTarget } from '../kube/config.ts'
import { reportServerVersion } from '../kube/server-version.ts'
import { bool, list, oneOf, optional, path, seconds, text } from '../schema/options.ts'
import { version } from '../version.ts'
import { Cursors } from './orchestrator_events/cursor.ts'
import { EventFollower } from './orchestrator_events/follower.ts'

export const orchestratorEvents = defineSource({
  type: 'orchestrator_events',
  products: ['Kubernetes'],
  summary: 'Collects Kubernetes Events about the objects of a cluster.',
  description:
    'Watches `events.k8s.io/v1`, which needs Kubernetes 1.19 or newer. Each new event, and each change of one, such as a further occurrence, becomes a log event: `message` is the note, `timestamp` the last occurrence, and the rest is below `orchestrator`: `event_name`, `event_namespace`, `event_uid`, `type`, `reason`, `action`, `count`, `first_timestamp`, `last_timestamp`, `reporting_controller`, `reporting_instance`, and `regarding` and `related` with `api_version`, `kind`, `namespace`, `name`, `uid`, `field_path`. Fields that an event does not have are absent.\n\nThe source keeps its position in `data_dir` and moves it when events are delivered. After a restart it continues from there as long as the API server still knows the version. Otherwise it reads the list again, and skips delivered events and all events more than one minute older than the newest delivered one. Another replica that takes over begins one minute before its predecessor was last known to run. In both cases events may be delivered twice. The source misses events that the API server has removed meanwhile, by default after an hour.\n\nThe agent needs `list` and `watch` on `events` of the group `events.k8s.io`, for the cluster or, with `namespaces`, in each of them.',
  outputs: ['log'],
  acknowledges: true,
  singleton: true,
  runsOn: 'aggregator',
  options: {
    data_dir: optional(
      path(
        'Directory for the position; must be writable. The global `data_dir` if not given.',
        { use: 'folder' },
        { means: { owner: 'agent' } },
      ),
    ),
    extra_field_selector: optional(
      text('Field selector that events must match.', { examples: ['type=Warning', 'regarding.kind=Pod'] }),
    ),
    extra_label_selector: optional(text('Label selector that events must match.')),
    ignore_older_secs: optional(
      seconds('Events whose last occurrence is more than this many seconds ago are skipped.', {
        zero: 'events that occurred before the source started',
      }),
    ),
    include_object: bool(
      'Whether the field `orchestrator.object` holds the event as the API server gives it, in the form of `events.k8s.io/v1`.',
      { default: false },
    ),
    kube_config_file: optional(
      path(
        'Path of a kubeconfig. If not given, the service account of the pod is used.',
        { use: 'read' },
        { means: { owner: 'agent' } },
      ),
    ),
    namespaces: list(text('Name of a namespace.'), 'Namespaces whose events are collected; all if empty.', {
      means: { owner: 'operator' },
      default: [],
      examples: [['shop', 'blog']],
    }),
    read_from: oneOf(
      ['beginning', 'end'],
      'Where the first start begins: with all events that the API server has, or only with new ones.',
      { default: 'end' },
    ),
  },

  check(options) {
    const problems: OptionProblem[] = []
    for (const [index, name] of options.namespaces.entries()) {
      if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) continue
      const message = `"${name}" is not a valid namespace name.`
      problems.push({ path: `namespaces.${index}`, message, help: 'Names consist of `a-z`, `0-9` and `-`.' })
    }
    return problems
  },

  async build(options, context) {
    const { events, stopping } = context
    const { dataDir } = context.globals
    const directory = componentDirectory(options.data_dir ?? dataDir, context.id)
    const target =
      options.kube_config_file === undefined ? inClusterTarget() : kubeConfigTarget(options.kube_config_file)
    const client = new ApiServerClient(await target, `Penstock/${version}`)
    const follower = new EventFollower(client, options, context)
    let cursors: Cursors | undefined

    return {
      async run() {
        cursors = Cursors.open(directory, events)
        const streams = options.namespaces.length === 0 ? [''] : [...new Set(options.namespaces)]
        const own = cursors
        try {
          await Promise.all([
            reportServerVersion(client, context.logger, stopping),
            ...streams.map((stream) => follower.follow(stream, own)),
          ])
        } finally {
          await client.close()
        }
      },
      async settle() {
        await cursors?.close()
      },
    }
  },
})
