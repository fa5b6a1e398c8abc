// Orchestrator logs source: the logs of all pods of this node, with what the Kubernetes API knows about them.
// Everything about a container is worked out once and shared by its events; a line costs its prefix, its text and one object.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineSource, type OptionProblem } from '../component.ts'
import { PenstockError } from '../errors.ts'
import { parsePath } from '../event/path.ts'
import { findZone } from '../formats/timezone.ts'
import { KubeClient } from '../kube/client.ts'
import { inClusterTarget, kubeConfigTarget } from '../kube/config.ts'
import { bool, bytes, fieldPath, group, list, oneOf, optional, path, seconds, text, uint } from '../schema/options.ts'
import { PodLogConfinement } from '../tailing/confinement.ts'
import { compileGlob, type Glob, maxAlternatives } from '../tailing/glob.ts'
import { compileMultiline, multiline, multilineProblems } from '../tailing/multiline.ts'
import { compileDelimiter } from '../tailing/slab.ts'
import { Tailer } from '../tailing/tail.ts'
import { defaultReadBytes } from '../tailing/tailed-file.ts'
import { untilAborted } from '../timing/wait.ts'
import { version } from '../version.ts'
import { KubeAccess } from './orchestrator_logs/access.ts'
import {
  compileAnnotator,
  metadataPreset,
  namespaceAnnotationFields,
  nodeAnnotationFields,
  podAnnotationFields,
} from './orchestrator_logs/annotate.ts'
import { LineAssembler } from './orchestrator_logs/assembler.ts'
import { CriParser, zoneOffset } from './orchestrator_logs/cri.ts'
import { PodDescriber } from './orchestrator_logs/describer.ts'
import { DockerParser } from './orchestrator_logs/docker.ts'
import { PodLogHub } from './orchestrator_logs/hub.ts'
import type { PodFile } from './orchestrator_logs/pod-file.ts'
import { PodMetadata } from './orchestrator_logs/pod-metadata.ts'
import { compileLineTime, PodLogReader } from './orchestrator_logs/reader.ts'
import { Throttle } from './orchestrator_logs/throttle.ts'

