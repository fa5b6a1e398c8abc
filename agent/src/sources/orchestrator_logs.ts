// Orchestrator logs source: the logs of all pods of this node, with what the Kubernetes API knows about them.
// Everything about a container is worked out once and shared by its events; a line costs its prefix, its text and one object.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineSource, type OptionProblem, type OriginTags, reconfigured } from '../component.ts'
import { PenstockError } from '../errors.ts'
import { logBatch } from '../event/batch.ts'
import type { Finalizer } from '../event/finalizer.ts'
import { type EventMetadata, LogEvent, noMetadata } from '../event/log.ts'
import { parsePath, setPath } from '../event/path.ts'
import { markShared } from '../event/shared-object.ts'
import { Timestamp } from '../event/timestamp.ts'
import type { Bytes, ValueObject } from '../event/value.ts'
import { findZone } from '../formats/timezone.ts'
import { KubeClient } from '../kube/client.ts'
import { inClusterTarget, kubeConfigTarget } from '../kube/config.ts'
import { bool, bytes, fieldPath, group, list, oneOf, optional, path, seconds, text, uint } from '../schema/options.ts'
import { PodLogConfinement } from '../tailing/confinement.ts'
import { compileGlob, type Glob, maxAlternatives } from '../tailing/glob.ts'
import { compileMultiline, MultilineAggregator, multiline, multilineProblems } from '../tailing/multiline.ts'
import { compileDelimiter, type Slab } from '../tailing/slab.ts'
import { Tailer } from '../tailing/tail.ts'
import { defaultReadBytes, type LineTime, type TailedFile } from '../tailing/tailed-file.ts'
import { fact } from '../telemetry/facts.ts'
import { version } from '../version.ts'
import { KubeAccess } from './orchestrator_logs/access.ts'
import {
  compileAnnotator,
  metadataPreset,
  namespaceAnnotationFields,
  nodeAnnotationFields,
  podAnnotationFields,
  usualAnnotator,
} from './orchestrator_logs/annotate.ts'
import { CriParser, zoneOffset } from './orchestrator_logs/cri.ts'
import { DockerParser } from './orchestrator_logs/docker.ts'
import { PodLogHub } from './orchestrator_logs/hub.ts'
import { Limiter } from './orchestrator_logs/limiter.ts'
import { bytesOf, PartialLine } from './orchestrator_logs/partial.ts'
import { type Pod, PodMetadata, parseFolder } from './orchestrator_logs/pod-metadata.ts'

type Stream = 'stdout' | 'stderr'
type Group = MultilineAggregator<{ readonly timestamp: Timestamp; readonly stream: Stream }>

/**
 * What a source that goes on with a file reads again: lines that its predecessor held back, by stream from where on. All others
 * before `until` have been handed on.
 */
interface Resumed {
  readonly until: number
  readonly from: Readonly<Record<Stream, number | undefined>>
}

