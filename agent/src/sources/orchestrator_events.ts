// Orchestrator events source: the Events of the Kubernetes API about objects of the cluster. It goes on from the last version that was
// delivered; where that is not known any more, it reads the list and passes on what is not older, so that events may come twice there.

import { setTimeout as wait } from 'node:timers/promises'
import { defineSource, type OptionProblem } from '../component.ts'
import { componentDirectory } from '../data-dir.ts'
import { logBatch } from '../event/batch.ts'
import { KubeClient } from '../kube/client.ts'
import { inClusterTarget, kubeConfigTarget } from '../kube/config.ts'
import { reportServerVersion } from '../kube/server-version.ts'
import { type FollowHooks, follow, followReports } from '../kube/watch.ts'
import { list, oneOf, optional, path, seconds, text } from '../schema/options.ts'
import { untilAborted } from '../timing/wait.ts'
import { version } from '../version.ts'
import { type Cursor, Cursors, marginMs, type Seen } from './orchestrator_events/cursor.ts'
import { type KubeEvent, type Occurrence, readEvent } from './orchestrator_events/log-event.ts'

/** A position that is older than the predecessor's claim by so much is not that of the predecessor. */
const staleMs = 30_000
/** After so many failures in a row, the version itself may be what the server does not take. */
const failuresToRelist = 5
const initialBackoffMs = 1000
const maxBackoffMs = 30_000