export const orchestratorLogs = defineSource({
  type: 'orchestrator_logs',
  summary: 'Collects the logs of the pods of a node and adds what the Kubernetes API knows about them.',
  description:
    'Reads the files below `/var/log/pods` and follows pods, namespaces and the node at the API. Pods and namespaces with the label `penstock.dev/exclude: "true"` are left out, and so are the containers that the annotation `penstock.dev/exclude-containers` of a pod names.',
  aliases: ['kubernetes_logs'],
  outputs: ['log'],
  acknowledges: false,
  runsOn: 'node',
  options: {
    auto_partial_merge: bool('Whether lines that the container runtime has cut are joined.', { default: true }),
    data_dir: optional(
      path(
        'Directory for positions; must be writable. The global `data_dir` if not given.',
        { use: 'folder' },
        { means: { owner: 'operator', fixed: true } },
      ),
    ),
    delay_deletion_ms: uint(
      'Milliseconds for which what is known about a deleted pod is kept. Agents of an operator keep it until the files are read; lines that were written later than that after the deletion go without it.',
      { default: 60000, limit: 'keptMilliseconds' },
    ),
    include_paths_glob_patterns: list(path('A glob pattern.', { use: 'glob', within: 'pod logs' }), 'Files to read.', {
      default: ['**/*'],
    }),
    exclude_paths_glob_patterns: list(
      path('A glob pattern.', { use: 'glob', within: 'pod logs' }),
      'Files to leave out.',
      {
        default: ['**/*.gz', '**/*.tmp'],
      },
    ),
    extra_field_selector: optional(
      text('Field selector that pods must match besides being on the node.', {
        means: { owner: 'cluster' },
        examples: ['metadata.namespace=shop'],
      }),
    ),
    extra_label_selector: optional(text('Label selector that pods must match.', { examples: ['app=web'] })),
    extra_namespace_label_selector: optional(
      text('Label selector that the namespaces of pods must match.', {
        means: { owner: 'cluster' },
        examples: ['team=shop'],
      }),
    ),
    fingerprint_lines: uint('Number of first lines that identify a file. A file with fewer lines is not read.', {
      default: 1,
      minimum: 1,
      limit: 'fingerprintLines',
    }),
    glob_minimum_cooldown_ms: uint(
      'Milliseconds between two walks of all folders; agents of an operator share them, at most one in 30 s. New files are seen sooner where the system reports them.',
      { default: 60000, minimum: 1, means: { tenantMinimum: 1000 } },
    ),
    ignore_older_secs: optional(
      uint('Files that were not written to for so many seconds are taken as read.', { aliases: ['ignore_older'] }),
    ),
    ingestion_timestamp_field: optional(fieldPath('Field for the time at which the line was read. Empty: none.')),
    insert_namespace_fields: bool('Whether namespaces are followed and their labels added.', { default: true }),
    internal_metrics: group(
      { include_file_tag: bool('Whether metrics carry the path of the file.', { default: false }) },
      'Labels of the metrics of this source.',
    ),
    kube_config_file: optional(
      path(
        'A kubeconfig. If not given, the service account of the pod is used.',
        { use: 'read' },
        { means: { owner: 'operator', fixed: true } },
      ),
    ),
    logs_dir: path(
      'Directory with the folders of pods. A link in it is read if it leads to a file below it, or to a log of Docker (`<id>/<id>-json.log`).',
      { use: 'folder' },
      { default: '/var/log/pods', means: { owner: 'operator', fixed: true } },
    ),
    max_line_bytes: bytes('Longest line in bytes, prefix included; longer ones are discarded.', {
      default: 32768,
      minimum: 1,
      limit: 'lineBytes',
    }),
    max_merged_line_bytes: optional(
      bytes('Longest line after its parts were joined.', { minimum: 1, limit: 'mergedLineBytes' }),
    ),
    max_merged_line_action: oneOf(
      ['drop', 'truncate'],
      'Handling of a joined line that is too long: `drop` discards it, `truncate` cuts it and appends `..TRUNCATED`.',
      { default: 'drop' },
    ),
    max_read_bytes: optional(
      bytes(
        'Bytes read from one file before the next has its turn; a longer line is still read as a whole. If not given, the limit is 2048, and is looked at after each chunk of 64 KiB: small limits cost time for each turn.',
        { minimum: 1, limit: 'readBytes' },
      ),
    ),
    metadata: metadataPreset(),
    multiline: multiline(),
    namespace_annotation_fields: namespaceAnnotationFields(),
    node_annotation_fields: nodeAnnotationFields(),
    oldest_first: bool('Whether older files of a container are read to their end before newer ones.', {
      default: true,
    }),
    pod_annotation_fields: podAnnotationFields(),
    read_from: oneOf(['beginning', 'end'], 'Where reading starts in files that are there at the first start.', {
      default: 'beginning',
    }),
    rotate_wait_secs: optional(
      seconds('Seconds after which a file that was removed is closed although it was not read to its end.'),
    ),
    self_node_name: optional(
      text('Name of the node. The environment variable AGENT_SELF_NODE_NAME if not given.', {
        means: { owner: 'operator', fixed: true },
        examples: ['node-1'],
      }),
    ),
    timezone: optional(
      text(
        'Time zone of times that name none: a name of the TZ database, or `local`; the global `timezone` if not given.',
        { examples: ['Europe/Berlin'] },
      ),
    ),
    use_apiserver_cache: bool(
      'Whether lists are read from the cache of the API server: less load, perhaps a little old.',
      { default: false, means: { fixed: true } },
    ),
  },

  check(options) {
    const problems: OptionProblem[] = []
    for (const name of ['include_paths_glob_patterns', 'exclude_paths_glob_patterns'] as const) {
      options[name].forEach((pattern, index) => {
        if (compileGlob(pattern) !== undefined) return
        problems.push({
          path: `${name}.${index}`,
          message: `The pattern "${pattern}" has a bracket or brace that is not closed, or too many braces: it may have 64, and stand for ${maxAlternatives} patterns.`,
        })
      })
    }
    const fields: [string, string | undefined][] = [['ingestion_timestamp_field', options.ingestion_timestamp_field]]
    for (const table of ['pod', 'namespace', 'node'] as const) {
      const members: Readonly<Record<string, string>> = options[`${table}_annotation_fields`]
      for (const [name, text] of Object.entries(members)) fields.push([`${table}_annotation_fields.${name}`, text])
    }
    for (const [option, text] of fields) {
      if (text === undefined || text === '') continue
      const parsed = parsePath(text)
      if (parsed?.root === 'event' && parsed.segments.length > 0) continue
      problems.push({
        path: option,
        message: `"${text}" is not a path to a field of the event.`,
        help: 'Write a path such as `.orchestrator.pod_name`, or an empty string for no field.',
      })
    }
    if (options.timezone !== undefined && findZone(options.timezone) === undefined) {
      problems.push({
        path: 'timezone',
        message: `The time zone "${options.timezone}" is not known.`,
        help: 'Use a name of the TZ database, such as `Europe/Berlin`, or `local`.',
      })
    }
    return [...problems, ...multilineProblems(options.multiline)]
  },

  async build(options, context) {
    const { logSchema, timezone } = context.globals
    const hub = context.hub instanceof PodLogHub ? context.hub : undefined
    const { subscription } = context
    const selection = subscription === undefined ? undefined : hub?.select(subscription)
    const node = hub?.node ?? nodeName(options.self_node_name)
    const client =
      hub?.client ??
      new KubeClient(
        await (options.kube_config_file === undefined ? inClusterTarget() : kubeConfigTarget(options.kube_config_file)),
        `Penstock/${version}`,
      )
    const metadata = hub?.metadata ?? new PodMetadata()
    metadata.keepFor(options.delay_deletion_ms)
    const annotator = compileAnnotator(
      options.pod_annotation_fields,
      options.insert_namespace_fields ? options.namespace_annotation_fields.namespace_labels : '',
      options.node_annotation_fields.node_labels,
      options.metadata,
    )
    const hasFile = options.metadata === 'full'
    const access =
      hub?.access ??
      new KubeAccess(
        client,
        {
          node,
          namespaces: options.insert_namespace_fields,
          nodeLabels: annotator.nodeLabels,
          fromCache: options.use_apiserver_cache,
          fieldSelector: options.extra_field_selector,
          labelSelector: options.extra_label_selector,
          namespaceLabelSelector: options.extra_namespace_label_selector,
          leftOutFile: join(options.data_dir ?? context.globals.dataDir, context.id, 'left-out.json'),
          keptPodsDir: join(options.data_dir ?? context.globals.dataDir, context.id, 'pods'),
        },
        metadata,
        context,
        () => tailer.reconsider(),
      )

    const root = hub?.root ?? resolve(options.logs_dir)
    const { perContainer, pipeline, shared = [] } = subscription?.limits ?? {}
    const pipelineLimiter =
      pipeline === undefined ? undefined : hub?.limiter(subscription?.cursor.split('/')[0] ?? '', pipeline)
    const sharedLimiters = shared.flatMap(({ key, bytes }) => hub?.limiter(key, { bytes, onLimit: 'lag' }) ?? [])
    const throttle = new Throttle({ perContainer, pipeline: pipelineLimiter, shared: sharedLimiters }, context.events)
    const include = globs(options.include_paths_glob_patterns)
    const exclude = globs(options.exclude_paths_glob_patterns)
    const includeAll = options.include_paths_glob_patterns.includes('**/*')
    const zone = zoneOffset(options.timezone === 'local' ? Temporal.Now.timeZoneId() : (options.timezone ?? timezone))
    const cri = new CriParser(zone)
    const docker = new DockerParser(zone)
    const rule = options.multiline === undefined ? undefined : compileMultiline(options.multiline)
    const mergeLimit =
      options.max_merged_line_bytes === undefined
        ? undefined
        : { maxBytes: options.max_merged_line_bytes, action: options.max_merged_line_action }
    const ingestionPath = options.ingestion_timestamp_field
      ? parsePath(options.ingestion_timestamp_field)?.segments
      : undefined
    const { messageKey, timestampKey, sourceTypeKey } = logSchema
    const usualKeys =
      messageKey === 'message' &&
      timestampKey === 'timestamp' &&
      sourceTypeKey === 'source_type' &&
      ingestionPath === undefined
    const fileTag = options.internal_metrics.include_file_tag

    const writtenAt = compileLineTime(cri, docker)
    const assembler = new LineAssembler(
      {
        merges: options.auto_partial_merge,
        mergeLimit,
        rule,
        hasFile,
        messageKey,
        timestampKey,
        ingestionPath,
      },
      context.events,
    )
    const describer = new PodDescriber(
      metadata,
      {
        node,
        annotator,
        isManaged: hub !== undefined,
        delayDeletionMs: options.delay_deletion_ms,
        hasFile,
        fileTag,
        usualKeys,
        sourceTypeKey,
        writtenAt,
      },
      context.events,
    )
    const reader = new PodLogReader(
      { root, timestampKey, hasSuccessor: subscription !== undefined },
      { cri, docker, assembler, describer, throttle },
      context,
    )

    const tailer = new Tailer<PodFile>(
      {
        rules: {
          roots: [root],
          enter: (directory) => {
            const names = directory.slice(root.length + 1).split('/')
            const folder = names[0] as string
            if (names.length === 1) return selection === undefined ? access.wants(folder) : selection.pod(folder)
            if (selection !== undefined && names.length === 2) return selection.container(folder, names[1] as string)
            return names.length === 2 && metadata.pod(folder)?.excludedContainers.has(names[1] as string) !== true
          },
          accept: (found) => {
            const names = found.slice(root.length + 1).split('/')
            return (
              names.length === 3 &&
              (names[2] as string).includes('.log') &&
              (includeAll || include.some((glob) => glob.matches(found))) &&
              !exclude.some((glob) => glob.matches(found))
            )
          },
        },
        fingerprint: { strategy: 'checksum', lines: options.fingerprint_lines, maxLineBytes: options.max_line_bytes },
        delimiter: compileDelimiter(Buffer.from('\n')),
        maxLineBytes: options.max_line_bytes,
        maxReadBytes: options.max_read_bytes ?? defaultReadBytes,
        isReadBoundExact: options.max_read_bytes !== undefined,
        oldestFirst: options.oldest_first,
        readFrom: options.read_from,
        ignoreOlderMs: options.ignore_older_secs === undefined ? undefined : options.ignore_older_secs * 1000,
        ignoreCheckpoints: false,
        rotateWaitMs: options.rotate_wait_secs === undefined ? undefined : options.rotate_wait_secs * 1000,
        sweepMs: options.glob_minimum_cooldown_ms,
        stopAtEnd: false,
        removeAfterMs: undefined,
        lastLine: false,
        dataDir: hub?.cursorsDir ?? options.data_dir ?? context.globals.dataDir,
        componentId: subscription?.cursor ?? context.id,
        fileTag,
        find: hub === undefined ? undefined : (rules, hooks) => hub.find(rules, hooks),
        pool: hub?.pool,
        turns: hub === undefined ? undefined : context.turns,
        maxRotatedFiles: hub?.maxRotatedFiles,
        // What a descriptor has open, only Linux says.
        confinement: process.platform === 'linux' ? new PodLogConfinement(root) : undefined,
        isDiskFull: hub === undefined ? undefined : () => hub.isDiskFull,
      },
      reader,
      context,
    )

    const secondsSince = (time: number | undefined): number =>
      time === undefined ? 0 : Math.max(0, Date.now() - time) / 1000

    let running = false
    return {
      async run() {
        running = true
        const release = setInterval(
          () => reader.releaseExpired(),
          rule === undefined ? 1000 : Math.min(1000, rule.timeoutMs),
        )
        if (hub !== undefined && subscription !== undefined && selection !== undefined) {
          const unfollow = hub.follow(subscription, (folder) => {
            if (folder !== undefined && selection.excludes(folder)) tailer.leave(`${root}/${folder}`)
            tailer.reconsider(folder === undefined ? undefined : `${root}/${folder}`)
          })
          try {
            await untilAborted(hub.listed(), context.stopping)
            await tailer.run()
          } finally {
            clearInterval(release)
            unfollow()
          }
          return
        }
        const ending = new AbortController()
        const signal = AbortSignal.any([context.stopping, ending.signal])
        const { listed, ended } = access.start(signal)
        const forget = setInterval(() => {
          for (const folder of metadata.expire(Date.now())) {
            if (existsSync(`${root}/${folder}`)) access.recheck(folder, () => tailer.leave(`${root}/${folder}`))
          }
          access.forget((folder) => existsSync(`${root}/${folder}`))
        }, 1000)
        try {
          await listed
          await tailer.run()
        } finally {
          clearInterval(release)
          clearInterval(forget)
          ending.abort()
          await client.close()
          await ended
        }
      },
      lagSeconds: () => secondsSince(tailer.oldestUnread(writtenAt)),
      positions: (podUid) =>
        tailer
          .standing(({ state }) => state.uid === podUid, writtenAt)
          .map(({ file, size, unreadSince }) => ({
            container: file.state.container,
            file: file.path,
            size,
            read: file.offset,
            delivered: file.progress.position,
            lagSeconds: secondsSince(unreadSince),
            dropped: file.state.dropped,
          })),
      async healthcheck(signal) {
        const { status } = await client
          .json('/version', signal)
          .finally(() => (running || hub !== undefined ? undefined : client.disconnect()))
        if (status !== 200) {
          throw new PenstockError(
            'PEN_KUBERNETES',
            `The Kubernetes API answered ${status} to the request for its version.`,
          )
        }
      },
    }
  },
})

function nodeName(option: string | undefined): string {
  // What is left of a variable that is not set is no name.
  if (option !== undefined && option !== '' && !/^\$\{.*\}$/.test(option)) return option
  const name = process.env['AGENT_SELF_NODE_NAME'] || process.env['VECTOR_SELF_NODE_NAME']
  if (name) return name
  throw new PenstockError(
    'PEN_NODE_NAME',
    'self_node_name config value or AGENT_SELF_NODE_NAME env var is not set. Set the variable from `spec.nodeName` by the downward API.',
  )
}

function globs(patterns: readonly string[]): Glob[] {
  return patterns.map(compileGlob).filter((glob) => glob !== undefined)
}