/** What is kept for a file. */
interface PodFile {
  readonly folder: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly container: string
  origin: OriginTags
  /** Fields that all events of the file have, made from the objects below. */
  constants: ValueObject
  /** In a bundle, what is known about the pod also stands where no program can change it. */
  metadata: EventMetadata
  /** What fast events are made from; undefined where the fields are not the usual ones. */
  orchestrator: ValueObject | undefined
  pod: Pod | undefined
  namespaceLabels: ValueObject | undefined
  nodeLabels: ValueObject | undefined
  path: string
  /** Lines written later than this are not of the pod that is known here, because it was deleted before. */
  knownUntilMs: number
  /** Revision of the metadata that the objects above come from. */
  revision: number
  /** Tags of `log_bytes_written_total`: one object, by which the counter is found. */
  readonly writtenTags: { readonly namespace: string }
  /** The path that it is written under; a rotated file has another, which goes on from this one. */
  readonly writtenPath: string
  /** Lines were read. */
  begun: boolean
  resumed: Resumed | undefined
  readonly limiter: Limiter | undefined
  /** Lines left out because of a limit. */
  dropped: number
  /** No line is read before, because the container is over its limit. */
  heldUntil: number
  /** What stands for parts of lines that began in the file before, until they are handed on. */
  carried: Finalizer[]
  readonly partials: Readonly<Record<Stream, PartialLine>>
  readonly groups: Readonly<Record<Stream, Group>> | undefined
}

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
    fingerprint_lines: uint('First lines by which files are told apart. A file with fewer lines is not read.', {
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
      'What metrics of this source carry.',
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
      'What becomes of a joined line that is too long: it is discarded, or cut and marked with `..TRUNCATED`.',
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
    const metadata = hub?.metadata ?? new PodMetadata(options.delay_deletion_ms)
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

    const protector = hub === undefined ? undefined : usualAnnotator()
    const root = hub?.root ?? resolve(options.logs_dir)
    const { perContainer, pipeline, shared = [] } = subscription?.limits ?? {}
    const pipelineLimiter =
      pipeline === undefined ? undefined : hub?.limiter(subscription?.cursor.split('/')[0] ?? '', pipeline)
    const sharedLimiters = shared.flatMap(({ key, bytes }) => hub?.limiter(key, { bytes, onLimit: 'lag' }) ?? [])
    const isLimited = perContainer !== undefined || pipelineLimiter !== undefined || sharedLimiters.length > 0
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

    let format: 'cri' | 'docker' | undefined
    /** Events that are about to be handed on, all of one file. */
    let emitted: LogEvent[] = []
    /** Files that hold something back. */
    const holding = new Set<TailedFile<PodFile>>()

    const emit = (
      file: PodFile,
      message: string | Bytes,
      stream: Stream,
      timestamp: Timestamp,
      partial: boolean,
    ): void => {
      const { orchestrator } = file
      if (orchestrator !== undefined && !partial) {
        const source_type = 'orchestrator_logs'
        const fields: ValueObject = hasFile
          ? { file: file.path, message, orchestrator, source_type, stream, timestamp }
          : { message, orchestrator, source_type, stream, timestamp }
        emitted.push(new LogEvent(fields, file.metadata))
        return
      }
      const fields: ValueObject = { ...file.constants, [messageKey]: message, stream, [timestampKey]: timestamp }
      if (partial) fields['_partial'] = true
      if (ingestionPath !== undefined) setPath(fields, ingestionPath, Timestamp.now())
      emitted.push(new LogEvent(fields, file.metadata))
    }

    /** A whole line, on its way to its group or out. */
    const complete = (
      file: PodFile,
      message: string | Bytes,
      stream: Stream,
      timestamp: Timestamp,
      start: number,
      now: number,
    ): void => {
      if (file.groups === undefined) emit(file, message, stream, timestamp, false)
      else file.groups[stream].add(message, start, { timestamp, stream }, now)
    }

    /** What the parts of a line have become. */
    const finishPartial = (file: PodFile, stream: Stream, whole: boolean, now: number): void => {
      const partial = file.partials[stream]
      const timestamp = partial.timestamp as Timestamp
      const merged = partial.take()
      if (merged === 'too_long') {
        context.events.error({
          type: 'condition_failed',
          stage: 'receiving',
          code: 'reading_line_from_kubernetes_log',
          message: 'A joined line is longer than `max_merged_line_bytes` and was discarded.',
          fields: { file: fact(file.path), max_merged_line_bytes: options.max_merged_line_bytes },
        })
        context.events.discarded(1, false, 'The joined line is longer than `max_merged_line_bytes`.')
        return
      }
      if (merged.truncated) context.events.count('k8s_merged_line_truncated_total')
      if (whole) complete(file, merged.text, stream, timestamp, partial.start, now)
      else emit(file, merged.text, stream, timestamp, true)
    }

    const take = (
      file: PodFile,
      message: string | Bytes,
      stream: Stream,
      timestamp: Timestamp,
      part: boolean,
      start: number,
      now: number,
    ): void => {
      const pending = file.partials[stream]
      if (part) {
        if (!options.auto_partial_merge) emit(file, message, stream, timestamp, true)
        else pending.add(bytesOf(message), timestamp, start, now)
      } else if (pending.pending) {
        pending.add(bytesOf(message), timestamp, start, now)
        finishPartial(file, stream, true, now)
      } else complete(file, message, stream, timestamp, start, now)
    }

    /** Position from which the file must be read again: before everything that is held back. */
    const safePosition = (file: PodFile, position: number): number =>
      Math.min(position, heldFrom(file, 'stdout') ?? position, heldFrom(file, 'stderr') ?? position)

    const handOn = (tailed: TailedFile<PodFile>, position: number): Promise<void> | undefined => {
      const file = tailed.state
      const safe = safePosition(file, position)
      if (safe < position) holding.add(tailed)
      if (emitted.length === 0) {
        tailed.progress.skip(safe)
        return undefined
      }
      const events = emitted
      emitted = []
      const { carried } = file
      if (carried.length === 0 || file.partials.stdout.pending || file.partials.stderr.pending) {
        return context.output.send(logBatch(events, tailed.progress.handOn(safe)), file.origin)
      }
      file.carried = []
      const finalizer = tailed.progress.handOn(safe, (status) => {
        for (const before of carried) before.release(1, status)
      })
      return context.output.send(logBatch(events, finalizer), file.origin)
    }

    /** The runtime may cut a line where it changes files: its first parts are then the last of the file that was renamed. */
    const continueLine = (tailed: TailedFile<PodFile>): void => {
      const file = tailed.state
      for (const before of holding) {
        if (before === tailed || before.state.writtenPath !== file.writtenPath) continue
        if (before.path === file.writtenPath || before.created > tailed.created) continue
        let moved = false
        for (const stream of streams) {
          if (!before.state.partials[stream].pending) continue
          file.partials[stream].continueFrom(before.state.partials[stream])
          moved = true
        }
        if (moved) file.carried.push(before.progress.handOn(safePosition(before.state, before.offset)))
      }
    }

    const labelsOf = (namespace: string, pod: Pod | undefined) =>
      metadata.namespaceLabels(namespace) ?? pod?.namespaceLabels

    /** Whether lines are of a time at which their pod was known: before its deletion, and for `delay_deletion_ms` after it. */
    const isStillKnown = (file: PodFile, slab: Slab): boolean => {
      const deleted = metadata.deletedAt(file.folder)
      if (metadata.pod(file.folder) !== undefined && deleted === undefined) {
        file.knownUntilMs = Number.POSITIVE_INFINITY
        return true
      }
      const now = Date.now()
      if (file.knownUntilMs === Number.POSITIVE_INFINITY) {
        file.knownUntilMs = (deleted ?? now - metadata.delayMs) + options.delay_deletion_ms
      }
      if (now <= file.knownUntilMs) return true
      const written = writtenAt(slab.buffer, slab.starts[0] as number, slab.ends[0] as number)
      return written === undefined || written <= file.knownUntilMs
    }

    /** Makes what all events of a file share, if what it is made from has changed. */
    const refresh = (tailed: TailedFile<PodFile>, slab: Slab): void => {
      const file = tailed.state
      const { revision } = metadata
      const isLate = hub !== undefined && Date.now() > file.knownUntilMs && file.pod !== undefined
      if (file.revision === revision && file.path === tailed.path && !isLate) return
      file.revision = revision
      // For agents of an operator, what was known of a deleted pod holds until its files are read: another has another folder.
      const before = hub === undefined ? undefined : file
      const isKnown = hub === undefined || isStillKnown(file, slab)
      const pod = isKnown ? (metadata.pod(file.folder) ?? before?.pod) : undefined
      const namespaceLabels = annotator.namespaceLabels
        ? (labelsOf(file.namespace, pod) ?? before?.namespaceLabels)
        : undefined
      const nodeLabels = annotator.nodeLabels ? metadata.nodeLabels(pod?.node ?? node) : undefined
      if (
        file.pod === pod &&
        file.namespaceLabels === namespaceLabels &&
        file.nodeLabels === nodeLabels &&
        file.path === tailed.path
      ) {
        return
      }
      file.pod = pod
      file.namespaceLabels = namespaceLabels
      file.nodeLabels = nodeLabels
      file.path = tailed.path
      annotate(file)
    }

    const annotate = (file: PodFile): void => {
      const constants: ValueObject = hasFile ? { file: file.path } : {}
      setPath(constants, [sourceTypeKey], 'orchestrator_logs')
      annotator.annotate(constants, file)
      file.constants = constants
      if (protector !== undefined) {
        const known: ValueObject = {}
        protector.annotate(known, file)
        file.metadata = { value: { vector: known }, secrets: {} }
      }
      for (const value of Object.values(constants)) markShared(value)
      const { orchestrator } = constants
      const names = Object.keys(constants).sort().join()
      const usual = usualKeys && names === (hasFile ? 'file,orchestrator,source_type' : 'orchestrator,source_type')
      file.orchestrator = usual && !Array.isArray(orchestrator) ? (orchestrator as ValueObject) : undefined
      file.origin = {
        pod_name: file.name,
        pod_namespace: file.namespace,
        container_name: file.container,
        ...(fileTag ? { file: file.path } : {}),
      }
    }

    const countMissing = (file: PodFile, count: number): void => {
      if (count === 0) return
      if (file.pod === undefined) {
        context.events.count('k8s_event_annotation_failures_total', count)
        context.events.error({
          type: 'reader_failed',
          stage: 'processing',
          code: 'annotation_failed',
          message: 'Events could not be annotated, because their pod is not known.',
          fields: { file: fact(file.path) },
          count,
          level: 'warn',
        })
      }
      if (annotator.namespaceLabels && file.namespaceLabels === undefined) {
        context.events.count('k8s_event_namespace_annotation_failures_total', count)
      }
      if (annotator.nodeLabels && file.nodeLabels === undefined) {
        context.events.count('k8s_event_node_annotation_failures_total', count)
      }
    }

    const malformed = (file: PodFile, count: number): void => {
      if (format === 'docker') context.events.count('k8s_docker_format_parse_failures_total', count)
      context.events.error({
        type: 'parser_failed',
        stage: 'processing',
        message: 'Lines are not in the format of the container runtime and were discarded.',
        fields: { file: fact(file.path), ...(format === undefined ? {} : { format: fact(format) }) },
        count,
        level: 'warn',
      })
      context.events.discarded(count, false, 'The line is not in the format of the container runtime.')
    }

    const readCri = (file: PodFile, slab: Slab): number => {
      const { buffer, starts, ends, count, base } = slab
      const now = slab.time.ms
      const { stdout, stderr } = file.partials
      const { resumed } = file
      let bad = 0
      for (let line = 0; line < count; line++) {
        const start = starts[line] as number
        const end = ends[line] as number
        if (!cri.parse(buffer, start, end)) {
          bad++
          continue
        }
        if (resumed !== undefined && isHandedOn(resumed, cri.stream, base + start)) continue
        if (cri.partial || file.groups !== undefined || stdout.pending || stderr.pending) {
          // Parts stay bytes until they are joined: the cut may go through a character.
          const pending = cri.stream === 'stdout' ? stdout : stderr
          if (options.auto_partial_merge && (cri.partial || pending.pending)) {
            pending.add(buffer.subarray(cri.message, end), cri.timestamp, base + start, now)
            if (!cri.partial) finishPartial(file, cri.stream, true, now)
          } else {
            take(file, slab.text(cri.message, end), cri.stream, cri.timestamp, cri.partial, base + start, now)
          }
          continue
        }
        emit(file, slab.text(cri.message, end), cri.stream, cri.timestamp, false)
      }
      return bad
    }

    const readDocker = (file: PodFile, slab: Slab): number => {
      let bad = 0
      for (let line = 0; line < slab.count; line++) {
        const start = slab.starts[line] as number
        const parsed = docker.parse(slab.buffer.toString('utf8', start, slab.ends[line] as number))
        if (parsed === undefined) bad++
        else {
          const { message, stream, timestamp, partial } = parsed
          if (file.resumed !== undefined && isHandedOn(file.resumed, stream, slab.base + start)) continue
          take(file, message, stream, timestamp, partial, slab.base + start, slab.time.ms)
        }
      }
      return bad
    }

    /** Applies the limits to what was read, before any work is spent on it; gives how long the whole pipeline must wait. */
    const limit = (tailed: TailedFile<PodFile>, slab: Slab): number => {
      const { limiter } = tailed.state
      const now = Date.now()
      for (const each of [limiter, pipelineLimiter]) {
        if (each?.onLimit !== 'drop') continue
        const dropped = slab.keep((start, end) => each.takes(end - start, now))
        if (dropped === 0) continue
        tailed.state.dropped += dropped
        context.events.count('rate_limited_lines_total', dropped, each === limiter ? ofContainer : ofPipeline)
        context.events.discarded(dropped, true, 'The limit of lines or bytes a second is reached.')
      }
      let bytes = 0
      for (let line = 0; line < slab.count; line++) bytes += (slab.ends[line] as number) - (slab.starts[line] as number)
      if (limiter?.onLimit === 'lag') {
        const waitMs = limiter.owe(slab.count, bytes, now)
        if (waitMs > 0) {
          tailed.state.heldUntil = now + waitMs
          tailed.waitUntil = tailed.state.heldUntil
        }
      }
      let waitMs = pipelineLimiter?.onLimit === 'lag' ? pipelineLimiter.owe(slab.count, bytes, now) : 0
      for (const each of sharedLimiters) waitMs = Math.max(waitMs, each.owe(slab.count, bytes, now))
      return waitMs
    }

    const closed = (tailed: TailedFile<PodFile>): Promise<void> | undefined => {
      holding.delete(tailed)
      const file = tailed.state
      for (const stream of streams) {
        if (file.partials[stream].pending) finishPartial(file, stream, false, 0)
        file.groups?.[stream].flush()
      }
      return emitted.length === 0 ? undefined : handOn(tailed, tailed.offset)
    }

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
      {
        opened(tailed) {
          const [folder = '', container = ''] = tailed.path.slice(root.length + 1).split('/')
          const { namespace, name, uid } = parseFolder(folder) ?? { namespace: '', name: '', uid: '' }
          const file: PodFile = {
            folder,
            namespace,
            name,
            uid,
            container,
            origin: {},
            constants: {},
            metadata: noMetadata,
            orchestrator: undefined,
            pod: metadata.pod(folder),
            knownUntilMs: Number.POSITIVE_INFINITY,
            namespaceLabels: annotator.namespaceLabels ? labelsOf(namespace, metadata.pod(folder)) : undefined,
            nodeLabels: annotator.nodeLabels ? metadata.nodeLabels(node) : undefined,
            path: tailed.path,
            revision: -1,
            writtenTags: { namespace },
            writtenPath: tailed.path.slice(0, tailed.path.lastIndexOf('.log') + 4),
            begun: false,
            resumed: tailed.progress.note as Resumed | undefined,
            limiter: perContainer === undefined ? undefined : new Limiter(perContainer),
            dropped: 0,
            heldUntil: 0,
            carried: [],
            partials: { stdout: new PartialLine(mergeLimit), stderr: new PartialLine(mergeLimit) },
            groups:
              rule === undefined
                ? undefined
                : {
                    stdout: new MultilineAggregator(rule, (text, first) =>
                      emit(file, text, first.stream, first.timestamp, false),
                    ),
                    stderr: new MultilineAggregator(rule, (text, first) =>
                      emit(file, text, first.stream, first.timestamp, false),
                    ),
                  },
          }
          tailed.progress.note = undefined
          annotate(file)
          return file
        },
        written: ({ state }, bytes) => context.events.count('log_bytes_written_total', bytes, state.writtenTags),
        lost(tailed, bytes, reason) {
          const { namespace } = tailed.state
          context.events.count('log_bytes_lost_total', bytes, { namespace, reason })
          context.events.error({
            type: 'reader_failed',
            stage: 'receiving',
            code: 'log_bytes_lost',
            message: lossTexts[reason],
            fields: { file: fact(tailed.path), bytes },
          })
        },
        // The kubelet reports a new container a little later than it starts to write.
        waits: ({ state }) => {
          if (state.heldUntil > Date.now()) return true
          const pod = metadata.pod(state.folder)
          return pod !== undefined && pod.containers.get(state.container)?.id === undefined
        },
        lines(tailed, slab) {
          refresh(tailed, slab)
          const file = tailed.state
          if (!file.begun) {
            file.begun = true
            if (holding.size > 0) continueLine(tailed)
          }
          if (format === undefined) {
            const first = slab.buffer[slab.starts[0] as number]
            if (slab.starts[0] === slab.ends[0]) context.events.count('k8s_format_picker_edge_cases_total')
            format = first === 0x7b ? 'docker' : 'cri'
          }
          const held = isLimited ? limit(tailed, slab) : 0
          const bad = format === 'cri' ? readCri(file, slab) : readDocker(file, slab)
          // The last line of a chunk stands for all: what waits longer is told by `lagSeconds`.
          const last = emitted.length === 0 ? undefined : emitted[emitted.length - 1]?.fields[timestampKey]
          if (last instanceof Timestamp) {
            context.events.observe('source_lag_time_seconds', Math.max(0, slab.time.ms - last.ms) / 1000)
          }
          if (file.resumed !== undefined && slab.end >= file.resumed.until) file.resumed = undefined
          if (bad > 0) malformed(file, bad)
          countMissing(file, emitted.length)
          const wait = handOn(tailed, slab.end)
          if (held === 0) return wait
          return wait === undefined ? delayed(held) : Promise.all([wait, delayed(held)]).then(() => undefined)
        },
        closed,
        // An agent of an operator comes back, and so does a source that is changed: lines and groups that are not whole are read
        // again from their first part. The position is before it; in a file that was rotated it is, once it is known that nobody
        // has had that part. Any other agent may not: what it has, it hands on.
        stopped(tailed) {
          if (subscription === undefined && context.stopping.reason !== reconfigured) return closed(tailed)
          const file = tailed.state
          if (safePosition(file, tailed.offset) < tailed.offset) {
            tailed.progress.note = file.resumed ?? {
              until: tailed.offset,
              from: { stdout: heldFrom(file, 'stdout'), stderr: heldFrom(file, 'stderr') },
            }
          }
          for (const before of file.carried) before.release(1, 'errored')
          file.carried = []
          return undefined
        },
      },
      context,
    )

    /** When a line was written that nobody has read yet. */
    const writtenAt: LineTime = (bytes, start, end) => {
      if (bytes[start] !== 0x7b) return cri.parse(bytes, start, end) ? cri.timestamp.ms : undefined
      return docker.parse(bytes.toString('utf8', start, end))?.timestamp.ms
    }
    const secondsSince = (time: number | undefined): number =>
      time === undefined ? 0 : Math.max(0, Date.now() - time) / 1000

    const releaseExpired = (): void => {
      const now = Date.now()
      for (const tailed of holding) {
        const file = tailed.state
        for (const stream of streams) {
          if (file.partials[stream].expired(now)) finishPartial(file, stream, false, now)
          file.groups?.[stream].expire(now)
        }
        if (safePosition(file, tailed.offset) === tailed.offset) holding.delete(tailed)
        // A full buffer holds the next read, not what has waited long enough.
        if (emitted.length > 0) void handOn(tailed, tailed.offset)
      }
    }

    let running = false
    return {
      async run() {
        running = true
        const release = setInterval(releaseExpired, rule === undefined ? 1000 : Math.min(1000, rule.timeoutMs))
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

function delayed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  await Promise.race([promise, aborted])
}

/** Position of the first line of a stream that is held back. */
function heldFrom(file: PodFile, stream: Stream): number | undefined {
  const partial = file.partials[stream]
  const group = file.groups?.[stream].pendingFrom
  if (!partial.pending) return group
  return group === undefined ? partial.start : Math.min(partial.start, group)
}

function isHandedOn({ until, from }: Resumed, stream: Stream, position: number): boolean {
  if (position >= until) return false
  const held = from[stream]
  return held === undefined || position < held
}

const lossTexts = {
  rotated_files:
    'More rotated files of a container wait than may be kept; the oldest is given up before it was read to its end.',
  disk_pressure: 'The disk is nearly full; a removed log file is given up before it was read to its end.',
  rotate_wait: 'The time to read a removed file is over; it is given up before it was read to its end.',
} as const

const ofContainer = { limit: 'container' }
const ofPipeline = { limit: 'pipeline' }

const streams: readonly Stream[] = ['stdout', 'stderr']

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