export const orchestratorEvents = defineSource({
  type: 'orchestrator_events',
  summary: 'Collects Kubernetes Events about the objects of a cluster.',
  description:
    'Watches `events.k8s.io/v1`, which needs Kubernetes 1.19 or newer. Each new event, and each change of one, such as a further occurrence, becomes a log event: `message` is the note, `timestamp` the last occurrence, and the rest is below `orchestrator`: `event_name`, `event_namespace`, `event_uid`, `type`, `reason`, `action`, `count`, `first_timestamp`, `last_timestamp`, `reporting_controller`, `reporting_instance`, and `regarding` and `related` with `api_version`, `kind`, `namespace`, `name`, `uid`, `field_path`. Fields that an event does not have are absent.\n\nThe position is kept in `data_dir` and moves when events were delivered. After a restart the source goes on from there as long as the API server still knows the version; otherwise it reads the list again and passes over what it has delivered and what is older than a minute before the newest of that. Another replica that takes over begins a minute before its predecessor was last known to run. In both cases events may come twice. Events that the API server has removed meanwhile, by default after an hour, are lost.\n\nThe agent needs `list` and `watch` on `events` of the group `events.k8s.io`, for the cluster or, with `namespaces`, in each of them.',
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
      seconds('Events whose last occurrence is so many seconds ago are passed over.', {
        zero: 'those that occurred before the source reads them',
      }),
    ),
    kube_config_file: optional(
      path(
        'A kubeconfig. If not given, the service account of the pod is used.',
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
      'Where reading starts at the first start: with all events that the API server has, or with those that happen from then on.',
      { default: 'end' },
    ),
  },

  check(options) {
    const problems: OptionProblem[] = []
    for (const [index, name] of options.namespaces.entries()) {
      if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) continue
      const message = `"${name}" is not the name of a namespace.`
      problems.push({ path: `namespaces.${index}`, message, help: 'Names consist of a-z, 0-9 and -.' })
    }
    return problems
  },

  async build(options, context) {
    const { events, output, stopping } = context
    const { logSchema, dataDir } = context.globals
    const directory = componentDirectory(options.data_dir ?? dataDir, context.id)
    const target =
      options.kube_config_file === undefined ? inClusterTarget() : kubeConfigTarget(options.kube_config_file)
    const client = new KubeClient(await target, `Penstock/${version}`)
    const oldestMs =
      options.ignore_older_secs === undefined ? undefined : () => Date.now() - (options.ignore_older_secs ?? 0) * 1000
    let cursors: Cursors | undefined

    const occurrences = (objects: readonly unknown[]): Occurrence[] => {
      const found: Occurrence[] = []
      let bad = 0
      let reason = ''
      for (const object of objects) {
        const occurrence = readEvent(object, logSchema)
        if (typeof occurrence === 'string') {
          bad++
          reason = occurrence
        } else found.push(occurrence)
      }
      if (bad > 0) {
        events.error({
          type: 'parser_failed',
          stage: 'processing',
          message: 'Objects of the Kubernetes API are not events; they are skipped.',
          fields: { reason },
          count: bad,
        })
      }
      return found
    }

    const seenOf = ({ uid, version: own, last }: Occurrence): Seen => ({ uid, version: own, ms: last.ms })
    const isWanted = (cursor: Cursor, occurrence: Occurrence): boolean =>
      !cursor.has(seenOf(occurrence)) && (oldestMs === undefined || occurrence.last.ms >= oldestMs())

    /** Hands events on; what it returns, if anything, resolves when there may be more. */
    const handOn = (
      cursor: Cursor,
      found: readonly Occurrence[],
      reached: string | undefined,
      signal: AbortSignal,
    ): Promise<void> | undefined => {
      // What comes after the end is another's, or read again.
      if (signal.aborted) return undefined
      const finalizer = cursor.handOn(found.map(seenOf), reached)
      const batch = logBatch(
        found.map(({ event }) => event),
        finalizer,
      )
      const full = output.send(batch)
      return full === undefined ? undefined : untilAborted(full, signal)
    }

    const followNamespace = async (namespace: string, { cursor, isKnown }: ReturnType<Cursors['cursor']>) => {
      const preceded = context.precededUntil?.()
      const at = cursors?.at
      if (preceded !== undefined && (!isKnown || at === undefined || preceded - at > staleMs)) {
        cursor.beginAt(Math.min(preceded, Date.now()))
      } else if (!isKnown) {
        // Many events carry whole seconds.
        const now = Math.floor(Date.now() / 1000) * 1000
        cursor.beginAt(options.read_from === 'end' ? now + marginMs : Number.NEGATIVE_INFINITY)
      }
      const followed = {
        name: 'events',
        path: `/apis/events.k8s.io/v1/${namespace === '' ? '' : `namespaces/${namespace}/`}events`,
        labelSelector: options.extra_label_selector,
        fieldSelector: options.extra_field_selector,
      }
      const reports = followReports(events, followed.name)
      let isRelisting = false
      let pauseMs = initialBackoffMs
      while (!stopping.aborted) {
        if (cursor.lost) cursor.rewind()
        const again = new AbortController()
        cursor.onLost = () => again.abort()
        const signal = AbortSignal.any([stopping, again.signal])
        let failures = 0
        let full: Promise<void> | undefined
        const hooks: FollowHooks<KubeEvent> = {
          replaced() {},
          removed() {},
          page(objects) {
            const { floorMs } = cursor
            const found = occurrences(objects).filter((one) => one.last.ms >= floorMs && isWanted(cursor, one))
            return found.length === 0 ? undefined : handOn(cursor, found, undefined, signal)
          },
          changed(object) {
            const [occurrence] = occurrences([object])
            if (occurrence === undefined) return
            failures = 0
            pauseMs = initialBackoffMs
            if (isWanted(cursor, occurrence)) full = handOn(cursor, [occurrence], occurrence.version, signal)
            else if (!signal.aborted) cursor.skip(occurrence.version)
          },
          room() {
            const waiting = full
            full = undefined
            return waiting
          },
          passed(reached) {
            failures = 0
            isRelisting = false
            if (!signal.aborted) cursor.skip(reached)
          },
          failed(error) {
            reports.failed(error)
            failures++
            // A version of another life of the cluster is refused for ever.
            if (failures < failuresToRelist || isRelisting) return
            isRelisting = true
            again.abort()
          },
          listed: reports.listed,
        }
        const from = isRelisting ? undefined : cursor.reach
        await follow<KubeEvent>(client, followed, hooks, { fromCache: false, signal, from })
        if (stopping.aborted || !cursor.lost) continue
        // What could not be delivered is read again, but not at once.
        await wait(pauseMs, undefined, { signal: stopping }).catch(() => {}) // stopping ends the loop
        pauseMs = Math.min(pauseMs * 2, maxBackoffMs)
      }
    }

    return {
      async run() {
        cursors = Cursors.open(directory, events)
        const streams = options.namespaces.length === 0 ? [''] : [...new Set(options.namespaces)]
        const own = cursors
        try {
          await Promise.all([
            reportServerVersion(client, context.logger, stopping),
            ...streams.map((stream) => followNamespace(stream, own.cursor(stream))),
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
